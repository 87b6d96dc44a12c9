"""Figure 5 and slide 35: how fast four settings learn, and how many frames they see in the same time."""

from __future__ import annotations

from typing import Any

import numpy as np

from ga3c_tf.reproduce.figures.figure import Added, Figure
from ga3c_tf.reproduce.figures.measurements import Measure, speed_changed
from ga3c_tf.reproduce.figures.metrics import END, final_score
from ga3c_tf.reproduce.figures.plans import speed_spec, workers
from ga3c_tf.reproduce.figures.tables import means_of
from ga3c_tf.reproduce.figures.throughput import adjustment
from ga3c_tf.reproduce.measures.curves import mean_score
from ga3c_tf.reproduce.measures.estimates import Effect
from ga3c_tf.reproduce.measures.verdicts import FEW_PERIODS, RUNS_MISSING, Guard, above
from ga3c_tf.reproduce.runs.run import RecordedRun

MINUTES = {"quick": 7.0, "paper": 24 * 60.0}
BEST = {"quick": {"fixed, 32/2/2": (32, 2, 2)}, "paper": {"fixed, 128/2/2": (128, 2, 2)}}
"""Fixed setting by budget (N_A, N_P, N_T): one chosen before any run of `tps` (D20), and the paper's best."""
NEARLY = 0.8
LEAST_PERIODS = 200
"""Periods a run needs for its search: from 1/1/1, the 33 moves of one to 32/2/2 are all accepted at best."""
MEAN = "mean score"
FRAMES = "frames"
FIXED = "fixed"
DYNAMIC = "dynamic"


def _measures(run: RecordedRun) -> list[Measure]:
    config = run.spec.config
    rolling = f"mean of the rolling score (training, {config.rolling_episodes} episodes) over the time"
    frames = run.agent_steps * (config.frame_skip if config.env_id.startswith("ALE/") else 1)
    seen = "frames of the environment, agent steps times frame skip"
    return [
        Measure(MEAN, mean_score(run.curve, "time_s"), "points", rolling, "no episode ended"),
        Measure(FRAMES, float(frames), "frames", seen),
    ]


class SpeedFigure(Figure):
    """Three fixed settings, the best of them last, and one with dynamic adjustment."""

    name = "speed"
    games = {"smoke": ("cartpole",), "quick": ("minatar_breakout",), "paper": ("pong",)}
    counts = {"quick": 3}
    # The claim about frames was undecided; it compares these settings.
    added = (
        Added(("minatar_breakout",), range(4, 7), lambda spec: spec.label[0].startswith(("1/1/1", FIXED))),
    )
    smoke = ({"called": (FIXED,)}, {**adjustment.SMOKE, "called": (DYNAMIC,)})
    measured = (_measures, final_score)
    main = (END, "points")
    by_game = True
    rows = ("label", "added")
    columns = means_of(FRAMES, MEAN, END)

    def planned(self, budget, game, seed):
        length: dict[str, Any] = {"minutes": MINUTES[budget], "log_seconds": adjustment.LOG_SECONDS[budget]}
        fixed = {"1/1/1": (1, 1, 1), "16/1/1": (16, 1, 1), **BEST[budget]}
        runs = [
            speed_spec(game, seed, **workers(*numbers), **length).called(label)
            for label, numbers in fixed.items()
        ]
        dynamic = adjustment.dynamic(budget, game, seed, MINUTES[budget])
        return [*runs, dynamic.called(f"{DYNAMIC} from 1/1/1")]

    def claims(self, table):
        planned = table.select(added=False)
        frames = planned.series(FRAMES, ["label"])
        labels = planned.names("label")
        fixed, dynamic = (next(name for name in labels if name.startswith(kind)) for kind in (FIXED, DYNAMIC))
        every = Guard(RUNS_MISSING, len(frames) < len(labels) or table.missing.applies)
        scores = Effect()
        guards = [every, table.several_machines]
        if len(frames):
            pairs = table.pairs(MEAN, {"label": frames.idxmax()}, {"label": frames.idxmin()})
            scores = pairs.difference().looked(2 if table.has_added else 1)
            guards.append(speed_changed(pairs))
        ratios = planned.pairs(FRAMES, {"label": dynamic}, {"label": fixed})
        ratio = ratios.factor(NEARLY)
        searching = planned.select(label=dynamic).finished
        few = any(len(run.adjustment["time_s"]) < LEAST_PERIODS for run in searching)
        too_few = [every, Guard(FEW_PERIODS, few), planned.several_machines, speed_changed(ratios)]
        return [
            self.claim("more-frames", above(scores), guards),
            self.claim("nearly-best", above(ratio), too_few),
        ]

    def drawn(self, table):
        return table.select(added=False)

    def line_name(self, part):
        frames = part.numbers(FRAMES)
        millions = f" ({np.mean(frames) / 1e6:.1f} M frames)" if frames else ""
        return f"{super().line_name(part)}{millions}"

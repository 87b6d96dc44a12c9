"""How soon Pong is learned with later actor-critics' settings, next to published results of this protocol."""

from __future__ import annotations

from typing import Any

from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.learning import table_3
from ga3c_tf.reproduce.figures.measurements import Measure
from ga3c_tf.reproduce.figures.metrics import EVALUATED, evaluations
from ga3c_tf.reproduce.figures.plans import tuned_spec
from ga3c_tf.reproduce.figures.tables import means_of, reached, time_of
from ga3c_tf.reproduce.measures.curves import first_reaching, score_by
from ga3c_tf.reproduce.measures.estimates import paired
from ga3c_tf.reproduce.measures.verdicts import above
from ga3c_tf.reproduce.runs.run import RecordedRun

GOOD = 18.0
"""Score of the paper's GA3C on Pong."""
STICKY = "sticky actions (0.25)"
NOOPS = "no sticky actions, up to 30 no-ops"
NOOPS_SEEDS = 3
NOOPS_SETTINGS: dict[str, Any] = {"repeat_action_probability": 0.0, "noop_max": 30, "steps": 2_500_000}
EARLY_STEPS = 3_000_000
EARLY = f"training score after {EARLY_STEPS:,} agent steps"
STEPS_TO = f"agent steps to a training score of {GOOD:g}"
MINUTES_TO = f"minutes to a training score of {GOOD:g}"
LIMITS = {
    "early": (STICKY, EARLY, 15.0, 2),
    "ppo": (STICKY, EVALUATED, 16.7, 2),  # SLM-Lab's PPO with sticky actions, a mean of four runs
    "noops": (NOOPS, EVALUATED, GOOD - 2.0, 1),
}
"""Protocol, metric, the limit that its mean should exceed, and the number of looks.

With sticky actions the runs were extended, as in `scores`, so their p values are multiplied.
"""


def _how_soon(run: RecordedRun) -> list[Measure]:
    window = run.spec.config.rolling_episodes
    protocol = f"mean of {window} episodes of training"
    steps, seconds = (first_reaching(run.curve, GOOD, name, window) for name in ("agent_steps", "time_s"))
    early = score_by(run.curve, EARLY_STEPS, "agent_steps")
    return [
        Measure(EARLY, early, "points", protocol, "the run is shorter"),
        Measure(STEPS_TO, steps, "steps", protocol, "never reached"),
        Measure(MINUTES_TO, seconds / 60, "min", protocol, "never reached"),
    ]


class SampleEfficiencyFigure(Figure):
    """Without sticky actions there are runs on the first seeds only."""

    name = "sample-efficiency"
    games = {"smoke": ("pong",), "tuned": ("pong",)}
    only = ("pong",)
    counts = {"tuned": table_3.EXTENDED["pong"]}
    smoke = ({"called": (STICKY,)},)
    measured = (evaluations, _how_soon)
    main = (EVALUATED, "points")
    rows = ("label",)
    columns = {
        **means_of(EVALUATED, EARLY),
        f"reached {GOOD:g}": reached(STEPS_TO),
        **{metric: time_of(metric) for metric in (STEPS_TO, MINUTES_TO)},
    }

    def planned(self, budget, game, seed):
        sticky = table_3.training(budget, game, seed).called(STICKY)
        noops = tuned_spec(game, seed, **NOOPS_SETTINGS).called(NOOPS)
        return [sticky, noops] if seed <= NOOPS_SEEDS else [sticky]

    def claims(self, table):
        claims = []
        for key, (protocol, metric, limit, looks) in LIMITS.items():
            part = table.select(label=protocol)
            estimate = paired(part.series(metric), limit).looked(looks)
            claims.append(self.claim(key, above(estimate), [part.missing]))
        return claims

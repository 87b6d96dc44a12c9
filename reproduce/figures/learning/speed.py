"""Figure 5 and slide 35: how fast four settings learn, and how many frames they see in the same time."""

from __future__ import annotations

from pathlib import Path

from ga3c_tf.reproduce.figures import pictures
from ga3c_tf.reproduce.figures.figure import (
    Figure,
    Measure,
    Table,
    mean_of,
    seeds_by_budget,
    smoke_spec,
    unfinished,
)
from ga3c_tf.reproduce.figures.measurements import Measurements, speed_changed
from ga3c_tf.reproduce.figures.throughput import adjustment
from ga3c_tf.reproduce.figures.training import END
from ga3c_tf.reproduce.measures.curves import mean_score
from ga3c_tf.reproduce.measures.estimates import Effect, paired, paired_ratio
from ga3c_tf.reproduce.measures.verdicts import FEW_PERIODS, RUNS_MISSING, Above, Claim, Guard
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec, run_spec

MINUTES = {"quick": 7.0, "paper": 24 * 60.0}
FIXED = {"quick": (32, 2, 2), "paper": (128, 2, 2)}
"""Fixed setting by budget (N_A, N_P, N_T): one chosen before any run of `tps` (D20), and the paper's best."""
ADJUSTED = ("num_agents", "num_predictors", "num_trainers", "adjustment", "adjustment_seconds", "max_agents")
SEEDS = 3
"""Number of seeds after which the claim about frames was judged for the first time."""
ADDED_SEEDS = (4, 5, 6)
"""Seeds of the two settings that this claim compares, added because it was undecided after three seeds."""
EXTENDED = "minatar_breakout"
"""The game with added seeds, at `quick`."""
NEARLY = 0.8
LEAST_PERIODS = 200
"""Periods a run needs for its search: from 1/1/1, the 33 moves of one to 32/2/2 are all accepted at best."""
MEAN = "mean score"
FRAMES = "frames"
FIXED_LABEL = "fixed"
DYNAMIC_LABEL = "dynamic"


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return runs with three fixed settings, the best of them last, and one with dynamic adjustment."""
    if budget == "smoke":
        return [
            smoke_spec(game, seed).called(FIXED_LABEL),
            adjustment.dynamic(budget, game, seed).called(DYNAMIC_LABEL),
        ]
    good = FIXED[budget]
    fixed = {"1/1/1": (1, 1, 1), "16/1/1": (16, 1, 1), f"{FIXED_LABEL}, {'/'.join(map(str, good))}": good}
    dynamic = adjustment.dynamic(budget, game, seed, MINUTES[budget])
    common = {name: value for name, value in dynamic.given.items() if name not in ADJUSTED}
    runs = [
        run_spec(
            game, seed, num_agents=agents, num_predictors=predictors, num_trainers=trainers, **common
        ).called(label)
        for label, (agents, predictors, trainers) in fixed.items()
    ]
    return [*runs, dynamic.called(f"{DYNAMIC_LABEL} from 1/1/1")]


def added(game: str) -> list[RunSpec]:
    """Return the runs of the added seeds: 1/1/1 and the fixed setting that represents the best one (D20)."""
    seeds = [specs("quick", game, seed) for seed in ADDED_SEEDS]
    return [run for smallest, _, best, _ in seeds for run in (smallest, best)]


def measures(run: RecordedRun) -> list[Measure]:
    """Return the mean of the rolling score over the whole time and its last tenth, and the frames seen."""
    config = run.spec.config
    rolling = f"mean of the rolling score (training, {config.rolling_episodes} episodes) over"
    frames = run.agent_steps * (config.frame_skip if config.env_id.startswith("ALE/") else 1)
    reason = "no episode ended"
    return [
        Measure(MEAN, mean_score(run.curve, "time_s"), "points", f"{rolling} the time", reason),
        Measure(END, run.final_score, "points", f"{rolling} the last tenth of the time", reason),
        Measure(FRAMES, float(frames), "frames", "frames of the environment, agent steps times frame skip"),
    ]


def claims(table: Measurements) -> list[Claim]:
    """Return the paper's claims about frames and about dynamic adjustment.

    Added seeds count in the claim about frames only.
    """
    planned = table.select(added=False)
    frames = planned.series(FRAMES, ["label"])
    labels = planned.names("label")
    fixed = next(name for name in labels if name.startswith(FIXED_LABEL))
    dynamic = next(name for name in labels if name.startswith(DYNAMIC_LABEL))
    every = Guard(RUNS_MISSING, len(frames) < len(labels) or table.missing.applies)
    scores = Effect()
    of_time = []
    if len(frames):
        most, least = frames.idxmax(), frames.idxmin()
        pairs = table.pairs(MEAN, {"label": most}, {"label": least})
        scores = paired(pairs.first, pairs.second, what=f"score of '{most}' minus '{least}'")
        again = table.game == EXTENDED and table.facts["seed"].nunique() > SEEDS
        scores = scores.looked(2 if again else 1)
        of_time = [speed_changed(pairs)]
    ratios = planned.pairs(FRAMES, {"label": dynamic}, {"label": fixed})
    ratio = paired_ratio(
        ratios.first, ratios.second, NEARLY, what=f"frames of '{dynamic}' relative to '{fixed}' (D20)"
    )
    searching = planned.select(label=dynamic).finished
    searched = all(len(run.adjustment["time_s"]) >= LEAST_PERIODS for run in searching)
    return [
        Claim(
            "more-frames",
            "more frames in the same time mean faster convergence",
            Above(scores),
            [every, table.several_machines, *of_time],
            "the mean score over the time, of the setting with most frames, minus that of the one with "
            "fewest, seed by seed",
        ),
        Claim(
            "nearly-best",
            "dynamic adjustment is nearly as good as the best fixed setting",
            Above(ratio),
            [every, Guard(FEW_PERIODS, not searched), speed_changed(ratios)],
            f"more than {NEARLY:.0%} of the frames in the same time, as a ratio of runs of one seed on one "
            f"machine; undecided unless each run has {LEAST_PERIODS} periods of adjustment or more",
        ),
    ]


def plot(table: Measurements, stem: Path) -> None:
    """Draw the score against time and agent steps, with the frames in the legend, without added seeds."""
    planned = table.select(added=False)
    frames = planned.series(FRAMES, ["label"]) / 1e6
    rows = {
        title: {
            f"{name} ({frames[name]:.1f} M frames)" if name in frames else name: curves
            for name, curves in lines.items()
        }
        for title, lines in pictures.curves(planned, "label").items()
    }
    pictures.draw(rows, stem)


FIGURE = Figure(
    name="speed",
    place=6,
    paper="Figure 5, slide 35",
    shows="score against time for four settings of agents, predictors and trainers",
    headline="more frames mean faster convergence, "
    "and dynamic adjustment is nearly as good as the best setting",
    games={"smoke": ("cartpole",), "quick": ("minatar_breakout",), "paper": ("pong",)},
    seeds=seeds_by_budget(quick=SEEDS),
    specs=specs,
    measures=measures,
    main=(END, "points"),
    scores=(MEAN,),
    claims=claims,
    tables=[
        Table(
            ("label", "added"),
            {
                FRAMES: mean_of(FRAMES),
                MEAN: mean_of(MEAN),
                END: mean_of(END),
                "not finished": unfinished,
            },
        )
    ],
    plot=plot,
    by_game=True,
    added_games=(EXTENDED,),
    added=added,
)

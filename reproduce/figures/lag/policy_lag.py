"""Figure 7 and slide 40: effects of a minimum training batch on policy lag, stability and speed.

All planned runs have the same duration, so settings are compared by the mean score over equal time. The part
of each learning curve up to `EQUAL_STEPS` also compares them over equal steps. Throughput matters in the
first comparison only.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

from ga3c_tf.reproduce.figures.figure import Figure, Measure, planned, smoke_spec
from ga3c_tf.reproduce.figures.lag.divergences import (
    BOOTSTRAP,
    KL,
    LAG,
    LAG_STATES,
    SPREAD,
    TOTAL_VARIATION,
    lag_measures,
)
from ga3c_tf.reproduce.figures.lag.minimum_batch import (
    COLLAPSED,
    CONTROL,
    END,
    EQUAL_STEPS,
    EXTENDED_GAME,
    GOOD,
    LARGEST,
    LOST,
    NO_MINIMUM,
    PPS,
    RATES,
    SCORE,
    SCORE_AT_STEPS,
    SHORT,
    Label,
    claims,
    failed_to_learn,
    groups,
    values,
)
from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.measures.curves import mean_score
from ga3c_tf.reproduce.measures.random_policy import RANDOM_SCORES
from ga3c_tf.reproduce.measures.text import lines_of, mean_and_interval, mean_ci, number
from ga3c_tf.reproduce.measures.verdicts import EQUAL_WIDE, collapsed, share_lost
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec, run_spec

MINIMA = (0, 20, 40, 160)
THIRTY_TWO: dict[str, Any] = {"num_agents": 32, "num_predictors": 2, "num_trainers": 2}
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"minimum {size}": ("ga3c", {**THIRTY_TWO, "min_training_batch": size}) for size in MINIMA},
    CONTROL: ("a2c", {"num_agents": 32}),
}
"""Five ways to make batches, each as a system and its settings. A2C is the control: its policy lag is 0."""
ADDED_SEEDS = (6, 7, 8, 9)
"""Seeds of the settings in `EXTENDED_SETTINGS` of the game `EXTENDED_GAME`, at `quick`."""
EXTENDED_SETTINGS = (
    *(Label(setting, "normal") for setting in (LARGEST, CONTROL)),
    *(Label(setting, "large") for setting in (NO_MINIMUM, *GOOD)),
)
"""Settings that two findings compare to which seeds were added, because five left them undecided."""
SHORT_SEEDS = {"normal": range(10, 16), "large": range(10, 20)}
"""Seeds without a minimum and with `GOOD`'s, added to two findings about equal steps, by learning rate."""
SHORT_STEPS = EQUAL_STEPS + 10_000
"""Agent steps of the runs of these seeds."""
MINUTES = {"quick": 4.0, "paper": 24 * 60.0}
LOG_SECONDS = {"quick": 5.0, "paper": 60.0}
GAIN = 2.0
"""A run counts as having learned if it scores more than this many points above its first score."""
LEARNING_COLUMNS = {
    "lag in updates": LAG,
    "in states": LAG_STATES,
    "PPS": PPS,
    "mean score, equal time": SCORE,
    "mean score, equal steps": SCORE_AT_STEPS,
    "score at the end": END,
    "time lost": LOST,
}
"""Columns of the first table, which has a row for each way to make batches: metric by heading."""
LAG_COLUMNS = {
    "versions within a segment": SPREAD,
    "lag of the bootstrap value": BOOTSTRAP,
    "KL divergence": KL,
    "total variation": TOTAL_VARIATION,
}
"""Columns of the second table: metric by heading."""


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return a run for each of `WAYS` to make batches, at two learning rates."""
    if budget == "smoke":
        return [
            smoke_spec(game, seed, min_training_batch=0).called("minimum 0", "normal"),
            smoke_spec(game, seed).called("minimum 20", "normal"),
            smoke_spec(game, seed, "a2c").called("A2C", "normal"),
        ]
    labels = [Label(setting, rate) for rate in RATES for setting in WAYS]
    return [_spec(budget, game, seed, label, minutes=MINUTES[budget]).called(*label) for label in labels]


def _spec(budget: str, game: str, seed: int, label: Label, **limit: Any) -> RunSpec:
    """Return a run with a limit in minutes or agent steps."""
    system, settings = WAYS[label.setting]
    rate = RATES[label.rate]
    seconds = LOG_SECONDS[budget]
    return run_spec(
        game,
        seed,
        system,
        **settings,
        learning_rate=rate,
        log_seconds=seconds,
        checkpoint_minutes=30.0,
        **limit,
    )


def added(game: str) -> list[RunSpec]:
    """Return the runs of the added seeds."""
    runs = [spec for seed in ADDED_SEEDS for spec in specs("quick", game, seed)]
    whole = [spec for spec in runs if Label(*spec.label) in EXTENDED_SETTINGS]
    short = [
        _spec("quick", game, seed, Label(setting, rate), steps=SHORT_STEPS).called(f"{setting}{SHORT}", rate)
        for rate, seeds in SHORT_SEEDS.items()
        for seed in seeds
        for setting in (NO_MINIMUM, *GOOD)
    ]
    return [*whole, *short]


def seeds(budget: str, game: str) -> int:
    """Return the default number of seeds.

    At `quick` it is five on MinAtar, where minutes are enough to learn, and one on Atari, where more would
    take days.
    """
    return {"smoke": 1, "quick": 5 if game.startswith("minatar") else 1, "paper": 3}[budget]


def measures(run: RecordedRun) -> list[Measure]:
    """Return scores, instability, speed, and policy lag in updates, in states and as a divergence."""
    curve = run.curve
    rolling = run.spec.config.rolling_episodes
    settled = {name: column[curve["episodes"] >= rolling] for name, column in curve.items()}
    steps = settled["agent_steps"]
    early = steps <= EQUAL_STEPS
    reached = run.agent_steps >= EQUAL_STEPS
    protocol = f"rolling score (training, {rolling} episodes)"
    pps = run.steady(0.1 * 3600 * run.hours)["pps"]
    return [
        Measure(
            SCORE,
            mean_score(settled, "time_s"),
            "points",
            f"mean of the {protocol} over time",
            "no such score",
        ),
        Measure(
            SCORE_AT_STEPS,
            mean_score(settled, high=EQUAL_STEPS) if reached else math.nan,
            "points",
            f"mean of the {protocol} over the first {EQUAL_STEPS:,} agent steps",
            "the run ended before",
        ),
        Measure(
            END, run.final_score, "points", f"mean of the {protocol} over the last tenth", "no episode ended"
        ),
        Measure(
            LOST,
            share_lost(settled["rolling_score"][early], steps[early], GAIN) if reached else math.nan,
            "share",
            f"of the first {EQUAL_STEPS:,} agent steps",
            "nothing learned in that time",
        ),
        Measure(COLLAPSED, collapsed(settled["rolling_score"], GAIN), "0 or 1", protocol, "nothing learned"),
        *lag_measures(run),
        Measure(PPS, pps, "predictions/s", "after the first tenth"),
    ]


def details(results: Results) -> list[str]:
    """Return the tables of learning and of policy lag, for one game."""
    runs = groups(results)
    learning: list[list[str]] = []
    added: list[list[str]] = []
    lags = []
    for label, group in runs.items():
        ended = sum(run.ended for run in group)
        reasons = Counter(results.status(run) for run in group if not run.finished)
        failed = f"{failed_to_learn(results, group)} of {ended}"
        cells = _cells(results, runs, label, LEARNING_COLUMNS, ended)
        rows = added if group[0].spec.is_added else learning
        rows.append([*label, str(ended), *cells, failed, _counted(reasons) or "-"])
        lags.append([*label, *_cells(results, runs, label, LAG_COLUMNS, ended)])
    return lines_of(
        "policy-lag.md",
        learning_columns=list(LEARNING_COLUMNS),
        learning=learning,
        lag_columns=list(LAG_COLUMNS),
        lags=lags,
        rate_of={name: f"{value:g}" for name, value in RATES.items()},
        added=added,
        equal_steps=f"{EQUAL_STEPS:,}",
        equal=EQUAL_WIDE,
        gain=number(GAIN),
    )


def _cells(
    results: Results, runs: dict[Label, list[RecordedRun]], label: Label, metrics: dict[str, str], ended: int
) -> list[str]:
    """Write the mean of each metric over seeds, with the number of seeds if not `ended`, that of the row."""
    cells = []
    for metric in metrics.values():
        measured = list(values(results, runs, metric, label.setting, rate=label.rate).values())
        complete = measured and len(measured) == ended
        cells.append(mean_and_interval(measured) if complete else mean_ci(measured))
    return cells


def _counted(reasons: Counter[str]) -> str:
    """Write how often there is each reason, such as '4 not run'."""
    return "; ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))


def plot(results: Results, stem: Path) -> None:
    """Draw learning curves at both rates, and the distribution of the measured lag, without added seeds."""
    from ga3c_tf.reproduce.drawing import lag_plots

    rates: dict[str, dict[str, list[RecordedRun]]] = {}
    for label, runs in planned(groups(results)).items():
        rates.setdefault(f"{label.rate} learning rate", {})[label.setting] = [
            run for run in runs if run.finished
        ]
    lag_plots.lag_picture(rates, RANDOM_SCORES.get(results.runs[0].spec.game), stem)


FIGURE = Figure(
    name="policy-lag",
    place=9,
    paper="Figure 7, slide 40",
    shows="learning curves without and with a minimum training batch, the measured lag beside them",
    headline="a minimum batch of 20 to 40 is more stable and generally faster, a larger one slower",
    games={
        "smoke": ("cartpole",),
        "quick": ("minatar_breakout",),
        "paper": ("pong", "breakout"),
    },
    seeds=seeds,
    specs=specs,
    measures=measures,
    main=(SCORE, "points"),
    claims=claims,
    details=details,
    plot=plot,
    by_game=True,
    added_games=(EXTENDED_GAME,),
    added=added,
)

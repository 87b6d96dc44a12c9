"""Figure 7 and slide 40: effects of a minimum training batch on policy lag, stability and speed.

All planned runs have the same duration, so settings are compared by the mean score over equal time. The part
of each learning curve up to `EQUAL_STEPS` also compares them over equal steps. Throughput matters in the
first comparison only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ga3c_tf.reproduce.figures.figure import Cell, Figure, Measure, Table, mean_of, smoke_spec, unfinished
from ga3c_tf.reproduce.figures.lag.divergences import (
    BOOTSTRAP,
    KL,
    LAG,
    LAG_STATES,
    SPREAD,
    TOTAL_VARIATION,
    lag_measures,
)
from ga3c_tf.reproduce.figures.measurements import Measurements, speed_changed
from ga3c_tf.reproduce.figures.training import END
from ga3c_tf.reproduce.measures.curves import collapsed, mean_score, share_lost
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS, Effect, paired, paired_ratio, welch
from ga3c_tf.reproduce.measures.random_policy import RANDOM_SCORES
from ga3c_tf.reproduce.measures.records import NOT_RUN
from ga3c_tf.reproduce.measures.verdicts import (
    FAILS,
    FEW_SEEDS,
    HOLDS,
    RUNS_MISSING,
    TOO_SHORT,
    Above,
    Claim,
    Guard,
    Settled,
)
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import ADDED, RunSpec, run_spec

RATES = {"normal": 1e-3, "large": 4e-3}
NO_MINIMUM = "minimum 0"
GOOD = ("minimum 20", "minimum 40")
"""The minimum batches that the paper recommends."""
LARGEST = "minimum 160"
CONTROL = "A2C"
THIRTY_TWO: dict[str, Any] = {"num_agents": 32, "num_predictors": 2, "num_trainers": 2}
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"minimum {size}": ("ga3c", {**THIRTY_TWO, "min_training_batch": size}) for size in (0, 20, 40, 160)},
    CONTROL: ("a2c", {"num_agents": 32}),
}
"""Five ways to make batches, each as a system and its settings. A2C is the control: its policy lag is 0."""
MINUTES = {"quick": 4.0, "paper": 24 * 60.0}
LOG_SECONDS = {"quick": 5.0, "paper": 60.0}
EQUAL_STEPS = 500_000
"""Agent steps over which `SCORE_AT_STEPS` and `LOST` are measured."""
GAIN = 2.0
"""A run counts as having learned if it scores more than this many points above its first score."""
SCORE = "mean score over equal time"
SCORE_AT_STEPS = "mean score over equal steps"
LOST = "time lost"
COLLAPSED = "collapsed"
PPS = "pps"
OF_TIME = (SCORE, PPS)
"""Metrics that depend on the speed of the machine."""
LARGE_RATE_HARMS = {"pong": False, "breakout": True}
"""Whether the paper finds that runs of the game fail to learn at a large learning rate."""
EXTENDED_GAME = "minatar_breakout"
"""The game in which claims were undecided after `SEEDS` seeds, so that seeds were added to them."""
SEEDS = 5
ADDED_SEEDS = (6, 7, 8, 9)
EXTENDED_SETTINGS = {"normal": (LARGEST, CONTROL), "large": (NO_MINIMUM, *GOOD)}
"""Settings of the seeds `ADDED_SEEDS`, by learning rate."""
SHORT_SEEDS = {"normal": range(10, 16), "large": range(10, 20)}
"""Seeds without a minimum and with `GOOD`'s, added to two claims about equal steps, by learning rate."""
SHORT_STEPS = EQUAL_STEPS + 10_000
"""Agent steps of the runs of these seeds."""
SHORT = f", {EQUAL_STEPS:,} steps"
"""Suffix of the settings of runs that end after the steps that are compared."""


class Comparison(NamedTuple):
    """What two groups of settings are compared by, at some learning rates.

    Attributes:
        text: the claim.
        metric: metric of the runs.
        first, second: the settings of both groups.
        rates: learning rates by name; at several, the claim names its rate.
        own: whether the claim is not the paper's, which has no A2C and compares after equal time.
        added: kind of the added seeds that count, by learning rate: 'whole' runs or 'short' ones.
        rule: how the claim is judged.
    """

    text: str
    metric: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    rates: tuple[str, ...] = tuple(RATES)
    own: bool = False
    added: Mapping[str, str] = MappingProxyType({})
    rule: str = ""


NONE = (NO_MINIMUM,)
COMPARED = {
    "lowers-lag": Comparison(
        "a minimum batch lowers the policy lag in states",
        LAG_STATES,
        NONE,
        ("minimum 40",),
        ("normal",),
        own=True,
        rule="mean lag in states at minimum 0, minus that at 40, learning rate 0.001",
    ),
    "raises-speed": Comparison(
        "a minimum batch of 20 to 40 raises throughput",
        PPS,
        GOOD,
        NONE,
        ("normal",),
        own=True,
        rule="PPS, mean of 20 and 40, over that at minimum 0, learning rate 0.001",
    ),
    "stabilizes": Comparison(
        "a minimum batch of 20 to 40 stabilizes",
        LOST,
        NONE,
        GOOD,
        ("large",),
        added={"large": "whole"},
        rule="time lost at minimum 0, minus the mean of 20 and 40, learning rate 0.004",
    ),
    "faster": Comparison(
        'equal time: a minimum of 20 to 40 scores more than a minimum of 0 ("generally faster")',
        SCORE,
        GOOD,
        NONE,
    ),
    "better-steps": Comparison(
        "equal steps: a minimum of 20 to 40 scores more than a minimum of 0",
        SCORE_AT_STEPS,
        GOOD,
        NONE,
        own=True,
        added=dict.fromkeys(RATES, "short"),
    ),
    "larger-is-slower": Comparison(
        'equal time: a minimum of 20 to 40 scores more than a minimum of 160 ("slower")',
        SCORE,
        GOOD,
        (LARGEST,),
    ),
    "without-lag": Comparison(
        "equal steps: A2C, which has no lag, scores more than a minimum of 160, whose updates are as large",
        SCORE_AT_STEPS,
        (CONTROL,),
        (LARGEST,),
        own=True,
        added={"normal": "whole"},
    ),
}


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return a run for each of `WAYS` to make batches, at two learning rates."""
    if budget == "smoke":
        return [
            smoke_spec(game, seed, min_training_batch=0).called("minimum 0", "normal"),
            smoke_spec(game, seed).called("minimum 20", "normal"),
            smoke_spec(game, seed, "a2c").called("A2C", "normal"),
        ]
    limit = {"minutes": MINUTES[budget]}
    return [
        _spec(budget, game, seed, setting, rate, **limit).called(setting, rate)
        for rate in RATES
        for setting in WAYS
    ]


def _spec(budget: str, game: str, seed: int, setting: str, rate: str, **limit: Any) -> RunSpec:
    """Return a run with a limit in minutes or agent steps."""
    system, settings = WAYS[setting]
    return run_spec(
        game,
        seed,
        system,
        **settings,
        learning_rate=RATES[rate],
        log_seconds=LOG_SECONDS[budget],
        checkpoint_minutes=30.0,
        **limit,
    )


def added(game: str) -> list[RunSpec]:
    """Return the runs of the added seeds."""
    runs = [spec for seed in ADDED_SEEDS for spec in specs("quick", game, seed)]
    whole = [spec for spec in runs if spec.label[0] in EXTENDED_SETTINGS[spec.label[1]]]
    short = [
        _spec("quick", game, seed, setting, rate, steps=SHORT_STEPS).called(f"{setting}{SHORT}", rate)
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
    return {"smoke": 1, "quick": SEEDS if game.startswith("minatar") else 1, "paper": 3}[budget]


def dimensions(spec: RunSpec) -> dict[str, object]:
    """Return how batches are made, the learning rate by name, and the kind of added seed: '' for planned."""
    setting, rate = spec.label
    name = setting.removesuffix(ADDED)
    kind = "short" if name.endswith(SHORT) else "whole"
    return {"batches": name.removesuffix(SHORT), "rate": rate, "added": kind * spec.is_added}


def measures(run: RecordedRun) -> list[Measure]:
    """Return scores, instability, speed, and policy lag in updates, in states and as a divergence."""
    curve = run.curve
    rolling = run.spec.config.rolling_episodes
    settled = {name: column[curve["episodes"] >= rolling] for name, column in curve.items()}
    early = {name: column[settled["agent_steps"] <= EQUAL_STEPS] for name, column in settled.items()}
    reached = run.agent_steps >= EQUAL_STEPS
    at_steps = mean_score(early) if reached else math.nan
    lost = share_lost(early, GAIN) if reached else math.nan
    protocol = f"rolling score (training, {rolling} episodes)"
    mean = f"mean of the {protocol} over"
    steps = f"the first {EQUAL_STEPS:,} agent steps"
    pps = run.steady(0.1 * 3600 * run.hours)["pps"]
    return [
        Measure(SCORE, mean_score(settled, "time_s"), "points", f"{mean} time", "no such score"),
        Measure(SCORE_AT_STEPS, at_steps, "points", f"{mean} {steps}", "the run ended before"),
        Measure(END, run.final_score, "points", f"{mean} the last tenth", "no episode ended"),
        Measure(LOST, lost, "share", f"of {steps}", "nothing learned in that time"),
        Measure(COLLAPSED, collapsed(settled, GAIN), "0 or 1", protocol, "nothing learned"),
        *lag_measures(run),
        Measure(PPS, pps, "predictions/s", "after the first tenth"),
    ]


def claims(table: Measurements) -> list[Claim]:
    """Return the paper's claims about the minimum batch and our own questions, for one game."""
    at_one_rate = [name for name, compared in COMPARED.items() if len(compared.rates) == 1]
    listed = [_claim(table, name, COMPARED[name].rates[0]) for name in at_one_rate]
    for rate in RATES:
        listed += [_claim(table, name, rate) for name in COMPARED if name not in at_one_rate]
    if table.game in LARGE_RATE_HARMS:
        listed.append(_large_rate(table, LARGE_RATE_HARMS[table.game]))
    return listed


def _claim(table: Measurements, name: str, rate: str) -> Claim:
    """Return the claim of a comparison at a learning rate. Added seeds count where they were added."""
    compared = COMPARED[name]
    key, text = name, compared.text
    if len(compared.rates) > 1:
        key, text = f"{name}-{rate}", f"learning rate {RATES[rate]:g}, {text}"
    kinds = ("", compared.added.get(rate, ""))
    first, second = (
        {"batches": settings, "rate": rate, "added": kinds} for settings in (compared.first, compared.second)
    )
    least = (len(compared.first), len(compared.second))
    guards = [table.missing]
    if compared.metric in OF_TIME:
        pairs = table.pairs(compared.metric, first, second, least=least)
        test = Above((paired_ratio if compared.metric == PPS else paired)(pairs.first, pairs.second))
        guards += [table.select(added="").several_machines, speed_changed(pairs)]
    else:
        parts = (table.select(**first), table.select(**second))
        groups = [_values(part, compared.metric, count) for part, count in zip(parts, least, strict=True)]
        test = _compared(table, groups, compared.metric, any(kinds))
    return Claim(key, text, test, guards, compared.rule, compared.own)


def _values(part: Measurements, metric: str, settings: int) -> pd.Series:
    """Return the mean of a metric over settings, for each seed that has all of these settings.

    A run that diverged or learned nothing counts as 1 in `LOST`.
    """
    values = part.values.loc[part.values["metric"] == metric, ["id", "value"]].set_index("id")["value"]
    if metric == LOST:
        without = part.facts["run"].drop(values.index)
        nothing = [id for id, run in without.items() if _learned_nothing(run)]
        values = pd.concat([values, pd.Series(1.0, nothing)])
    groups = values.groupby(part.facts["seed"])
    return groups.mean()[groups.count() == settings]


def _learned_nothing(run: RecordedRun) -> bool:
    """Return whether a run without a value of `LOST` diverged, or learned nothing within `EQUAL_STEPS`."""
    return run.diverged or (run.finished and run.agent_steps >= EQUAL_STEPS)


def _compared(table: Measurements, groups: list[pd.Series], metric: str, further: bool) -> Above:
    """Compare two groups by Welch's test, and scores over equal steps by their ratio too.

    Seeds that were added after a first judgement double the p values.
    """
    again = further and table.game == EXTENDED_GAME and max(map(len, groups)) > SEEDS
    looks = 2 if again else 1
    estimate = welch(*groups)
    if metric != SCORE_AT_STEPS:
        return Above(estimate.looked(looks))
    ratio = Effect(ratio=True)
    if min(map(len, groups)) and min(group.min() for group in groups) > 0:
        ratio = welch(np.log(groups[0]), np.log(groups[1]), ratio=True, what="ratio of the scores")
    return Above(estimate.looked(looks), like=ratio.looked(looks))


def failed_to_learn(part: Measurements) -> int:
    """Count the runs that collapsed, diverged or never improved."""
    begun = [run for run in part.runs if part.results.status(run) != NOT_RUN]
    return sum(run.diverged or (run.finished and part.results.value(run, COLLAPSED) != 0) for run in begun)


def _large_rate(table: Measurements, harms: bool) -> Claim:
    """Return the paper's claim that runs without a minimum batch fail to learn at a large learning rate, or
    that they do not.

    If the time is too short to learn at all, a failure says nothing about the learning rate.

    Args:
        table: the runs of the game.
        harms: whether the paper finds that such runs fail to learn.
    """
    harmed = table.select(batches=NO_MINIMUM, rate="large", added="")
    reference = table.select(batches="minimum 20", rate="normal", added="")
    ended = [run for run in harmed.runs if run.ended]
    lost = failed_to_learn(harmed)
    words, some = ("can fail to learn", "some") if harms else ("is hardly affected, even", "no")
    rule = (
        f"{some} run collapsed, diverged or never learned at minimum 0, learning rate {RATES['large']:g}; "
        f"takes {LEAST_SEEDS} seeds, and that all at minimum 20, learning rate {RATES['normal']:g}, learn in "
        "that time"
    )
    guards = [
        Guard(FEW_SEEDS, len(ended) < LEAST_SEEDS),
        Guard(RUNS_MISSING, not reference.finished or harmed.missing.applies or reference.missing.applies),
        Guard(TOO_SHORT, failed_to_learn(reference) > 0),
    ]
    kind = HOLDS if (lost > 0) == harms else FAILS
    test = Settled(kind, Effect(note=f"{lost} of {len(ended)}"), counts=False)
    return Claim("large-rate", f"{table.game.upper()} {words} at a large learning rate", test, guards, rule)


def failed(part: Measurements) -> str:
    """Return a cell with the number of runs that failed to learn."""
    return f"{failed_to_learn(part)} of {sum(run.ended for run in part.runs)}"


def plot(table: Measurements, stem: Path) -> None:
    """Draw learning curves at both rates, and the distribution of the measured lag, without added seeds."""
    from ga3c_tf.reproduce.drawing import lag_plots

    rates = {
        f"{rate} learning rate": {name: runs.finished for name, runs in part.parts("batches")}
        for rate, part in table.select(added="").parts("rate")
    }
    lag_plots.lag_picture(rates, RANDOM_SCORES.get(table.game), stem)


LEARNING: dict[str, Cell] = {
    "lag in updates": mean_of(LAG),
    "in states": mean_of(LAG_STATES),
    "PPS": mean_of(PPS),
    "mean score, equal time": mean_of(SCORE),
    "mean score, equal steps": mean_of(SCORE_AT_STEPS),
    END: mean_of(END),
    LOST: mean_of(LOST),
    "failed to learn": failed,
    "not finished": unfinished,
}
LAGS: dict[str, Cell] = {name: mean_of(name) for name in (SPREAD, BOOTSTRAP, KL, TOTAL_VARIATION)}
ROWS = ("batches", "rate")
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
    dimensions=dimensions,
    measures=measures,
    main=(SCORE, "points"),
    scores=(SCORE, SCORE_AT_STEPS, END),
    claims=claims,
    tables=[
        Table(ROWS, LEARNING, where={"added": ""}),
        Table((*ROWS, "added"), LEARNING, "added seeds", {"added": ("whole", "short")}),
        Table(ROWS, LAGS, "lag within a segment, and lag as a divergence", {"added": ""}),
    ],
    plot=plot,
    by_game=True,
    added_games=(EXTENDED_GAME,),
    added=added,
    words={"rate_of": RATES, "equal_steps": EQUAL_STEPS, "gain": GAIN},
)

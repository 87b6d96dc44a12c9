"""Effects of a minimum training batch on policy lag, throughput and learning, as `policy-lag` judges them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ga3c_tf.reproduce.figures.figure import grouped, on_one_machine, once_ended
from ga3c_tf.reproduce.figures.lag.divergences import LAG_STATES
from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.measures.effects import (
    NOTHING,
    Effect,
    equality,
    judged_again,
    paired_effect,
    paired_ratio,
    welch_effect,
)
from ga3c_tf.reproduce.measures.judging import finding_of, holm, open_level
from ga3c_tf.reproduce.measures.records import NOT_RUN
from ga3c_tf.reproduce.measures.verdicts import (
    CHANCE,
    EQUAL_WIDE,
    FEW_SEEDS,
    LEAST_SEEDS,
    NO_DIFFERENCE,
    RUNS_MISSING,
    TOO_SHORT,
    WIDE_MARGIN,
    Claim,
    Finding,
    holds_if,
)
from ga3c_tf.reproduce.measures.wording import described, described_ratio
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import ADDED

RATES = {"normal": 1e-3, "large": 4e-3}
NO_MINIMUM = "minimum 0"
GOOD = ("minimum 20", "minimum 40")
"""The minimum batches that the paper recommends."""
LARGEST = "minimum 160"
CONTROL = "A2C"
LARGE_RATE_HARMS = {"pong": False, "breakout": True}
"""Whether the paper finds that runs of the game fail to learn at a large learning rate."""
SCORE_CLAIMS = {
    "faster": 'equal time: a minimum of 20 to 40 scores more than a minimum of 0 ("generally faster")',
    "better_steps": "equal steps: a minimum of 20 to 40 scores more than a minimum of 0",
    "larger_is_slower": 'equal time: a minimum of 20 to 40 scores more than a minimum of 160 ("slower")',
    "without_lag": (
        "equal steps: A2C, which has no lag, scores more than a minimum of 160, whose updates are as large"
    ),
}
"""Texts of the claims about scores, by finding. Each is judged at each learning rate."""
OWN = ("better_steps", "without_lag")
"""Findings that are not about claims of the paper, which has no A2C and compares after equal time."""
SCORE = "mean score over equal time"
SCORE_AT_STEPS = "mean score over equal steps"
END = "score at the end"
LOST = "time lost"
COLLAPSED = "collapsed"
PPS = "pps"
SCORES = (SCORE, SCORE_AT_STEPS, END)
EQUAL_STEPS = 500_000
"""Agent steps over which `SCORE_AT_STEPS` and `LOST` are measured."""
EXTENDED_GAME = "minatar_breakout"
"""The game in which findings were undecided, so that seeds were added to them."""
SEEDS = 5
"""Number of seeds after which these findings were judged for the first time."""
SHORT = f", {EQUAL_STEPS:,} steps"
"""Suffix of the settings of runs that end after the steps that are compared."""
SHORT_ADDED = f"{SHORT}{ADDED}"
FURTHER = {
    "stabilizes": ADDED,
    "without_lag_normal": ADDED,
    "better_steps_normal": SHORT_ADDED,
    "better_steps_large": SHORT_ADDED,
}
"""Suffix of the settings of added seeds that a finding uses, by finding."""
OF_TIME = (SCORE, PPS)
"""Metrics that depend on the speed of the machine."""


class Label(NamedTuple):
    """Label of a run: how its batches are made, and the name of its learning rate in `RATES`."""

    setting: str
    rate: str


class Comparison(NamedTuple):
    """The settings of two groups of runs at one learning rate, and what is compared."""

    metric: str
    settings: tuple[str, ...]
    other_settings: tuple[str, ...]
    rate: str


NONE = (NO_MINIMUM,)
COMPARED_SCORES = {
    "faster": (SCORE, GOOD, NONE),
    "better_steps": (SCORE_AT_STEPS, GOOD, NONE),
    "larger_is_slower": (SCORE, GOOD, (LARGEST,)),
    "without_lag": (SCORE_AT_STEPS, (CONTROL,), (LARGEST,)),
}
COMPARED = {
    "lowers_lag": Comparison(LAG_STATES, NONE, ("minimum 40",), "normal"),
    "raises_speed": Comparison(PPS, GOOD, NONE, "normal"),
    "stabilizes": Comparison(LOST, NONE, GOOD, "large"),
    **{
        f"{name}_{rate}": Comparison(*compared, rate)
        for rate in RATES
        for name, compared in COMPARED_SCORES.items()
    },
}


class Tested(NamedTuple):
    """The tests of a comparison: whether groups differ and, over equal steps, are as good as equal."""

    effect: Effect
    ratio: Effect = NOTHING  # of scores, on their logarithms
    equal: float = math.nan  # p value of a ratio within `WIDE_MARGIN`


def groups(results: Results) -> dict[Label, list[RecordedRun]]:
    """Group the runs of one game by label; those of added seeds have labels of their own."""
    return grouped(results.runs, lambda run: Label(*run.spec.label))


def failed_to_learn(results: Results, runs: Iterable[RecordedRun]) -> int:
    """Count the runs that collapsed, diverged or never improved."""
    begun = [run for run in runs if results.status(run) != NOT_RUN]
    return sum(run.diverged or (run.finished and results.value(run, COLLAPSED) != 0) for run in begun)


def findings(results: Results, game: str, runs: dict[Label, list[RecordedRun]]) -> dict[str, Finding]:
    """Judge the findings about the minimum batch, for one game.

    Nothing is judged before all runs have ended, because the other seeds could still change a verdict. Added
    seeds count in the findings for which they were added.

    Args:
        results: results of the game.
        game: name of the game.
        runs: runs by label, as `groups` returns them.
    """
    planned = [run for run in results.runs if not run.spec.is_added]
    # 1. All tests, whose p values are corrected together.
    tested = {}
    chances = {}
    for name, (metric, settings, other_settings, rate) in COMPARED.items():
        further = FURTHER.get(name, "")
        first = values(results, runs, metric, *settings, rate=rate, further=further)
        second = values(results, runs, metric, *other_settings, rate=rate, further=further)
        again = bool(further) and game == EXTENDED_GAME and max(len(first), len(second)) > SEEDS
        tested[name] = _tested(metric, first, second, again)
        chances[name] = tested[name].effect.chance
        if metric == SCORE_AT_STEPS:
            chances[f"{name}, equal"] = tested[name].equal
    corrected = dict(zip(chances, holm(list(chances.values())), strict=True))
    level = open_level(list(corrected.values()))
    # 2. Each finding.
    by_claim = {}
    for name, test in tested.items():
        finding = _finding(planned, COMPARED[name].metric, test.effect, corrected[name], level)
        equal = corrected.get(f"{name}, equal", math.nan)
        if finding.verdict == NO_DIFFERENCE and equal < CHANCE:
            because = f"ratio of the scores, margin {WIDE_MARGIN:.0%}; {described_ratio(test.ratio, equal)}"
            finding = Finding(EQUAL_WIDE, because)
        by_claim[name] = once_ended(finding, results.runs)
    if game in LARGE_RATE_HARMS:
        by_claim["large_rate"] = _large_rate(results, LARGE_RATE_HARMS[game], runs)
    return by_claim


def claims(results: Results) -> list[Claim]:
    """Return the paper's claims about the minimum batch and our own questions, for one game."""
    game = results.runs[0].spec.game
    by_claim = findings(results, game, groups(results))
    rates = {name: f"learning rate {value:g}" for name, value in RATES.items()}
    listed = [
        Claim(
            "a minimum batch lowers the policy lag in states",
            by_claim["lowers_lag"],
            f"mean lag in states at minimum 0, minus that at 40, {rates['normal']}",
            is_question=True,
        ),
        Claim(
            "a minimum batch of 20 to 40 raises throughput",
            by_claim["raises_speed"],
            f"PPS, mean of 20 and 40, over that at minimum 0, {rates['normal']}",
            is_question=True,
        ),
        Claim(
            "a minimum batch of 20 to 40 stabilizes",
            by_claim["stabilizes"],
            f"time lost at minimum 0, minus the mean of 20 and 40, {rates['large']}",
        ),
    ]
    for name, rate in rates.items():
        listed += [
            Claim(f"{rate}, {text}", by_claim[f"{key}_{name}"], is_question=key in OWN)
            for key, text in SCORE_CLAIMS.items()
        ]
    if game in LARGE_RATE_HARMS:
        can, some = "is hardly affected, even", "no"
        if LARGE_RATE_HARMS[game]:
            can, some = "can fail to learn", "some"
        rule = (
            f"{some} run collapsed, diverged or never learned at minimum 0, {rates['large']}; takes "
            f"{LEAST_SEEDS} seeds, and that all at minimum 20, {rates['normal']}, learn in that time"
        )
        listed.append(Claim(f"{game.upper()} {can} at a large learning rate", by_claim["large_rate"], rule))
    return listed


def _tested(metric: str, first: Mapping[int, float], second: Mapping[int, float], again: bool) -> Tested:
    """Compare two groups: seed by seed what depends on the speed of the machine, by Welch's test all else.

    Args:
        metric: name of the metric.
        first: value of each seed of one group.
        second: value of each seed of the other group.
        again: whether seeds were added after a first judgement.
    """
    if metric in OF_TIME:
        return Tested(paired_ratio(first, second) if metric == PPS else paired_effect(first, second))
    effect = _welch(first, second, again)
    if metric != SCORE_AT_STEPS or min([*first.values(), *second.values()], default=0.0) <= 0:
        return Tested(effect)
    logarithms = [{seed: math.log(score) for seed, score in group.items()} for group in (first, second)]
    ratio = _welch(logarithms[0], logarithms[1], again)
    return Tested(effect, ratio, min(ratio.looks * equality(ratio, math.log(1 + WIDE_MARGIN)), 1.0))


def _welch(first: Mapping[int, float], second: Mapping[int, float], again: bool) -> Effect:
    effect = welch_effect(list(first.values()), list(second.values()))
    if again:
        return judged_again(effect)
    return effect


def _finding(
    planned: list[RecordedRun], metric: str, effect: Effect, corrected: float, level: float
) -> Finding:
    because = (described_ratio if metric == PPS else described)(effect, corrected)
    finding = finding_of(effect, corrected, level, because)
    if metric in OF_TIME:
        return on_one_machine(finding, planned)
    return finding


def values(
    results: Results,
    runs: dict[Label, list[RecordedRun]],
    metric: str,
    *settings: str,
    rate: str = "normal",
    further: str = "",
) -> dict[int, float]:
    """Return the mean of a metric over settings, for each seed that has all of these settings.

    A run that diverged scores as the random policy. A run that diverged or learned nothing counts as 1 in
    `LOST`.

    Args:
        results: results with the metric.
        runs: runs by label, as `groups` returns them.
        metric: name of the metric.
        settings: ways to make batches, as in `Label.setting`.
        rate: name of the learning rate in `RATES`.
        further: suffix of the settings of added seeds that are included, as in `FURTHER`; '' for none.
    """
    by_seed: dict[int, list[float]] = {}
    for setting in settings:
        added = runs.get(Label(f"{setting}{further}", rate), []) if further else []
        for run in [*runs.get(Label(setting, rate), []), *added]:
            value = results.score(run, metric) if metric in SCORES else results.value(run, metric)
            if value is None and metric == LOST and _learned_nothing(run):
                value = 1.0
            if value is not None:
                by_seed.setdefault(run.spec.seed, []).append(value)
    return {
        seed: sum(numbers) / len(numbers)
        for seed, numbers in by_seed.items()
        if len(numbers) == len(settings)
    }


def _learned_nothing(run: RecordedRun) -> bool:
    """Return whether a run without a value of `LOST` diverged, or learned nothing within `EQUAL_STEPS`."""
    return run.diverged or (run.finished and run.agent_steps >= EQUAL_STEPS)


def _large_rate(results: Results, harms: bool, runs: dict[Label, list[RecordedRun]]) -> Finding:
    """Judge whether runs without a minimum batch fail to learn at a large learning rate, as the paper says of
    the game.

    Args:
        results: results of the game.
        harms: whether the paper finds that such runs fail to learn.
        runs: runs by label, as `groups` returns them.
    """
    harmed = runs.get(Label(NO_MINIMUM, "large"), [])
    done = [run for run in harmed if run.ended]
    lost = failed_to_learn(results, done)
    because = f"{lost} of {len(done)}"
    if len(done) < LEAST_SEEDS:
        return Finding(FEW_SEEDS, because)
    # If the time is too short to learn at all, a failure says nothing about the learning rate.
    reference = runs.get(Label("minimum 20", "normal"), [])
    learned = [run for run in reference if run.finished]
    if not learned:
        return Finding(RUNS_MISSING, because)
    if failed_to_learn(results, learned):
        return Finding(TOO_SHORT, because)
    return once_ended(Finding(holds_if((lost > 0) == harms), because), [*harmed, *reference])

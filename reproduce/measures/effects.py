"""Differences between two groups of runs, with confidence intervals and significance tests."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.stats import t as t_dist
from scipy.stats import ttest_1samp

from ga3c_tf.reproduce.measures.intervals import student_interval
from ga3c_tf.reproduce.measures.planning import OpenTest
from ga3c_tf.reproduce.measures.text import number
from ga3c_tf.reproduce.measures.verdicts import (
    CHANCE,
    FAILS,
    FEW_SEEDS,
    HOLDS,
    LEAST_SEEDS,
    NO_DIFFERENCE,
    RUNS_MISSING,
    Finding,
    holds_if,
)

Key = TypeVar("Key")
Pair = TypeVar("Pair", bound=Hashable)
LOOKS = 2
"""Number of times that a finding with added seeds is judged."""
ROUNDING = 1e-9
RELATIVE_ROUNDING = 1e-12
NOTHING_TO_COMPARE = "nothing to compare yet"


class Effect(NamedTuple):
    """The difference between the means of two groups."""

    mean: float
    low: float  # lower end of the 95 % interval
    high: float
    chance: float  # two-sided p value; not-a-number below three seeds
    seeds: int  # seeds of the smaller group, or number of pairs
    limit: float = 0.0  # difference that the effect is tested against
    freedom: float = math.nan  # degrees of freedom of the t test; not-a-number if there is none
    looks: int = 1  # number of times that the effect is judged, by which the p value is multiplied


NOTHING = Effect(math.nan, math.nan, math.nan, math.nan, 0)


def paired_effect(ours: Mapping[Pair, float], others: Mapping[Pair, float], limit: float = 0.0) -> Effect:
    """Compare two groups pair by pair.

    If the runs of a seed follow one another on one machine, the speed of the machine cancels in their difference.

    Args:
        ours: value of each seed, or by another key that identifies the pairs.
        others: values of the other group, by the same keys; values without a partner are left out.
        limit: difference to test against.

    Returns:
        The effect on `ours` minus `others`; `NOTHING` if there is no pair.
    """
    differences = np.array([ours[pair] - others[pair] for pair in ours if pair in others])
    if not len(differences):
        return NOTHING
    low, high = student_interval(differences)
    chance = math.nan
    freedom = math.nan
    if len(differences) >= LEAST_SEEDS and np.ptp(differences) > ROUNDING:
        chance = float(ttest_1samp(differences, limit).pvalue)
        freedom = len(differences) - 1
    elif len(differences) >= LEAST_SEEDS:
        chance = _sign_test(differences - limit)
    return Effect(float(np.mean(differences)), low, high, chance, len(differences), limit, freedom)


def paired_ratio(ours: Mapping[Pair, float], others: Mapping[Pair, float], limit: float = 1.0) -> Effect:
    """Compare two groups of positive values pair by pair, by the natural logarithms of their ratios.

    Args:
        ours: value of each pair.
        others: values of the other group, by the same keys.
        limit: ratio to test against.

    Returns:
        The effect on the logarithms; its limit is a logarithm too.
    """
    return paired_effect(_logarithms(ours), _logarithms(others), math.log(limit))


def _logarithms(values: Mapping[Pair, float]) -> dict[Pair, float]:
    return {pair: math.log(value) for pair, value in values.items()}


def welch_effect(ours: Sequence[float], others: Sequence[float]) -> Effect:
    """Compare two groups by Welch's t test, for values that do not depend on the machine.

    Args:
        ours: value of each seed.
        others: value of each seed of the other group.
    """
    return pooled_effect([(ours, others)])


def pooled_effect(pairs: Sequence[tuple[Sequence[float], Sequence[float]]], limit: float = 0.0) -> Effect:
    """Compare two groups under several conditions, by the mean of their differences.

    This is Welch's t test with the variance of each group under each condition, and Satterthwaite's degrees of freedom.

    Args:
        pairs: for each condition, the values of our seeds and those of the other group.
        limit: difference to test against; a limit below 0 tests whether ours are worse by less than that.
    """
    if not pairs or any(not len(group) for pair in pairs for group in pair):
        return NOTHING
    seeds = min(len(group) for pair in pairs for group in pair)
    difference = float(np.mean([np.mean(ours) - np.mean(others) for ours, others in pairs]))
    if seeds < LEAST_SEEDS:
        return Effect(difference, math.nan, math.nan, math.nan, seeds, limit)
    groups = [group for pair in pairs for group in pair]
    variances = np.array([np.var(group, ddof=1) / len(group) for group in groups]) / len(pairs) ** 2
    total = float(variances.sum())
    if math.sqrt(total) <= RELATIVE_ROUNDING * max(abs(float(np.mean(group))) for group in groups):
        chance = _separation_test(pairs, difference, limit)
        return Effect(difference, difference, difference, chance, seeds, limit)
    freedom = 1 / float(((variances / total) ** 2 / [len(group) - 1 for group in groups]).sum())
    error = math.sqrt(total)
    reach = float(t_dist.ppf(0.975, freedom)) * error
    chance = 2 * float(t_dist.sf(abs(difference - limit) / error, freedom))
    return Effect(difference, difference - reach, difference + reach, chance, seeds, limit, freedom)


def judged_again(effect: Effect) -> Effect:
    """Return an effect over planned and added seeds, with its p value multiplied by `LOOKS`.

    The first judgement, after the planned seeds, was at the full level, so the error of both is above the level.
    """
    return effect._replace(chance=min(LOOKS * effect.chance, 1.0), looks=LOOKS)


def equality(effect: Effect, margin: float) -> float:
    """Return the p value of the claim that an effect is between -`margin` and `margin`, by two one-sided t tests.

    Args:
        effect: effect from a t test. Its limit does not matter.
        margin: largest difference that is not relevant.

    Returns:
        The p value; not-a-number if there was no t test.
    """
    if math.isnan(effect.freedom):
        return math.nan
    return float(t_dist.sf((margin - abs(effect.mean)) / _error(effect), effect.freedom))


def growth(groups: Sequence[Mapping[Pair, float]]) -> Effect:
    """Return the growth of positive values from one group to the next, as the slope of their logarithms.

    Each seed has its own slope, and Student's t test compares these slopes with 0. So the values of some groups may
    scatter more than those of others.

    Args:
        groups: values of each group by seed, with the groups in order; a seed that is missing in a group is left out.

    Returns:
        The effect on the slope; `NOTHING` if there are fewer than two groups.
    """
    if len(groups) < 2:
        return NOTHING
    seeds = [seed for seed in groups[0] if all(seed in group for group in groups)]
    places = range(len(groups))
    slopes = {seed: _slope(places, [math.log(group[seed]) for group in groups]) for seed in seeds}
    return paired_effect(slopes, dict.fromkeys(seeds, 0.0))


def _slope(places: Sequence[int], values: Sequence[float]) -> float:
    """Return the slope of the least-squares line."""
    return float(np.polyfit(places, values, 1)[0])


def judged_together(
    effects: Mapping[str, Effect], corrected: Mapping[str, float], level: float, of: str = "seed"
) -> Finding:
    """Judge whether the ratios of all comparisons are above their limits.

    The least favorable comparison decides, and the finding has its numbers.

    Args:
        effects: effects from `paired_ratio`, by name of the comparison.
        corrected: p values of the effects, corrected by `holm`, by the same names.
        level: significance level from `open_level`.
        of: what one pair is, such as 'seed' or 'setting'.
    """
    if not effects:
        return Finding(RUNS_MISSING, NOTHING_TO_COMPARE)
    verdicts = {name: effect_verdict(effect, corrected[name]) for name, effect in effects.items()}
    verdict = next(each for each in (FAILS, FEW_SEEDS, NO_DIFFERENCE, HOLDS) if each in verdicts.values())
    deciding = [name for name in effects if verdicts[name] == verdict]
    least = min(deciding, key=lambda name: effects[name].mean)
    because = f"{least}: {described_ratio(effects[least], corrected[least], of)}"
    if verdict != NO_DIFFERENCE:
        return Finding(verdict, because)
    return Finding(verdict, because, _slowest([_open_test(effects[name], level) for name in deciding]))


def _slowest(tests: Sequence[OpenTest | None]) -> OpenTest | None:
    """Return the test that determines how many runs decide several comparisons together.

    One comparison below its limit is enough to decide, so the surest of those counts. Without one, all comparisons have
    to be above their limits, so the least sure counts.
    """
    known = [test for test in tests if test is not None]
    below = [test for test in known if test.distance < 0]
    surest = max(below, default=None, key=lambda test: -test.distance / test.error)
    return surest or min(known, default=None, key=lambda test: test.distance / test.error)


def described(effect: Effect, corrected: float) -> str:
    """Describe an effect, such as '+3.2 [1.1, 5.3], p = 0.01 (5 seeds)'.

    A limit other than 0 comes before the p value: '+3.2 [1.1, 5.3], limit -10, p = 0.01 (5 seeds)'.

    Args:
        effect: the effect.
        corrected: its p value, corrected by `holm`.
    """
    if not effect.seeds:
        return NOTHING_TO_COMPARE
    values = f"{effect.mean:+.3g}", number(effect.low), number(effect.high)
    limit = f"{effect.limit:+.3g}" if effect.limit else ""
    return _in_words(*values, limit, corrected, effect.seeds, "seed")


def described_ratio(effect: Effect, corrected: float, of: str = "seed") -> str:
    """Describe an effect from `paired_ratio`, such as '2.4 times [2, 2.9], p = 0.01 (3 seeds)'; see `described`.

    Args:
        effect: effect on logarithms.
        corrected: its p value, corrected by `holm`.
        of: what one pair is, such as 'seed' or 'setting'.
    """
    if not effect.seeds:
        return NOTHING_TO_COMPARE
    mean, low, high = (number(math.exp(value)) for value in (effect.mean, effect.low, effect.high))
    limit = number(math.exp(effect.limit)) if effect.limit else ""
    return _in_words(f"{mean} times", low, high, limit, corrected, effect.seeds, of)


def judged(effects: Mapping[Key, Effect], describe: Callable[[Effect, float], str] = described) -> dict[Key, Finding]:
    """Judge whether each effect is above its limit, with p values corrected by `holm`.

    Args:
        effects: effects by comparison.
        describe: `described`, or `described_ratio` for effects on logarithms.
    """
    corrected = holm([effect.chance for effect in effects.values()])
    found = {}
    for (key, effect), chance in zip(effects.items(), corrected, strict=True):
        finding = finding_of(effect, chance, open_level(corrected), describe(effect, chance))
        found[key] = finding if effect.seeds else Finding(RUNS_MISSING, finding.because)
    return found


def finding_of(effect: Effect, corrected: float, level: float, because: str) -> Finding:
    """Judge whether an effect is above its limit; a finding without a significant difference keeps its test.

    Args:
        effect: the effect, as in `effect_verdict`.
        corrected: its p value, corrected by `holm`.
        level: significance level from `open_level`.
        because: numbers of the finding, in words.
    """
    verdict = effect_verdict(effect, corrected)
    return Finding(verdict, because, _open_test(effect, level) if verdict == NO_DIFFERENCE else None)


def open_level(corrected: Sequence[float]) -> float:
    """Return the significance level that Holm's method leaves for the findings that are not significant yet.

    Args:
        corrected: p values of all findings, corrected by `holm`.
    """
    return CHANCE / max(1, sum(not chance < CHANCE for chance in corrected))


def _open_test(effect: Effect, level: float) -> OpenTest | None:
    """Return the t test of an effect; None if there is none, because the values do not vary."""
    if math.isnan(effect.freedom):
        return None
    return OpenTest(effect.mean - effect.limit, _error(effect), effect.freedom, level, effect.looks > 1)


def _error(effect: Effect) -> float:
    """Return the standard error of an effect from a t test."""
    return (effect.high - effect.low) / 2 / float(t_dist.ppf(0.975, effect.freedom))


def _in_words(mean: str, low: str, high: str, limit: str, chance: float, count: int, of: str) -> str:
    counted = f"({count} {of}{'s' if count > 1 else ''})"
    if count < LEAST_SEEDS:
        return f"{mean} {counted}"
    tested = f", limit {limit}" if limit else ""
    return f"{mean} [{low}, {high}]{tested}, p = {chance:.2g} {counted}"


def effect_alone(because: str) -> str:
    """Return the effect and its interval from the text of a finding, without the p value and the number of runs.

    Args:
        because: text from `described` or `described_ratio`; text before the last semicolon is left out.
    """
    effect = because.rpartition("; ")[2]
    return re.sub(r", p = [^ ()]+|,? \(\d+ \w+\)", "", effect)


def _sign_test(differences: np.ndarray) -> float:
    """Return the p value of the sign test, for differences that are all the same: Student's t would be too sure."""
    return 1.0 if abs(differences[0]) <= ROUNDING else 0.5 ** (len(differences) - 1)


def _separation_test(
    pairs: Sequence[tuple[Sequence[float], Sequence[float]]], difference: float, limit: float
) -> float:
    """Return the p value of a permutation test, for groups that do not vary.

    It is the probability that chance separates the groups in this way under every condition. Conditions whose
    difference equals the limit are left out. The p value is 1 if the mean difference equals the limit, or if a
    condition contradicts it.
    """
    directions = [_sign(float(np.mean(ours) - np.mean(others)) - limit) for ours, others in pairs]
    overall = _sign(difference - limit)
    if overall == 0 or -overall in directions:
        return 1.0
    ways = [
        math.comb(len(ours) + len(others), len(ours))
        for (ours, others), direction in zip(pairs, directions, strict=True)
        if direction
    ]
    return min(1.0, 2 / math.prod(ways))


def _sign(value: float) -> int:
    """Return the sign of a value: 1, -1, or 0 if rounding can explain the value."""
    return 0 if abs(value) <= ROUNDING else int(math.copysign(1, value))


def holm(chances: Sequence[float]) -> list[float]:
    """Correct p values for multiple comparisons by Holm's method; not-a-number stays not-a-number.

    The probability that any true null hypothesis is rejected is then at most the significance level. Unknown p values
    count as comparisons too, so that a verdict does not change because other runs are added.
    """
    known = [place for place, chance in enumerate(chances) if not math.isnan(chance)]
    corrected = [math.nan] * len(chances)
    largest = 0.0
    for rank, place in enumerate(sorted(known, key=lambda place: chances[place])):
        largest = max(largest, min(1.0, chances[place] * (len(chances) - rank)))
        corrected[place] = largest
    return corrected


def effect_verdict(effect: Effect, corrected: float) -> str:
    """Judge whether an effect is above its limit, which is 0 unless a margin is allowed.

    Args:
        effect: from `paired_effect`, `paired_ratio`, `welch_effect`, `pooled_effect` or `growth`.
        corrected: its p value, corrected by `holm`.
    """
    if effect.seeds < LEAST_SEEDS:
        return FEW_SEEDS
    return holds_if(effect.mean > effect.limit) if corrected < CHANCE else NO_DIFFERENCE

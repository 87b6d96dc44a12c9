"""Differences between two groups of runs, with confidence intervals and significance tests."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.stats import rankdata, ttest_1samp
from scipy.stats import t as t_dist

from ga3c_tf.reproduce.measures.verdicts import LEAST_SEEDS
from ga3c_tf.trained.intervals import student_interval

Pair = TypeVar("Pair", bound=Hashable)
LOOKS = 2
"""Number of times that a finding with added seeds is judged."""
ROUNDING = 1e-9
RELATIVE_ROUNDING = 1e-12


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

    @property
    def error(self) -> float:
        """The standard error, of an effect from a t test."""
        return (self.high - self.low) / 2 / float(t_dist.ppf(0.975, self.freedom))


NOTHING = Effect(math.nan, math.nan, math.nan, math.nan, 0)


def paired_effect(values: Mapping[Pair, float], others: Mapping[Pair, float], limit: float = 0.0) -> Effect:
    """Compare two groups pair by pair.

    If the runs of a seed follow one another on one machine, the speed of the machine cancels in their
    difference.

    Args:
        values: value of each seed, or by another key that identifies the pairs.
        others: values of the other group, by the same keys; values without a partner are left out.
        limit: difference to test against.

    Returns:
        The effect on `values` minus `others`; `NOTHING` without a pair. Its numbers are not-a-number if a
        value is.
    """
    differences = np.array([values[pair] - others[pair] for pair in values if pair in others])
    if not len(differences):
        return NOTHING
    low, high = student_interval(differences)
    chance = math.nan
    freedom = math.nan
    if len(differences) >= LEAST_SEEDS and np.ptp(differences) <= ROUNDING:
        chance = _sign_test(differences - limit)
    elif len(differences) >= LEAST_SEEDS and np.isfinite(differences).all():
        chance = float(ttest_1samp(differences, limit).pvalue)
        freedom = len(differences) - 1
    return Effect(float(np.mean(differences)), low, high, chance, len(differences), limit, freedom)


def paired_ratio(values: Mapping[Pair, float], others: Mapping[Pair, float], limit: float = 1.0) -> Effect:
    """Compare two groups of positive values pair by pair, by the natural logarithms of their ratios.

    Args:
        values: value of each pair.
        others: values of the other group, by the same keys.
        limit: ratio to test against.

    Returns:
        The effect on the logarithms; its limit is a logarithm too.
    """
    return paired_effect(_logarithms(values), _logarithms(others), math.log(limit))


def _logarithms(values: Mapping[Pair, float]) -> dict[Pair, float]:
    return {pair: math.log(value) for pair, value in values.items()}


def welch_effect(values: Sequence[float], others: Sequence[float]) -> Effect:
    """Compare two groups by Welch's t test, for values that do not depend on the machine.

    Args:
        values: value of each seed.
        others: value of each seed of the other group.
    """
    return pooled_effect([(values, others)])


def pooled_effect(pairs: Sequence[tuple[Sequence[float], Sequence[float]]], limit: float = 0.0) -> Effect:
    """Compare two groups under several conditions, by the mean of their differences.

    This is Welch's t test with the variance of each group under each condition, and Satterthwaite's degrees
    of freedom.

    Args:
        pairs: for each condition, the values of our seeds and those of the other group.
        limit: difference to test against; a limit below 0 tests whether ours are worse by less than that.
    """
    if not pairs or any(not len(group) for pair in pairs for group in pair):
        return NOTHING
    seeds = min(len(group) for pair in pairs for group in pair)
    difference = float(np.mean([np.mean(values) - np.mean(others) for values, others in pairs]))
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

    The first judgement, after the planned seeds, was at the full level, so the error of both is above the
    level.
    """
    return effect._replace(chance=min(LOOKS * effect.chance, 1.0), looks=LOOKS)


def equality(effect: Effect, margin: float) -> float:
    """Return the p value of the claim that an effect is between -`margin` and `margin`, by two one-sided t
    tests.

    Args:
        effect: effect from a t test. Its limit does not matter.
        margin: largest difference that is not relevant.

    Returns:
        The p value; not-a-number if there was no t test.
    """
    if math.isnan(effect.freedom):
        return math.nan
    return float(t_dist.sf((margin - abs(effect.mean)) / effect.error, effect.freedom))


def growth(groups: Sequence[Mapping[Pair, float]]) -> Effect:
    """Return the growth of positive values from one group to the next, as the slope of their logarithms.

    Each seed has its own slope, and Student's t test compares these slopes with 0. So the values of some
    groups may scatter more than those of others.

    Args:
        groups: values of each group by seed, with the groups in order; a seed that is missing in a group is
            left out.

    Returns:
        The effect on the slope; `NOTHING` if there are fewer than two groups.
    """
    if len(groups) < 2:
        return NOTHING
    seeds = [seed for seed in groups[0] if all(seed in group for group in groups)]
    places = range(len(groups))
    slopes = {seed: _slope(places, [math.log(group[seed]) for group in groups]) for seed in seeds}
    return paired_effect(slopes, dict.fromkeys(seeds, 0.0))


def signed_rank_test(differences: Sequence[float]) -> tuple[float, float]:
    """Test whether differences are symmetric around 0, by Wilcoxon's signed-rank test.

    The p value counts all ways to flip the signs, so it is exact with ties too. Differences of 0 have ranks,
    but add nothing to the sum.

    Args:
        differences: at most about 15 differences, because all 2^n ways are counted.

    Returns:
        The sum of the signed ranks, and the two-sided p value.
    """
    ranks = rankdata(np.abs(differences)) * np.sign(differences)
    signs = np.array(list(itertools.product((-1, 1), repeat=len(ranks))))
    total = float(ranks.sum())
    return total, float(np.mean(np.abs(signs @ ranks) >= abs(total) - ROUNDING))


def _slope(places: Sequence[int], values: Sequence[float]) -> float:
    """Return the slope of the least-squares line."""
    return float(np.polyfit(places, values, 1)[0])


def _sign_test(differences: np.ndarray) -> float:
    """Return the p value of the sign test, for equal differences: Student's t would be too sure."""
    return 1.0 if abs(differences[0]) <= ROUNDING else 0.5 ** (len(differences) - 1)


def _separation_test(
    pairs: Sequence[tuple[Sequence[float], Sequence[float]]], difference: float, limit: float
) -> float:
    """Return the p value of a permutation test, for groups that do not vary.

    It is the probability that chance separates the groups in this way under every condition. Conditions whose
    difference equals the limit are left out. The p value is 1 if the mean difference equals the limit, or if
    a condition contradicts it.
    """
    directions = [_sign(float(np.mean(values) - np.mean(others)) - limit) for values, others in pairs]
    overall = _sign(difference - limit)
    if overall == 0 or -overall in directions:
        return 1.0
    ways = [
        math.comb(len(values) + len(others), len(values))
        for (values, others), direction in zip(pairs, directions, strict=True)
        if direction
    ]
    return min(1.0, 2 / math.prod(ways))


def _sign(value: float) -> int:
    """Return the sign of a value: 1, -1, or 0 if rounding can explain the value."""
    return 0 if abs(value) <= ROUNDING else int(math.copysign(1, value))

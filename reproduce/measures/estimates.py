"""Differences between groups of runs: estimates with confidence intervals and p values, by SciPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit

from ga3c_tf.trained.intervals import student_interval

LEAST_SEEDS = 3
"""With fewer values in a group there is no test."""
ROUNDING = 1e-9
RELATIVE_ROUNDING = 1e-12


@dataclass(frozen=True)
class Effect:
    """An effect, and the test whether it differs from its limit."""

    # effect, low, high: the effect and its interval, at 95 % unless the figure says otherwise. Those of a
    # ratio are natural logarithms
    effect: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan  # two-sided p value of the limit; not-a-number without a test
    n: int = 0  # number of pairs, or of values of the smaller group
    limit: float = 0.0  # value that the effect is tested against, on the scale of the effect
    # degrees of freedom of the t test; not-a-number if another test was made, or none
    freedom: float = math.nan
    ratio: bool = False  # whether effect, interval and limit are logarithms of ratios
    of: str = "seed"  # what one value is of, such as 'seed' or 'pair'
    what: str = ""  # what is compared, in words; empty if the claim says it
    note: str = ""  # further numbers, in words
    looks: int = 1  # number of times that the effect is judged, by which the p value is multiplied

    @property
    def error(self) -> float:
        """The standard error, of an effect from a t test."""
        return (self.high - self.low) / 2 / float(stdtrit(self.freedom, 0.975))

    @property
    def shown(self) -> tuple[float, ...]:
        """Effect, lower and upper end, and limit: those of a ratio as ratios."""
        numbers = (self.effect, self.low, self.high, self.limit)
        return tuple(map(math.exp, numbers)) if self.ratio else numbers

    def looked(self, looks: int) -> Effect:
        """Return the estimate with the p value of so many looks at growing data, by Bonferroni's method."""
        return replace(self, p=min(looks * self.p, 1.0), looks=looks)


NOTHING = Effect()


def paired(first: pd.Series, second: pd.Series | float = 0.0, limit: float = 0.0, **names: Any) -> Effect:
    """Compare two groups pair by pair by Student's t test, or by the sign test if all differences are equal.

    Args:
        first: value of each pair, by its key.
        second: values of the other group by the same keys, or one value; keys in one group only are left out.
        limit: difference to test against.
        names: `of`, `what` and `note` of the estimate.
    """
    differences = (first - second).to_numpy(float)
    differences = differences[~np.isnan(differences)]
    n = len(differences)
    if not n:
        return Effect(limit=limit, **names)
    estimate = Effect(float(differences.mean()), *student_interval(differences), n=n, limit=limit, **names)
    if n < LEAST_SEEDS:
        return estimate
    if np.ptp(differences) <= ROUNDING:
        same = abs(differences[0] - limit) <= ROUNDING
        return replace(estimate, p=1.0 if same else 0.5 ** (n - 1))
    error = differences.std(ddof=1) / math.sqrt(n)
    return replace(estimate, p=_t_test(estimate.effect - limit, error, n - 1), freedom=n - 1)


def _t_test(difference: float, error: float, freedom: float) -> float:
    """Return the two-sided p value of Student's t test of a difference with this standard error."""
    return 2 * float(stdtr(freedom, -abs(difference) / error))


def paired_ratio(first: pd.Series, second: Any = 1.0, limit: float = 1.0, **names: Any) -> Effect:
    """Compare two groups of positive values as `paired`, by the logarithms of their ratios."""
    return replace(paired(np.log(first), np.log(second), math.log(limit), **names), ratio=True)


def growth(groups: pd.DataFrame, **names: Any) -> Effect:
    """Return the factor by which positive values grow from one group to the next.

    Each seed has its own slope of the logarithms, and Student's t test compares the slopes with 0.

    Args:
        groups: values by seed (rows) and group (columns, in order); seeds without all groups are left out.
        names: as in `paired`.
    """
    values = groups.to_numpy(float)
    whole = values[~np.isnan(values).any(axis=1)]
    if groups.shape[1] < 2 or not len(whole):
        return Effect(ratio=True, **names)
    slopes = np.polyfit(range(groups.shape[1]), np.log(whole).T, 1)[0]
    return replace(paired(pd.Series(slopes), **names), ratio=True)


def jackknife(values: np.ndarray, statistic: Callable[[np.ndarray], float], axis: int = 0) -> pd.Series:
    """Return pseudo-values of a smooth statistic, whose scatter is its error.

    Each leaves out one seed, so they also have the scatter of what all seeds share, such as a denominator.
    A single seed has the statistic as its value.

    Args:
        values: values of the seeds.
        statistic: computes the statistic from values of the same axes.
        axis: axis of the seeds.
    """
    n = values.shape[axis]
    if n < 2:
        return pd.Series([statistic(values) for _ in range(n)], dtype=float)
    left_out = [statistic(np.delete(values, seed, axis)) for seed in range(n)]
    return pd.Series(n * statistic(values) - (n - 1) * np.array(left_out))


def jackknifed(values: np.ndarray, statistic: Callable[[np.ndarray], float]) -> tuple[float, float, float]:
    """Return a statistic of seeds and its 95 % interval by `jackknife`; not-a-number without seeds."""
    if not len(values):
        return math.nan, math.nan, math.nan
    middle = statistic(values)
    low, high = student_interval(jackknife(values, statistic).to_numpy())
    return middle, middle - (high - low) / 2, middle + (high - low) / 2


def welch(first: ArrayLike, second: ArrayLike, **names: Any) -> Effect:
    """Compare two groups by Welch's t test, for values that do not depend on the machine."""
    return pooled([(first, second)], **names)


def pooled(conditions: Sequence[tuple[ArrayLike, ArrayLike]], limit: float = 0.0, **names: Any) -> Effect:
    """Compare two groups under several conditions, by the mean of their differences.

    This is Welch's t test with the variance of each group under each condition, and Satterthwaite's degrees
    of freedom.

    Args:
        conditions: values of the first and of the second group under each condition.
        limit: difference to test against.
        names: as in `paired`.
    """
    groups = [np.asarray(group, float) for condition in conditions for group in condition]
    n = min(map(len, groups), default=0)
    if not n:
        return Effect(limit=limit, **names)
    means = np.array([group.mean() for group in groups])
    differences = means[::2] - means[1::2]
    effect = float(differences.mean())
    if n < LEAST_SEEDS:
        return Effect(effect, n=n, limit=limit, **names)
    variances = np.array([group.var(ddof=1) / len(group) for group in groups]) / len(conditions) ** 2
    error = math.sqrt(variances.sum())
    if error <= RELATIVE_ROUNDING * np.abs(means).max():
        p = _separation(list(map(len, groups)), differences - limit)
        return Effect(effect, effect, effect, p, n, limit, **names)
    freedom = 1 / float(((variances / variances.sum()) ** 2 / [len(group) - 1 for group in groups]).sum())
    reach = float(stdtrit(freedom, 0.975)) * error
    p = _t_test(effect - limit, error, freedom)
    return Effect(effect, effect - reach, effect + reach, p, n, limit, freedom, **names)


def _separation(sizes: Sequence[int], distances: np.ndarray) -> float:
    """Return the p value of a permutation test, for groups that do not vary.

    It is the probability that chance separates the groups in this way under every condition that is not at
    the limit.
    """
    apart = np.flatnonzero(np.abs(distances) > ROUNDING)
    if not len(apart) or distances[apart].min() < 0 < distances[apart].max():
        return 1.0
    orders = [math.comb(sum(sizes[2 * k : 2 * k + 2]), sizes[2 * k]) for k in apart.tolist()]
    return min(1.0, 2 / math.prod(orders))


def equality(estimate: Effect, margin: float) -> float:
    """Return the p value of the claim that an effect is between -`margin` and `margin`, by two one-sided t
    tests; not-a-number if there was no t test.
    """
    if math.isnan(estimate.freedom):
        return math.nan
    distance = (margin - abs(estimate.effect)) / estimate.error
    return min(estimate.looks * float(stdtr(estimate.freedom, -distance)), 1.0)


def signed_rank(differences: Sequence[float], **names: Any) -> Effect:
    """Test whether differences are symmetric around 0, by Wilcoxon's signed-rank test, exact with ties too.

    Args:
        differences: at most about 15 differences, because all ways to flip the signs are counted.
        names: as in `paired`.

    Returns:
        The median difference, without an interval.
    """
    from scipy.stats import PermutationMethod, wilcoxon  # takes a second, which other commands spare

    median = float(np.median(differences)) if len(differences) else 0.0
    if len(differences) < 2 or not np.any(differences):  # either sign of one difference is as likely
        return Effect(median, p=1.0, n=len(differences), **names)
    every = PermutationMethod(n_resamples=2 ** len(differences))
    p = float(wilcoxon(differences, zero_method="pratt", method=every).pvalue)
    return Effect(median, p=p, n=len(differences), **names)

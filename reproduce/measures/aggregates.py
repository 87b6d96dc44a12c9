"""Statistics of many runs under several conditions: means and probabilities with bootstrap intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

RESAMPLES = 4000
MOST_RESAMPLES = 500
"""Most resamples of one group for the probability of improvement; 6 values have 462 different ones."""
ROUNDING = 1e-12


def interquartile_mean(values: Sequence[float] | np.ndarray) -> float:
    """Return the mean of the middle half of the values; not-a-number if there are none, or if one is
    not-a-number.

    Values at the quartiles count in part, so this is exact for any number of values. rliable (Agarwal et al.
    2021) instead leaves out the whole values below a quarter of their number at each end, as
    `scipy.stats.trim_mean` does. Both agree where the number of values is divisible by 4.
    """
    return float(_interquartile_means(np.asarray(values, float)[None])[0])


def stratified_interquartile_mean(
    strata: Sequence[Sequence[float]], confidence: float = 0.95
) -> tuple[float, ...]:
    """Return the mean of the conditions' interquartile means, with an interval by a bootstrap within each
    condition.

    The interquartile mean of all values together would leave out a condition in which all runs fail.

    Args:
        strata: values of each condition, at least one per condition.
        confidence: confidence level of the interval.

    Returns:
        Mean, lower end and upper end.
    """
    means = [_interquartile_means(_resampled(values, seed)) for seed, values in enumerate(strata)]
    point = float(np.mean([interquartile_mean(values) for values in strata]))
    return point, *_percentiles(np.mean(means, axis=0), confidence)


def probability_of_improvement(
    scores_x: Sequence[Sequence[float]], scores_y: Sequence[Sequence[float]], confidence: float = 0.95
) -> tuple[float, ...]:
    """Return the probability that one of our runs scores more than one of the others; a tie counts as half.

    The probability is averaged over conditions, as in Agarwal et al. 2021 (arXiv 2108.13264). Its interval is
    by a bootstrap within each condition. For groups of up to 6 values the bootstrap uses all possible
    resamples, because the extreme percentiles of random resamples would depend on a few of them.

    Args:
        scores_x: scores of our runs under each condition.
        scores_y: scores of the other runs, with the conditions in the same order.
        confidence: confidence level of the interval.

    Returns:
        Probability, lower end and upper end; all are not-a-number if a group is empty or has a value that is.
    """
    pairs = [(np.asarray(x, float), np.asarray(y, float)) for x, y in zip(scores_x, scores_y, strict=True)]
    if not pairs or any(not len(group) or np.isnan(group).any() for pair in pairs for group in pair):
        return math.nan, math.nan, math.nan
    steps = math.lcm(*(2 * len(x) * len(y) for x, y in pairs))  # steps * share is a whole number
    point = float(np.mean([_wins(x, y).mean() for x, y in pairs]))
    distribution = np.ones(1)
    for seed, (x, y) in enumerate(pairs):
        distribution = np.convolve(distribution, _distribution(x, y, steps, seed))
    reached = np.cumsum(distribution)
    edges = 0.5 * (1 - confidence), 0.5 * (1 + confidence)
    low, high = (np.searchsorted(reached, edge - ROUNDING) / (steps * len(pairs)) for edge in edges)
    return point, float(low), float(high)


def _distribution(x: np.ndarray, y: np.ndarray, steps: int, seed: int) -> np.ndarray:
    """Return the bootstrap distribution of the share of pairs that our runs win.

    Returns:
        Probabilities of the shares 0, 1 / steps, ..., 1: [steps + 1].
    """
    x_drawn, x_weights = _resamples(len(x), 2 * seed)
    y_drawn, y_weights = _resamples(len(y), 2 * seed + 1)
    shares = x_drawn @ _wins(x, y) @ y_drawn.T / (len(x) * len(y))
    places = np.rint(steps * shares).astype(int)
    weights = np.outer(x_weights, y_weights)
    return np.bincount(places.ravel(), weights.ravel(), minlength=steps + 1)


def _resamples(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return resamples of `count` values: how often each value is drawn, [m, count], and the probabilities,
    [m].

    These are all possible resamples, or `MOST_RESAMPLES` random ones if there are more than that.
    """
    if math.comb(2 * count - 1, count) > MOST_RESAMPLES:
        drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=MOST_RESAMPLES)
        return drawn, np.full(MOST_RESAMPLES, 1 / MOST_RESAMPLES)
    places = itertools.combinations_with_replacement(range(count), count)
    drawn = np.array([np.bincount(chosen, minlength=count) for chosen in places])
    orders = [math.factorial(count) / math.prod(map(math.factorial, counts)) for counts in drawn.tolist()]
    return drawn, np.array(orders) / count**count


def _wins(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return 1 for each pair in which the value of x is greater, 0.5 for a tie and 0 otherwise: [x, y]."""
    return (x[:, None] > y) + 0.5 * (x[:, None] == y)


def _resampled(values: Sequence[float], seed: int) -> np.ndarray:
    """Return draws from the n values with replacement: [RESAMPLES, n]."""
    places = np.random.default_rng(seed).integers(len(values), size=(RESAMPLES, len(values)))
    return np.asarray(values, float)[places]


def _interquartile_means(samples: np.ndarray) -> np.ndarray:
    """Return the interquartile mean of each row of `samples` [m, n]: [m]."""
    ordered = np.sort(samples, axis=1)
    count = ordered.shape[1]
    if not count:
        return np.full(len(samples), np.nan)
    edges = np.arange(count + 1)
    weights = np.clip(np.minimum(edges[1:], 0.75 * count) - np.maximum(edges[:-1], 0.25 * count), 0, None)
    return ordered @ (weights / weights.sum())


def _percentiles(values: np.ndarray, confidence: float) -> tuple[float, float]:
    low, high = np.percentile(values, [50 * (1 - confidence), 50 * (1 + confidence)])
    return float(low), float(high)

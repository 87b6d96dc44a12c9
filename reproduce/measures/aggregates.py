"""What many runs under several conditions say together: means and probabilities with bootstrap intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

RESAMPLES = 4000
MOST_RESAMPLES = 500
"""Of one group, for the probability of improvement: those of 6 values are 462."""
ROUNDING = 1e-12


def interquartile_mean(values: Sequence[float] | np.ndarray) -> float:
    """Return the mean of the middle half; values at the quartiles count in part."""
    return float(_interquartile_means(np.asarray(values, float)[None])[0])


def stratified_interquartile_mean(strata: Sequence[Sequence[float]], confidence: float = 0.95) -> tuple[float, ...]:
    """Return the mean over conditions of their interquartile means, and its interval by a bootstrap within each.

    The interquartile mean of all values together would leave out a condition in which all runs fail.

    Args:
        strata: the values of each condition; each has one at least.
        confidence: of the interval.

    Returns:
        Mean, lower end and upper end.
    """
    means = [_interquartile_means(_resampled(values, seed)) for seed, values in enumerate(strata)]
    point = float(np.mean([interquartile_mean(values) for values in strata]))
    return point, *_percentiles(np.mean(means, axis=0), confidence)


def probability_of_improvement(
    ours: Sequence[Sequence[float]], others: Sequence[Sequence[float]], confidence: float = 0.95
) -> tuple[float, ...]:
    """Return the probability that a run of ours scores more than one of the others, a tie counting half.

    It is the mean over conditions, as in Agarwal et al. 2021 (arXiv 2108.13264), with the interval of a bootstrap
    within each condition. The bootstrap distribution is computed from all resamples of up to 6 values, not from
    random draws, whose extreme percentiles would depend on a few of them.

    Args:
        ours: the scores of each condition.
        others: the same, in the same order.
        confidence: of the interval.

    Returns:
        Probability, lower end and upper end.
    """
    pairs = [(np.asarray(mine, float), np.asarray(theirs, float)) for mine, theirs in zip(ours, others, strict=True)]
    steps = math.lcm(*(2 * len(mine) * len(theirs) for mine, theirs in pairs))  # in which each share is a whole number
    point = float(np.mean([_wins(mine, theirs).mean() for mine, theirs in pairs]))
    distribution = np.ones(1)
    for seed, (mine, theirs) in enumerate(pairs):
        distribution = np.convolve(distribution, _distribution(mine, theirs, steps, seed))
    reached = np.cumsum(distribution)
    edges = 0.5 * (1 - confidence), 0.5 * (1 + confidence)
    low, high = (np.searchsorted(reached, edge - ROUNDING) / (steps * len(pairs)) for edge in edges)
    return point, float(low), float(high)


def _distribution(ours: np.ndarray, others: np.ndarray, steps: int, seed: int) -> np.ndarray:
    """Return the bootstrap distribution of the share of pairs that ours win: [steps + 1], at 0, 1 / steps, ..., 1."""
    ours_drawn, ours_weights = _resamples(len(ours), 2 * seed)
    others_drawn, others_weights = _resamples(len(others), 2 * seed + 1)
    shares = ours_drawn @ _wins(ours, others) @ others_drawn.T / (len(ours) * len(others))
    places = np.rint(steps * shares).astype(int)
    weights = np.outer(ours_weights, others_weights)
    return np.bincount(places.ravel(), weights.ravel(), minlength=steps + 1)


def _resamples(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return resamples of so many values: how often each value is drawn, [m, count], and their probabilities, [m].

    They are all that there are, or `MOST_RESAMPLES` random ones where there are more.
    """
    if math.comb(2 * count - 1, count) > MOST_RESAMPLES:
        drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=MOST_RESAMPLES)
        return drawn, np.full(MOST_RESAMPLES, 1 / MOST_RESAMPLES)
    places = itertools.combinations_with_replacement(range(count), count)
    drawn = np.array([np.bincount(each, minlength=count) for each in places])
    orders = [math.factorial(count) / math.prod(map(math.factorial, each)) for each in drawn.tolist()]
    return drawn, np.array(orders) / count**count


def _wins(ours: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return for each pair whether ours is greater, [ours, others]: 1, 0, or 0.5 for a tie."""
    return (ours[:, None] > others) + 0.5 * (ours[:, None] == others)


def _resampled(values: Sequence[float], seed: int) -> np.ndarray:
    """Return [RESAMPLES, n] draws with replacement."""
    places = np.random.default_rng(seed).integers(len(values), size=(RESAMPLES, len(values)))
    return np.asarray(values, float)[places]


def _interquartile_means(samples: np.ndarray) -> np.ndarray:
    """Return the interquartile mean of each row of [m, n]."""
    ordered = np.sort(samples, axis=1)
    count = ordered.shape[1]
    edges = np.arange(count + 1)
    weights = np.clip(np.minimum(edges[1:], 0.75 * count) - np.maximum(edges[:-1], 0.25 * count), 0, None)
    return ordered @ (weights / weights.sum())


def _percentiles(values: np.ndarray, confidence: float) -> tuple[float, float]:
    low, high = np.percentile(values, [50 * (1 - confidence), 50 * (1 + confidence)])
    return float(low), float(high)

"""Statistics of many runs under several conditions: means and probabilities with bootstrap intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ga3c_tf.reproduce.measures.estimates import Effect

MOST_RESAMPLES = 500
"""Most resamples of one group for the probability of improvement; 6 values have 462 different ones."""
ROUNDING = 1e-12


def interquartile_mean(values: ArrayLike) -> float:
    """Return the mean of the middle half of the values; not-a-number without values, or if one is.

    Values at the quartiles count in part, so this is exact for any number of values. rliable (Agarwal et al.
    2021) leaves out whole values, as `scipy.stats.trim_mean` does. Both agree where the number is divisible
    by 4.
    """
    ordered = np.sort(np.asarray(values, float))
    count = len(ordered)
    if not count:
        return math.nan
    edges = np.clip(np.arange(count + 1), 0.25 * count, 0.75 * count)
    return float(ordered @ np.diff(edges) / (0.5 * count))


def probability_of_improvement(
    scores_x: Sequence[ArrayLike], scores_y: Sequence[ArrayLike], confidence: float = 0.95
) -> Effect:
    """Return the probability that a run of the first group scores more than one of the second; a tie is half.

    The probability is averaged over conditions, as in Agarwal et al. 2021 (arXiv 2108.13264). Its interval is
    by a bootstrap within each condition. For groups of up to 6 values the bootstrap uses all possible
    resamples, because the extreme percentiles of random resamples would depend on a few of them.

    Args:
        scores_x, scores_y: scores of both groups under each condition, in the same order.
        confidence: confidence level of the interval.

    Returns:
        The probability against a limit of 0.5; without numbers if a group is empty or has a not-a-number.
    """
    pairs = [(np.asarray(x, float), np.asarray(y, float)) for x, y in zip(scores_x, scores_y, strict=True)]
    n = min((len(group) for pair in pairs for group in pair), default=0)
    if not n or any(np.isnan(group).any() for pair in pairs for group in pair):
        return Effect(limit=0.5)
    steps = math.lcm(*(2 * len(x) * len(y) for x, y in pairs))  # steps * share is a whole number
    distribution = np.ones(1)
    for seed, (x, y) in enumerate(pairs):
        distribution = np.convolve(distribution, _distribution(x, y, steps, seed))
    edges = np.array([1 - confidence, 1 + confidence]) / 2 - ROUNDING
    low, high = np.searchsorted(np.cumsum(distribution), edges) / (steps * len(pairs))
    effect = float(np.mean([_wins(x, y).mean() for x, y in pairs]))
    return Effect(effect, float(low), float(high), n=n, limit=0.5)


def _distribution(x: np.ndarray, y: np.ndarray, steps: int, seed: int) -> np.ndarray:
    """Return the bootstrap probabilities of the shares 0, 1 / steps, ..., 1 of pairs that x wins."""
    x_drawn, x_weights = _resamples(len(x), 2 * seed)
    y_drawn, y_weights = _resamples(len(y), 2 * seed + 1)
    shares = x_drawn @ _wins(x, y) @ y_drawn.T / (len(x) * len(y))
    places = np.rint(steps * shares).astype(int)
    return np.bincount(places.ravel(), np.outer(x_weights, y_weights).ravel(), minlength=steps + 1)


def _resamples(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return how often each of `count` values is drawn, [m, count], and the probabilities, [m].

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

"""What many runs under several conditions say together: means and probabilities with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

RESAMPLES = 4000


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
    within each condition.

    Args:
        ours: the scores of each condition.
        others: the same, in the same order.
        confidence: of the interval.

    Returns:
        Probability, lower end and upper end.
    """
    found = []
    for seed, (mine, theirs) in enumerate(zip(ours, others, strict=True)):
        resampled = _resampled(mine, 2 * seed)[:, :, None], _resampled(theirs, 2 * seed + 1)[:, None, :]
        found.append((_shares(np.asarray(mine)[None, :, None], np.asarray(theirs)[None, None]), _shares(*resampled)))
    point = float(np.mean([shares[0] for shares, _ in found]))
    return point, *_percentiles(np.mean([shares for _, shares in found], axis=0), confidence)


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


def _shares(ours: np.ndarray, others: np.ndarray) -> np.ndarray:
    return ((ours > others) + 0.5 * (ours == others)).mean(axis=(1, 2))


def _percentiles(values: np.ndarray, confidence: float) -> tuple[float, float]:
    low, high = np.percentile(values, [50 * (1 - confidence), 50 * (1 + confidence)])
    return float(low), float(high)

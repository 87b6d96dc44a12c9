"""Policy lag as a divergence: how far the policy has moved from the one that chose the actions of a batch.

pi is the probability of the action taken under the policy before the update, mu its probability under the
policy that chose it. The estimates are means over actions sampled from mu, so they need only these two
probabilities per action.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ga3c_tf.experience.columns import NO_VERSION, Batch

MEASURED_EVERY = 11
"""The divergence is measured for one in this many batches.

Measured for all batches, it cost GA3C on MinAtar 8 % of its speed, and for one in seven up to 2 %.
The number is prime, so that with epochs of 4 or 8 minibatches it is not always the same minibatch.
"""
NO_VERSIONS = np.zeros(0, np.int64)
ROUNDING = 1e-4
"""Relative tolerance of ratios: because of rounding, the ratio of equal probabilities is not exactly 1."""


class Divergence(NamedTuple):
    """Divergence of one batch and fit of its values, or the means over several batches; not-a-number where a
    measure does not apply.
    """

    kl: float  # mean of log mu - log pi: KL(mu, pi) in nats
    total_variation: float  # half the mean of |pi / mu - 1|
    # (sum w)^2 / sum w^2 of the ratios w = pi / mu, divided by the states; 1 without lag.
    effective_sample_size: float
    clipped: float  # share of the ratios that the loss clips
    floored: float  # share of the actions whose probability pi is below the floor of the logarithm
    chi_squared: float  # mean of (pi / mu)^2, minus 1: the chi-squared divergence of pi from mu
    k3: float  # mean of pi / mu - log(pi / mu) - 1: KL(mu, pi) in nats, with no negative terms
    m2: float  # mean of log(pi / mu)^2
    # Means of the returns R, of R^2, of the errors R - V and of their squares, for `explained_variance`.
    return_mean: float = math.nan
    return_square: float = math.nan
    error_mean: float = math.nan
    error_square: float = math.nan


class Bounds(NamedTuple):
    """What a loss clips or floors; None where it has no such bound."""

    lowest_ratio: float | None = None  # of importance ratios pi / mu; smaller ones count as clipped
    highest_ratio: float | None = None  # larger ones count as clipped
    # Floor of the probability of an action taken, inside its logarithm.
    lowest_probability: float | None = None

    @classmethod
    def of_ratio(cls, most: float) -> Bounds:
        """Return the bounds of a loss that weights advantages by ratios of at most `most`, which may be 1."""
        return cls(highest_ratio=most * (1 + ROUNDING))


MOMENTS = ("return_mean", "return_square", "error_mean", "error_square")
"""Fields of `Divergence` from which `explained_variance` is computed."""
UNKNOWN = Divergence(*[math.nan] * len(Divergence._fields))


class SegmentLag(NamedTuple):
    """Policy lag within the segments of a batch, in updates: means over segments, not-a-number if none."""

    # Difference between the oldest and the newest version that chose an action of a segment.
    version_spread: float
    # Updates since the version that gave the bootstrap value, for segments with such a value.
    bootstrap_lag: float
    # Updates since the version that gave the carry before a segment, for segments within an episode.
    carry_age: float = math.nan


NO_SEGMENTS = SegmentLag(math.nan, math.nan)


class DivergenceSampler:
    """Measures the divergence of one in so many batches. Thread-safe.

    Args:
        bounds: what the loss clips or floors.
        every: number of batches of which the first is measured.
        is_behavior: whether the policy itself chose the actions. Then only `floored` and the means of returns
            and errors are known: the divergence is that of the weights that are updated, which are not the
            policy's.
    """

    def __init__(self, bounds: Bounds, every: int = MEASURED_EVERY, is_behavior: bool = False):
        self._bounds = bounds
        self._is_behavior = is_behavior
        self._every = every
        self._batches = itertools.count()

    def sample(self, batch: Batch, log_pi: np.ndarray) -> Divergence:
        """Count a batch; return its divergence, or `UNKNOWN` for one that is not measured.

        Args:
            batch: training batch; one without `mu_log_probabilities` and `mu_values` is not measured.
            log_pi: [B], log-probability of each action taken, under the policy before the update.
        """
        if next(self._batches) % self._every:
            return UNKNOWN
        if not (hasattr(batch, "mu_log_probabilities") and hasattr(batch, "mu_values")):
            return UNKNOWN
        measured = divergence(log_pi, batch.mu_log_probabilities, self._bounds)
        if self._is_behavior:
            measured = UNKNOWN._replace(floored=measured.floored)
        returns = batch.returns.astype(np.float64)
        errors = returns - batch.mu_values
        return measured._replace(
            return_mean=_mean(returns),
            return_square=_mean(returns * returns),
            error_mean=_mean(errors),
            error_square=_mean(errors * errors),
        )


def divergence(log_pi: np.ndarray, log_mu: np.ndarray, bounds: Bounds) -> Divergence:
    """Estimate the divergence of a batch.

    Args:
        log_pi: [B], log-probability of each action taken, under the policy before the update.
        log_mu: [B], log-probability of the same actions, under the policy that chose them.
        bounds: what the loss clips or floors.
    """
    difference = np.asarray(log_pi, np.float64) - log_mu
    kl = -_mean(difference)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        ratios = np.exp(difference)
        mean = _mean(ratios)
        mean_square = float(ratios @ ratios) / len(ratios)
        return Divergence(
            kl=kl,
            total_variation=0.5 * _mean(np.abs(ratios - 1)),
            effective_sample_size=effective_sample_size(log_pi, log_mu),
            clipped=_clipped(ratios, bounds),
            floored=_floored(log_pi, bounds),
            chi_squared=mean_square - 1,
            k3=mean + kl - 1,
            m2=float(difference @ difference) / len(difference),
        )


def effective_sample_size(log_pi: np.ndarray, log_mu: np.ndarray) -> float:
    """Return that of the ratios pi / mu of a batch, as a share of its states: above 0, and 1 without lag.

    Args:
        log_pi, log_mu: as for `divergence`.
    """
    difference = np.asarray(log_pi, np.float64) - log_mu
    ratios = np.exp(difference - difference.max())  # a common factor changes nothing
    total = np.add.reduce(ratios)
    return float(total * total / (ratios @ ratios) / len(ratios))


def explained_variance(measured: Mapping[str, float]) -> float:
    """Return the share of the returns' variance that the values explain: 1 - Var(R - V) / Var(R).

    It is 1 for perfect values, 0 for values that are no better than a constant, and below 0 for worse ones.

    Args:
        measured: means of `MOMENTS` over many states. The returns of one batch may differ so little that its
            own share says nothing.

    Returns:
        The share; not-a-number where all returns are equal.
    """
    variance = measured["return_square"] - measured["return_mean"] ** 2
    errors = measured["error_square"] - measured["error_mean"] ** 2
    is_constant = variance <= 1e-12 * measured["return_square"]  # but for the rounding of float64
    return math.nan if is_constant else 1 - errors / variance


def segment_lag(batch: Batch, version: int) -> SegmentLag:
    """Measure the policy lag within the segments of a batch.

    Args:
        batch: batch of which `versions`, `lengths`, `bootstrap_versions` and, with memory, `carry_versions`
            are used.
        version: version of the model before the update on this batch.
    """
    starts = np.cumsum(batch.lengths) - batch.lengths
    newest = np.maximum.reduceat(batch.versions, starts)
    oldest = np.minimum.reduceat(batch.versions, starts)
    carry_versions = getattr(batch, "carry_versions", NO_VERSIONS)
    return SegmentLag(
        _mean(newest - oldest), _age(batch.bootstrap_versions, version), _age(carry_versions, version)
    )


def _age(versions: np.ndarray, version: int) -> float:
    """Return the mean number of updates from these versions to `version`; those of no model are left out."""
    given = versions[versions != NO_VERSION]
    return version - _mean(given) if len(given) else math.nan


def _mean(values: np.ndarray) -> float:
    """Return the mean. For the few values of a batch this takes a third of the time of `values.mean()`."""
    return float(np.add.reduce(values)) / len(values)


def _share(chosen: np.ndarray) -> float:
    """Return the share of the values that are true."""
    return np.count_nonzero(chosen) / len(chosen)


def _clipped(ratios: np.ndarray, bounds: Bounds) -> float:
    if bounds.highest_ratio is None:
        return math.nan
    outside = ratios > bounds.highest_ratio
    if bounds.lowest_ratio is not None:
        outside |= ratios < bounds.lowest_ratio
    return _share(outside)


def _floored(log_pi: np.ndarray, bounds: Bounds) -> float:
    if bounds.lowest_probability is None:
        return math.nan
    return _share(log_pi < math.log(bounds.lowest_probability))

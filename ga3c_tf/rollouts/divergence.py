"""Policy lag as a divergence: how far the policy has moved from the one that chose the actions of a batch.

pi is the probability of the action taken under the policy before the update, mu its probability under the policy that
chose it. The estimates are means over actions sampled from mu, so they need only these two probabilities per action.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.rollouts.columns import NO_VERSION, Batch


class Divergence(NamedTuple):
    """Divergence of one batch, or its mean over several batches; not-a-number where a measure does not apply."""

    kl: float  # mean of log mu - log pi: KL(mu, pi) in nats
    total_variation: float  # half the mean of |pi / mu - 1|
    effective_sample_size: float  # (sum w)^2 / sum w^2 of the ratios w = pi / mu, divided by the states; 1 without lag
    clipped: float  # share of the ratios that the correction clips
    floored: float  # share of the actions whose probability pi is below the floor of the logarithm


ROUNDING = 1e-4
"""Relative tolerance of ratios: because of rounding, the ratio of equal probabilities is not exactly 1."""
UNKNOWN = Divergence(*[math.nan] * 5)


class SegmentLag(NamedTuple):
    """Policy lag within the segments of a batch, in updates: means over segments, not-a-number if there are none."""

    version_spread: float  # difference between the oldest and the newest version that chose an action of a segment
    bootstrap_lag: float  # updates since the version that gave the bootstrap value, for segments with such a value


NO_SEGMENTS = SegmentLag(math.nan, math.nan)


def divergence(log_pi: np.ndarray, log_mu: np.ndarray, config: Config) -> Divergence:
    """Estimate the divergence of a batch.

    Args:
        log_pi: [B], log-probability of each action taken, under the policy before the update.
        log_mu: [B], log-probability of the same actions, under the policy that chose them.
        config: settings; the correction determines which ratios are clipped, and whether there is a floor.
    """
    difference = np.asarray(log_pi, np.float64) - log_mu
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        ratios = np.exp(difference)
        total = np.add.reduce(ratios)
        return Divergence(
            kl=-_mean(difference),
            total_variation=0.5 * _mean(np.abs(ratios - 1)),
            effective_sample_size=float(total * total / (ratios @ ratios) / len(ratios)),
            clipped=_clipped(ratios, config),
            floored=_floored(log_pi, config),
        )


def segment_lag(batch: Batch, version: int) -> SegmentLag:
    """Measure the policy lag within the segments of a batch.

    Args:
        batch: batch of which `versions`, `lengths` and `bootstrap_versions` are used.
        version: version of the model before the update on this batch.
    """
    starts = np.cumsum(batch.lengths) - batch.lengths
    newest = np.maximum.reduceat(batch.versions, starts)
    oldest = np.minimum.reduceat(batch.versions, starts)
    given = batch.bootstrap_versions[batch.bootstrap_versions != NO_VERSION]
    return SegmentLag(_mean(newest - oldest), version - _mean(given) if len(given) else math.nan)


def _mean(values: np.ndarray) -> float:
    """Return the mean. For the few values of a batch this takes a third of the time of `values.mean()`."""
    return float(np.add.reduce(values)) / len(values)


def _share(chosen: np.ndarray) -> float:
    """Return the share of the values that are true."""
    return np.count_nonzero(chosen) / len(chosen)


def _clipped(ratios: np.ndarray, config: Config) -> float:
    correction = config.correction_used
    if ":" in config.loss:
        return math.nan
    if correction == "ppo":
        return _share(np.abs(ratios - 1) > config.clip_ratio)
    bounds = {"clipped-is": config.importance_clip, "one-step": config.rho_bar, "v-trace": config.rho_bar}
    if correction not in bounds:
        return math.nan
    return _share(ratios > bounds[correction] * (1 + ROUNDING))


def _floored(log_pi: np.ndarray, config: Config) -> float:
    if config.correction_used != "epsilon" or ":" in config.loss:
        return math.nan
    return _share(log_pi < math.log(config.log_epsilon))

"""Trust regions: surrogate objectives whose ratio of probabilities is kept near 1, PPO's and its descendants.

B is the number of states in a batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from ga3c_tf.algorithms.actor_critic.weights import Weighted
from ga3c_tf.algorithms.reductions import total
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.divergence import Bounds
from ga3c_tf.model.tensorflow import tf

SECOND_MOMENT = 0.04
"""M2PO's bound of the mean squared logarithm of the ratios of harmful steps (Infini-AI-Lab/M2PO)."""
M2PO_RANGE = 0.7, 1.5
"""The range in which M2PO clips no ratio."""


class TrustRegion(ABC):
    """The objective of a policy that must stay near another one.

    Attributes:
        columns: columns of the trajectory that it reads, besides those of advantages.
    """

    columns: ClassVar[tuple[str, ...]] = ("mu_log_probabilities",)

    @property
    def bounds(self) -> Bounds:
        """What is clipped of pi / mu; that of other ratios, or of each batch, is not counted."""
        return Bounds()

    def numerator(self, batch: Batch, log_pi: tf.Tensor) -> tf.Tensor:
        """Return the logarithms [B] in the numerator of the weights: those of pi, or of another policy."""
        return log_pi

    @abstractmethod
    def objectives(self, batch: Batch, log_pi: tf.Tensor, weighted: Weighted) -> tf.Tensor:
        """Return the objective of each action, [B] float32, to be maximized in sum.

        Args:
            batch: training batch.
            log_pi: [B] float32, log-probability of the action taken under the current policy.
            weighted: advantages, and their weights.
        """


@dataclass(frozen=True)
class Clipped(TrustRegion):
    """PPO (Schulman et al. 2017). The clipped ratio pi / mu is the weight.

    A batch may be trained on several times. Its advantages stay the same in every epoch if their baseline is
    the value from the time when the action was chosen.

    Args:
        clip_ratio: half the width of the clip range around 1.
    """

    clip_ratio: float

    @property
    def bounds(self) -> Bounds:
        return Bounds(lowest_ratio=1 - self.clip_ratio, highest_ratio=1 + self.clip_ratio)

    def objectives(self, batch: Batch, log_pi: tf.Tensor, weighted: Weighted) -> tf.Tensor:
        ratio = tf.exp(log_pi - batch.mu_log_probabilities)
        return clipped(ratio, weighted.advantages, 1 - self.clip_ratio, 1 + self.clip_ratio)


@dataclass(frozen=True)
class Decoupled(TrustRegion):
    """Decoupled PPO (Hilton et al. 2021, arXiv 2110.00641): clips the ratio to a newer policy than mu.

    The weights are those of the newer, proximal policy to mu. Its logarithms are a column of the batch.
    """

    clip_ratio: float
    columns: ClassVar[tuple[str, ...]] = ("proximal_log_probabilities",)

    def numerator(self, batch: Batch, log_pi: tf.Tensor) -> tf.Tensor:
        return batch.proximal_log_probabilities

    def objectives(self, batch: Batch, log_pi: tf.Tensor, weighted: Weighted) -> tf.Tensor:
        ratio = tf.exp(log_pi - self.numerator(batch, tf.stop_gradient(log_pi)))
        objectives = clipped(ratio, weighted.advantages, 1 - self.clip_ratio, 1 + self.clip_ratio)
        return weighted.weights * objectives


@dataclass(frozen=True)
class LogLinear(Decoupled):
    """Its proximal policy is that of one update ago, estimated without a second network.

    Its logarithms lie between those of mu and pi, in proportion to the updates (AReaL's log-linear form).
    """

    columns = ("mu_log_probabilities", "versions")

    def numerator(self, batch: Batch, log_pi: tf.Tensor) -> tf.Tensor:
        updates = tf.cast(batch.version - batch.versions, tf.float32)
        share = tf.maximum(updates - 1.0, 0.0) / tf.maximum(updates, 1.0)
        return batch.mu_log_probabilities + share * (log_pi - batch.mu_log_probabilities)


class SecondMoment(TrustRegion):
    """M2PO: the clip range is as wide as the second moment of the harmful steps' log-ratios allows.

    Harmful are steps that have become likelier and whose advantage is positive, or less likely and negative:
    another update would move them further from mu.
    """

    def objectives(self, batch: Batch, log_pi: tf.Tensor, weighted: Weighted) -> tf.Tensor:
        log_ratio = log_pi - batch.mu_log_probabilities
        log_bound = self._log_bound(batch, tf.stop_gradient(log_ratio), weighted.advantages)
        lowest = tf.minimum(tf.exp(-log_bound), M2PO_RANGE[0])
        highest = tf.maximum(tf.exp(log_bound), M2PO_RANGE[1])
        return clipped(tf.exp(log_ratio), weighted.advantages, lowest, highest)

    @staticmethod
    def _log_bound(batch: Batch, log_ratio: tf.Tensor, advantages: tf.Tensor) -> tf.Tensor:
        harmful = tf.cast(advantages * log_ratio > 0, tf.float32)
        most = SECOND_MOMENT * total(batch, harmful)
        squares = harmful * tf.square(log_ratio)
        if "mask" in vars(batch):
            squares = tf.where(batch.mask, squares, 0.0)
        return tf.sqrt(largest_bound(squares, most))


def largest_bound(values: tf.Tensor, most: tf.Tensor) -> tf.Tensor:
    """Return the largest bound x with sum(min(values, x)) <= most; infinity if sum(values) <= most.

    Args:
        values: [B] float32, at least 0.
        most: scalar float32, at least 0.

    Returns:
        Scalar float32.
    """
    ordered = tf.sort(values)
    smaller = tf.cumsum(ordered, exclusive=True)  # sum of those before
    others = tf.cast(tf.size(values) - tf.range(tf.size(values)), tf.float32)  # it and those after
    unbounded = tf.cast(smaller + others * ordered <= most, tf.int32)  # first ones, then zeros
    place = tf.minimum(tf.reduce_sum(unbounded), tf.size(values) - 1)
    bound = (most - tf.gather(smaller, place)) / tf.gather(others, place)
    return tf.where(tf.reduce_sum(values) <= most, float("inf"), bound)


def clipped(
    ratio: tf.Tensor, advantages: tf.Tensor, lowest: float | tf.Tensor, highest: float | tf.Tensor
) -> tf.Tensor:
    """Compute PPO's objective of each action (Schulman et al. 2017, arXiv 1707.06347, equation 7).

    It is the smaller of ratio * advantage and clipped ratio * advantage. A policy change beyond the clip
    range therefore does not increase the objective.

    Args:
        ratio: [B] float32, probability of the action taken over that under an older policy.
        advantages: [B] float32.
        lowest: lower end of the clip range.
        highest: upper end.

    Returns:
        [B] float32, to be maximized in sum.
    """
    bounded = tf.clip_by_value(ratio, lowest, highest)
    return tf.minimum(ratio * advantages, bounded * advantages)

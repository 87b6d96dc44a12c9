"""Masks: steps on which pi and mu differ too much are left out, as a part of a correction of policy lag.

A step that is left out adds nothing to the policy's objective, but it counts in a batch's size. Its value is
trained all the same.

B is the number of states in a batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.divergence import Bounds
from ga3c_tf.model.tensorflow import tf


class Mask(ABC):
    """Which steps of a batch are trained on.

    Attributes:
        columns: columns of the trajectory that `keeps` reads.
        bounds: the ratios outside which every step is left out.
    """

    columns: tuple[str, ...] = ("mu_log_probabilities",)
    bounds = Bounds()

    @abstractmethod
    def keeps(self, batch: Batch, log_pi: tf.Tensor, advantages: tf.Tensor) -> tf.Tensor:
        """Return whether a step is trained on, bool [B].

        Args:
            batch: training batch.
            log_pi: [B] float32, log-probability of the action taken under the current policy.
            advantages: [B] float32.
        """


class RatioRange(Mask):
    """IcePop: steps whose ratio pi / mu is outside 0.5 to 2 are left out (verl's defaults)."""

    bounds = Bounds(lowest_ratio=0.5, highest_ratio=2.0)

    def keeps(self, batch: Batch, log_pi: tf.Tensor, advantages: tf.Tensor) -> tf.Tensor:
        ratios = tf.exp(log_pi - batch.mu_log_probabilities)
        return (ratios >= self.bounds.lowest_ratio) & (ratios <= self.bounds.highest_ratio)


class TotalVariation(Mask):
    """DPPO: steps are left out whose probability has already moved by 0.2 in the direction of the advantage.

    The bound is that of prime-rl. Its penalty of 0.001 times the squared log-ratio is left out here.
    """

    most = 0.2

    def keeps(self, batch: Batch, log_pi: tf.Tensor, advantages: tf.Tensor) -> tf.Tensor:
        moved = tf.exp(log_pi) - tf.exp(batch.mu_log_probabilities)
        return tf.sign(advantages) * moved <= self.most


class NegativeSegments(Mask):
    """DeepSeek-V3.2: steps with a negative advantage are left out where their segment has become unlikely.

    A segment has if the mean of log(mu / pi) over its steps is above 0.5 (TRL's default).
    """

    columns = ("mu_log_probabilities", "lengths")
    most = 0.5

    def keeps(self, batch: Batch, log_pi: tf.Tensor, advantages: tf.Tensor) -> tf.Tensor:
        segments = tf.size(batch.lengths)
        rows = tf.range(tf.size(log_pi))
        # Rows of padding come after the last segment.
        numbers = tf.searchsorted(tf.cumsum(batch.lengths), rows, side="right")
        sums = tf.math.unsorted_segment_sum(batch.mu_log_probabilities - log_pi, numbers, segments + 1)
        means = sums[:-1] / tf.maximum(tf.cast(batch.lengths, tf.float32), 1.0)
        of_steps = tf.gather(means, tf.minimum(numbers, segments - 1))
        return (advantages >= 0) | (of_steps <= self.most)

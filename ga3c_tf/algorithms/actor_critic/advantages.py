"""Advantages of the actions taken: returns minus values, normalized if the settings say so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ga3c_tf.algorithms.reductions import mean, size
from ga3c_tf.experience.columns import Batch
from ga3c_tf.model.tensorflow import tf

NORMALIZATION_EPSILON = 1e-8
"""Added to the standard deviation of advantages, as in Stable-Baselines3."""
ROUNDING = 1e-5
"""Standard deviation relative to the mean up to which advantages count as equal: float32 rounds the mean of
thousands of equal numbers to one that differs from them by some millionths."""


@dataclass(frozen=True)
class Advantages:
    """Advantages R - V, into which no gradient flows.

    Args:
        baseline: V is the output of the current network ('values'), as in the paper, or the value from the
            time when the action was chosen ('mu_values').
        normalize: whether they are shifted and scaled to mean 0 and standard deviation 1.
    """

    baseline: Literal["values", "mu_values"] = "values"
    normalize: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the trajectory that `of` reads."""
        return ("returns",) if self.baseline == "values" else ("returns", "mu_values")

    def of(self, batch: Batch) -> tf.Tensor:
        """Return the advantages of a batch, [B] float32."""
        advantages = batch.returns - tf.stop_gradient(getattr(batch, self.baseline))
        return normalized(advantages, batch) if self.normalize else advantages


def normalized(advantages: tf.Tensor, batch: Batch) -> tf.Tensor:
    """Return the advantages [B] of a batch, shifted and scaled to mean 0 and standard deviation 1.

    Equal advantages become zeros. A single advantage is returned as it is, since minus the mean it would
    always be 0.
    """
    center = mean(batch, advantages)
    deviation = tf.sqrt(mean(batch, tf.square(advantages - center)))
    scale = tf.where(deviation > ROUNDING * tf.abs(center), deviation + NORMALIZATION_EPSILON, float("inf"))
    return tf.where(size(batch, advantages) > 1, (advantages - center) / scale, advantages)

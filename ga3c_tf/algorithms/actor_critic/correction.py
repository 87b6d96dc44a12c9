"""What a correction of policy lag is: a rule for policy and values to learn from an older policy's actions.

An importance ratio is pi(action) / mu(action): the probability of the action under the current policy,
divided by that under the policy that chose it.

B is the number of states in a batch and A the number of actions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.divergence import Bounds
from ga3c_tf.model.tensorflow import tf


class Estimate(NamedTuple):
    """What a correction makes of a batch."""

    objectives: tf.Tensor  # [B] float32, to be maximized in sum, without the entropy
    targets: tf.Tensor  # [B] float32, targets of the values
    masked: tf.Tensor | float = 0.0  # [B] float32, 1 for states whose objective is left out


class Correction(ABC):
    """How policy and values learn from actions that an older policy chose.

    Attributes:
        floor: smallest probability inside a logarithm; None for no floor. It also holds for the entropy.
        reads_version: whether `estimate` reads the number of updates done.
    """

    floor: float | None = None
    reads_version: bool = False

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Columns of the trajectory that `estimate` reads, besides the actions."""

    @property
    @abstractmethod
    def bounds(self) -> Bounds:
        """What is clipped or floored."""

    @abstractmethod
    def estimate(self, batch: Batch, logarithms: tf.Tensor) -> Estimate:
        """Return the objective of the policy and the targets of the values.

        Args:
            batch: training batch with `logits`, `values`, `actions` and the columns that the correction
                reads.
            logarithms: [B, A] float32, log pi, with the correction's floor.
        """


def importance_ratios(log_pi: tf.Tensor, log_mu: tf.Tensor, most: float) -> tf.Tensor:
    """Return the importance ratios pi / mu of the actions taken, at most `most`. No gradient flows into them.

    As a weight of advantages, this is tensorpack's clipped importance sampling. With rho-bar for `most`, it
    is IMPALA's one-step importance sampling (Espeholt et al. 2018, arXiv 1802.01561, table 2).

    Args:
        log_pi: [B] float32, log-probability of the action taken under the current policy.
        log_mu: [B] float32, log-probability of the action taken under the policy that chose it.
        most: upper bound of a ratio, above 0.

    Returns:
        [B] float32.
    """
    return tf.minimum(tf.exp(tf.stop_gradient(log_pi) - log_mu), most)

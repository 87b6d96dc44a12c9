"""The contract of the weights that a model trains: on its device, or in memory that processes share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ga3c_tf.model.tensorflow import tf


class Trainable(Protocol):
    """What computes gradients of its variables."""

    @property
    def variables(self) -> Sequence[tf.Variable]:
        """Trainable variables."""

    @property
    def gradients_of(self) -> Sequence[tuple[int, int]]:
        """For each gradient, index of its optimizer (0; with `dual_rmsprop`, 0 or 1) and of its variable."""


class WeightStore(Protocol):
    """Holds the weights and the statistics of the optimizer."""

    def push(self, gradients: Sequence[tf.Tensor], learning_rate: float) -> int:
        """Apply gradients in the order of `Trainable.gradients_of`; return the updates done with this one."""

    def pull(self) -> None:
        """Bring the network's variables up to date. Called after every update, also one that was skipped."""

    def version(self) -> int:
        """Return the number of updates done now, and let the model's version variable have it."""

    def slots(self) -> dict[str, list[tf.Variable]]:
        """Return the optimizer's variables in a checkpoint, by the name of their group."""

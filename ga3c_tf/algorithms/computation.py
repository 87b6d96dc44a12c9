"""What is computed of a network, as functions of its weights: the same for a plain and a compiled model.

B is the number of states in a batch, A the number of actions, M the number of metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from ga3c_tf.experience.columns import Batch, Column
from ga3c_tf.model.tensorflow import keras, tf

Network = Callable[..., Any]
"""From states [B, *state_shape], and `training`, to the network's outputs, in a graph."""


class GraphOutputs(NamedTuple):
    """What a graph computes of one batch."""

    gradients: list[list[tf.Tensor | None]]  # by optimizer and variable; None for a variable without one
    # [1 + M + B] float32: whether losses and gradients are finite, metrics, and a number for each step, in
    # one tensor because each copy to Python costs time.
    numbers: tf.Tensor

    @property
    def finite(self) -> tf.Tensor:
        """Whether losses and gradients are finite numbers, scalar bool."""
        return self.numbers[0] > 0


class Computation(Protocol):
    """A network, and what is computed of it.

    Attributes:
        network: Keras network.
        states: tf.TensorSpec of a batch of states.
        variables: trainable variables of the network.
        columns: columns of a batch that an update reads besides the states.
        needs_segments: whether one of them is of segments.
    """

    network: keras.Model
    states: tf.TensorSpec

    @property
    def variables(self) -> Sequence[tf.Variable]: ...

    @property
    def columns(self) -> Sequence[Column]: ...

    @property
    def needs_segments(self) -> bool: ...

    def check(self, batch: Batch) -> None:
        """Refuse states and columns of a wrong shape with a ValueError."""

    def answers(self, outputs: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Return policy [B, A] and values [B] from the network's outputs, in a graph."""

    def gradients_in_graph(
        self, network: Network, weights: Sequence[tf.Variable | tf.Tensor], batch: Batch
    ) -> GraphOutputs:
        """Return the clipped gradients of a batch, and what Python needs of it, in a graph.

        Args:
            network: the network with these weights.
            weights: what the gradients are of, in the order of `variables`.
            batch: batch of tensors with the states, the columns, `beta` and `version`; where some of its rows
                are padding, with `mask`.
        """

"""The weights of a network as one vector, with the statistics of its optimizers.

Each variable that a program reads costs its call some 0.002 ms, and each one that it changes a kernel.
P is the number of trained weights.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.model.compiled.optimizers import step_of
from ga3c_tf.model.tensorflow import tf


class VectorState(NamedTuple):
    """What an update changes."""

    weights: tf.Tensor  # [P] float32
    statistics: tuple[tf.Tensor, ...]  # [P] float32 each, as many of each optimizer
    version: tf.Tensor  # scalar int64, the number of updates done


class ReadableWeights(Protocol):
    """Weights that programs read."""

    def values(self) -> tuple[Sequence[tf.Tensor], tf.Tensor]:
        """Return the weights of each variable of the network and the number of updates done, in a graph."""


class VectorWeights:
    """Weights, statistics and version on a device, and the optimizers' step on them.

    Args:
        config: settings of the run; those for the optimizer are used.
        variables: the trained variables of the network, which give the weights their shapes.
        slots: the optimizers' variables, by group, for each variable of the network.
        version: scalar int64 variable, the number of updates done.
        device: TensorFlow device; None leaves the choice to TensorFlow.

    Attributes:
        changing: held while an update is called. XLA's programs read all variables first and write them last,
            so that of two updates at once one would be lost.
    """

    def __init__(
        self,
        config: Config,
        variables: Sequence[tf.Variable],
        slots: dict[str, list[tf.Variable]],
        version: tf.Variable,
        device: str | None,
    ):
        self.changing = threading.Lock()
        self._variables = variables
        self._groups = [*slots.values()]
        self._version = version
        self._step = step_of(config)
        self._shapes = [variable.shape for variable in variables]
        self._sizes = [variable.shape.num_elements() for variable in variables]
        with tf.device(device):
            self._state = _each(lambda value: tf.Variable(value, trainable=False), self._values())

    # between this state and the variables, from which checkpoints are written

    def load(self) -> None:
        """Take the state from the variables."""
        self.write(self._values())

    def store(self) -> None:
        """Write the state to the variables."""
        weights, statistics, version = _each(lambda variable: variable.numpy(), self._state)
        for variables, row in zip([self._variables, *self._groups], [weights, *statistics], strict=True):
            parts = np.split(row, np.cumsum(self._sizes)[:-1])
            for variable, part in zip(variables, parts, strict=True):
                variable.assign(part.reshape(variable.shape))
        self._version.assign(version)

    # in the graph of a program

    def read(self) -> VectorState:
        """Return the state."""
        return _each(lambda variable: variable.read_value(), self._state)

    def values(self) -> tuple[list[tf.Tensor], tf.Tensor]:
        """Return the weights of each variable of the network and the number of updates done."""
        state = self.read()
        return self.parts(state.weights), state.version

    def write(self, state: VectorState) -> None:
        """Replace the state."""
        _each(lambda variable, value: variable.assign(value), self._state, state)

    def parts(self, weights: tf.Tensor) -> list[tf.Tensor]:
        """Return the weights of each variable of the network, of its shape, from the vector of all."""
        parts = tf.split(weights, self._sizes)
        return [tf.reshape(part, shape) for part, shape in zip(parts, self._shapes, strict=True)]

    def stepped(
        self,
        state: VectorState,
        gradients: Sequence[Sequence[tf.Tensor | None]],
        learning_rate: tf.Tensor,
        applied: tf.Tensor,
    ) -> VectorState:
        """Return the state after one update.

        Args:
            state: the state before.
            gradients: by optimizer and variable, the gradient; a variable without one does not change.
            learning_rate: learning rate of the update, scalar float32.
            applied: whether anything changes, scalar bool.
        """
        number = state.version + 1
        weights = state.weights
        statistics: list[tf.Tensor] = []
        for by_variable in gradients:
            where = functools.partial(tf.where, self._changed(by_variable, applied))
            before = state.statistics[len(statistics) :][: len(state.statistics) // len(gradients)]
            change, *after = self._step(before, self.joined(by_variable), learning_rate, number, where)
            weights = where(weights - change, weights)
            statistics += after
        return VectorState(weights, tuple(statistics), tf.where(applied, number, state.version))

    def _values(self) -> VectorState:
        """Return the state that the variables have, as arrays."""
        weights, *statistics = (_joined(variables) for variables in [self._variables, *self._groups])
        return VectorState(weights, tuple(statistics), self._version.numpy())

    def joined(self, gradients: Sequence[tf.Tensor | None]) -> tf.Tensor:
        """Return gradients as one vector, with zeros for a variable without one."""
        parts = []
        for gradient, size in zip(gradients, self._sizes, strict=True):
            parts.append(tf.zeros(size) if gradient is None else tf.reshape(gradient, (size,)))
        return tf.concat(parts, 0)

    def _changed(self, gradients: Sequence[tf.Tensor | None], applied: tf.Tensor) -> tf.Tensor:
        """Return whether weights change: for all of them, scalar bool, or bool [P] if some have no gradient.

        Not as one constant, which would be as large as the weights in the program.
        """
        if all(gradient is not None for gradient in gradients):
            return applied
        parts = zip(self._sizes, gradients, strict=True)
        return applied & tf.concat([tf.fill((size,), gradient is not None) for size, gradient in parts], 0)


def _joined(variables: Sequence[tf.Variable]) -> np.ndarray:
    return np.concatenate([variable.numpy().ravel() for variable in variables])


def _each(function: Callable[..., Any], *states: VectorState) -> VectorState:
    """Return a state of what a function returns for each part of the states."""
    return tf.nest.map_structure(function, *states)

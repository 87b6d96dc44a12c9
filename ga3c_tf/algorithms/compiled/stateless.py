"""The network as a pure function of its weights and states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ga3c_tf.model.compiled.compilation import CannotCompile
from ga3c_tf.model.tensorflow import keras, tf


class StatelessNetwork:
    """Calls a Keras model with weights that are not its own.

    Args:
        network: keras.Model of states. The weights that it does not train, such as
            the mean of states, are its own.
        states: tf.TensorSpec of a batch of states.

    Attributes:
        state_shape, state_dtype: of one state.
    """

    def __init__(self, network: keras.Model, states: tf.TensorSpec):
        self._network = network
        self.state_shape = tuple(states.shape[1:])
        self.state_dtype = np.dtype(states.dtype.as_numpy_dtype)

    def __call__(self, weights: Sequence[tf.Tensor], states: tf.Tensor, training: bool = False) -> Any:
        """Return the outputs of the network in a graph.

        Args:
            weights: weights of the network's trainable variables.
            states: [B, *state_shape], of the network's type.
            training: whether the network is called as in training.

        Raises:
            CannotCompile: the network changes its weights where it is called, which a program would lose.
        """
        others = [variable.value for variable in self._network.non_trainable_variables]
        before = [tf.convert_to_tensor(value) for value in others]
        outputs, after = self._network.stateless_call([*weights], before, states, training=training)
        for variable, old, new in zip(self._network.non_trainable_variables, before, after, strict=True):
            if new is not old:
                raise CannotCompile(f"the network changes {variable.path} by itself, as with dropout")
        return outputs

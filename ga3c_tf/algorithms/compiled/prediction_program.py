"""The prediction of a compiled model: one upload of states, one row of numbers back.

B is the number of states, A the number of actions.
"""

from __future__ import annotations

import numpy as np

from ga3c_tf.algorithms.compiled.stateless import StatelessNetwork
from ga3c_tf.algorithms.computation import Computation
from ga3c_tf.experience.contracts import Prediction
from ga3c_tf.model.compiled.program import Program
from ga3c_tf.model.compiled.upload import Field, Upload, packed
from ga3c_tf.model.compiled.weights import ReadableWeights
from ga3c_tf.model.tensorflow import tf


class PredictionProgram:
    """Predicts for up to `size` states. Thread-safe.

    Args:
        computation: policy and values.
        weights: weights of the network.
        size: number of states.
        device: TensorFlow device; None leaves the choice to TensorFlow.

    Attributes:
        program: the compiled function.
    """

    def __init__(
        self,
        computation: Computation,
        weights: ReadableWeights,
        size: int,
        device: str | None,
    ):
        self._computation = computation
        self._network = StatelessNetwork(computation.network, computation.states)
        self._weights = weights
        self._size = size
        upload = Upload([Field("states", (size, *self._network.state_shape), self._network.state_dtype)])
        self.program = Program(self._graph, upload, device)

    def predict(self, states: np.ndarray) -> Prediction:
        """Return the prediction for states [B, *state_shape]. The padding is what the buffer had before."""
        count = len(states)
        with self.program.upload.buffer() as buffer:
            buffer.arrays["states"][:count] = states
            numbers = self.program(buffer.tensor()).numpy()
        version = int(numbers[:2].view(np.int64)[0])
        rows = numbers.view(np.float32).reshape(self._size, -1)[:count]
        return Prediction(rows[:, 3:], rows[:, 2], version)

    def _graph(self, arrays: dict[str, tf.Tensor]) -> tf.Tensor:
        weights, version = self._weights.values()
        policy, values = self._computation.answers(self._network(weights, arrays["states"]))
        # In each row, so that all rows are one kernel.
        version = tf.broadcast_to(tf.bitcast(version, tf.float32), (self._size, 2))
        return packed(tf.concat([version, values[:, None], policy], 1))

"""A program that computes the gradients of batches: to update the weights with them, or to return them."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Sequence

from ga3c_tf.algorithms.compiled.batch_upload import BatchUpload, UpdateSize
from ga3c_tf.algorithms.compiled.stateless import StatelessNetwork
from ga3c_tf.algorithms.computation import Computation, GraphOutputs
from ga3c_tf.experience.columns import Batch, Column
from ga3c_tf.model.compiled.program import Program
from ga3c_tf.model.compiled.upload import Upload
from ga3c_tf.model.compiled.weights import ReadableWeights
from ga3c_tf.model.tensorflow import tf


class BatchProgram(ABC):
    """Takes batches in one upload.

    Args:
        computation: the gradients of a batch.
        uploads: how batches lie in the upload.
        weights: weights of the network.
        size: what a call has room for.
        device: TensorFlow device; None leaves the choice to TensorFlow.

    Attributes:
        program: the compiled function.
    """

    def __init__(
        self,
        computation: Computation,
        uploads: type[BatchUpload],
        weights: ReadableWeights,
        size: UpdateSize,
        device: str | None,
    ):
        self._network = StatelessNetwork(computation.network, computation.states)
        self._computation = computation
        self._weights = weights
        self._size = size
        dtype = self._network.state_dtype.type
        states = Column("states", dtype, "what the agent sees", self._network.state_shape)
        self._batches = uploads(computation.columns, states, size)
        self.program = Program(self._graph, Upload(self._batches.fields), device)

    @abstractmethod
    def _graph(self, arrays: dict[str, tf.Tensor]) -> tf.Tensor:
        """Return the result of the program."""

    def _outputs(
        self,
        weights: Sequence[tf.Tensor],
        version: tf.Tensor,
        arrays: dict[str, tf.Tensor],
        number: int | tf.Tensor,
    ) -> GraphOutputs:
        """Return the gradients of one batch of the upload, in a graph."""
        columns = self._batches.columns_of(arrays, number)
        batch = Batch(beta=arrays["beta"], version=version, **columns)
        network = functools.partial(self._network, weights)
        return self._computation.gradients_in_graph(network, weights, batch)

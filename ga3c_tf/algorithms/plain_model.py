"""A model on one device, whose predictions and gradients are graphs: the plain form of a model."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from ga3c_tf.algorithms.computation import Computation
from ga3c_tf.algorithms.network_model import NetworkModel
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.contracts import UpdateResult
from ga3c_tf.model.compiled.weights import ReadableWeights
from ga3c_tf.model.tensorflow import tf
from ga3c_tf.model.weight_store import WeightStore


class PlainModel(NetworkModel):
    """A `NetworkModel` with a weight store. `CompiledModel` is its other form, which computes the same."""

    _store: WeightStore

    def __init__(self, device: str | None = None):
        # The kernel that counts updates (ResourceCountUpTo) runs on CPUs only.
        with tf.device(device if device and "CPU" in device else "/CPU:0"):
            self.version = tf.Variable(0, dtype=tf.int64, trainable=False, name="version")

    def checkpoint_objects(self) -> dict[str, list[tf.Variable]]:
        weights = [variable.value for variable in self.network.weights]
        return {"weights": weights, "version": [self.version], **self.slots()}

    def slots(self) -> dict[str, list[tf.Variable]]:
        """Return the optimizer's variables, by the name of their group."""
        return self._store.slots()

    # for its compiled form

    @property
    @abstractmethod
    def computation(self) -> Computation:
        """What is computed of the network."""

    @abstractmethod
    def result(self, batch: Batch, numbers: np.ndarray, version: int) -> UpdateResult:
        """Return what `train` does of an update that has been made or skipped.

        Args:
            batch: the batch.
            numbers: `GraphOutputs.numbers` of the batch.
            version: number of updates done after it.
        """

    def check_compilable(self) -> None:
        """Raise CannotCompile if the model has only a plain form."""

    def follow(self, weights: ReadableWeights) -> None:
        """Read the weights from there in future: those of a compiled form. Most models read none."""

"""The programs of a compiled model, by size."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from ga3c_tf.algorithms.compiled.batch_upload import BatchUpload, IndexedUpload, UpdateSize
from ga3c_tf.algorithms.compiled.prediction_program import PredictionProgram
from ga3c_tf.algorithms.compiled.sizes import UpdateSizes, prediction_size
from ga3c_tf.algorithms.compiled.update_program import UpdateProgram
from ga3c_tf.algorithms.computation import Computation
from ga3c_tf.config import Config
from ga3c_tf.model.compiled.program import Program
from ga3c_tf.model.compiled.weights import ReadableWeights


class Programs:
    """Makes each program where it is first needed: those for predictions. Thread-safe.

    Args:
        config: settings of the run.
        computation: network, and what is computed of it.
        weights: weights that the programs read.
        device: TensorFlow device; None leaves the choice to TensorFlow.

    Attributes:
        sizes: sizes of the updates.
    """

    def __init__(
        self, config: Config, computation: Computation, weights: ReadableWeights, device: str | None
    ):
        self.sizes = UpdateSizes(config, computation.needs_segments)
        self._computation = computation
        self._weights = weights
        self._device = device
        self._programs: dict[Any, Any] = {}
        self._making = threading.Lock()

    def usual(self) -> Iterator[Program]:
        """Yield the compiled functions of the sizes that the settings produce."""
        for states in self.sizes.usual_predictions():
            yield self.prediction(states).program

    def prediction(self, states: int) -> PredictionProgram:
        """Return the program that predicts for so many states."""
        return self._made(prediction_size(states), self._new_prediction)

    def _made(self, size: Any, make: Callable[[Any], Any]) -> Any:
        with self._making:
            if size not in self._programs:
                self._programs[size] = make(size)
            return self._programs[size]

    def _new_prediction(self, size: int) -> PredictionProgram:
        return PredictionProgram(self._computation, self._weights, size, self._device)


class UpdatePrograms(Programs):
    """Programs that train the weights: a `VectorWeights`."""

    def usual(self) -> Iterator[Program]:
        for size in self.sizes.usual():
            yield self.update(size).program
        yield from super().usual()

    def update(self, size: UpdateSize) -> UpdateProgram:
        """Return the program for updates of a size."""
        return self._made(size, self._new_update)

    def _new_update(self, size: UpdateSize) -> UpdateProgram:
        kind = IndexedUpload if self.sizes.has_minibatches else BatchUpload
        return UpdateProgram(self._computation, kind, self._weights, size, self._device)

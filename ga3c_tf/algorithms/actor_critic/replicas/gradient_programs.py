"""The compiled programs of one of several devices: predictions, and gradients of its part of a batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ga3c_tf.algorithms.actor_critic.actor_critic import ActorCritic
from ga3c_tf.algorithms.actor_critic.gradients import METRICS
from ga3c_tf.algorithms.actor_critic.replicas.parts import number_of_parts
from ga3c_tf.algorithms.compiled.batch_program import BatchProgram
from ga3c_tf.algorithms.compiled.batch_upload import BatchUpload, UpdateSize
from ga3c_tf.algorithms.compiled.programs import Programs
from ga3c_tf.algorithms.compiled.sizes import padded
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.columns import Batch
from ga3c_tf.model.compiled.program import Program
from ga3c_tf.model.compiled.weights import ReadableWeights
from ga3c_tf.model.tensorflow import tf

SMALLEST_PART = 8


class GradientProgram(BatchProgram):
    """Computes the gradients of up to `size.rows` steps. Thread-safe; arguments as for `BatchProgram`."""

    def gradients(self, batch: Batch, beta: float) -> tuple[np.ndarray, np.ndarray]:
        """Return `GraphOutputs.numbers` of a batch, and its gradients one after another."""
        with self.program.upload.buffer() as buffer:
            self._batches.fill(buffer.arrays, [batch], Rates(0.0, beta))
            row = self.program(buffer.tensor()).numpy()
        summary = 1 + len(METRICS)
        return row[: summary + len(batch)], row[summary + self._size.rows :]

    def _graph(self, arrays: dict[str, tf.Tensor]) -> tf.Tensor:
        outputs = self._outputs(*self._weights.values(), arrays, 0)
        given = [gradient for gradient in tf.nest.flatten(outputs.gradients) if gradient is not None]
        return tf.concat([outputs.numbers, *(tf.reshape(gradient, (-1,)) for gradient in given)], 0)


class GradientPrograms(Programs):
    """Programs by the size of parts of batches.

    Args:
        config: settings of the run.
        actor_critic, weights, device: as for `Programs`; the objective does not clip.
        size: number of weights.
    """

    def __init__(
        self,
        config: Config,
        actor_critic: ActorCritic,
        weights: ReadableWeights,
        device: str | None,
        size: int,
    ):
        super().__init__(config, actor_critic, weights, device)
        self._config = config
        self._number_of_weights = size

    def usual(self) -> Iterator[Program]:
        for states in self._usual_parts():
            yield self.gradients(states).program
        yield from super().usual()

    def gradients(self, states: int) -> GradientProgram:
        """Return the program for gradients of so many states."""
        rows = padded(states, SMALLEST_PART)
        return self._made(UpdateSize(rows, 1, rows), self._new_gradients)

    def _usual_parts(self) -> list[int]:
        """Return the smallest and largest part: batches are cut between segments of up to t_max steps."""
        config = self._config
        states = config.states_per_update
        update = states // config.minibatches_of(states)
        mean = update // number_of_parts(update, self._number_of_weights, len(config.device_names))
        uneven = config.t_max if self._computation.needs_segments and config.has_minibatches else 0
        return [max(1, mean - config.t_max - uneven), mean + config.t_max + uneven]

    def _new_gradients(self, size: UpdateSize) -> GradientProgram:
        return GradientProgram(self._computation, BatchUpload, self._weights, size, self._device)

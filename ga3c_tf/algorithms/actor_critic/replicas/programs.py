"""The compiled programs of one of several devices: gradients of its part of a batch, and the update."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ga3c_tf.algorithms.actor_critic.compiled.batch_upload import FLOAT, INT, BatchUpload, UpdateSize
from ga3c_tf.algorithms.actor_critic.compiled.programs import Programs
from ga3c_tf.algorithms.actor_critic.compiled.sizes import padded
from ga3c_tf.algorithms.actor_critic.compiled.stateless import StatelessNetwork
from ga3c_tf.algorithms.actor_critic.gradients import METRICS, Gradients, Objective, clipped
from ga3c_tf.algorithms.actor_critic.replicas.parts import number_of_parts
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.columns import Batch
from ga3c_tf.model.compiled.program import Program
from ga3c_tf.model.compiled.upload import Field, Upload, packed
from ga3c_tf.model.compiled.weights import VectorWeights
from ga3c_tf.model.tensorflow import tf

SMALLEST_PART = 8


class GradientProgram:
    """Computes the gradients of up to `rows` steps, one vector for each optimizer. Thread-safe.

    Args:
        network, objective, batches, weights, device: as for `UpdateProgram`.
        rows: number of steps.

    Attributes:
        program: the compiled function.
    """

    def __init__(
        self,
        network: StatelessNetwork,
        objective: Objective,
        batches: BatchUpload,
        weights: VectorWeights,
        rows: int,
        device: str | None,
    ):
        self._network = network
        self._objective = objective
        self._batches = batches
        self._weights = weights
        self._summary = len(METRICS) + 1
        self._rows = rows
        self.program = Program(self._graph, Upload(batches.fields), device)

    def gradients(self, batch: Batch, beta: float) -> Gradients:
        """Return the gradients, [optimizers * P], and what else a plain model computes of the batch."""
        with self.program.upload.buffer() as buffer:
            self._batches.fill(buffer.arrays, [batch], Rates(0.0, beta))
            row = np.asarray(self.program(buffer.tensor()))
        numbers, vectors = np.split(row, [self._summary + self._rows])
        return Gradients.unpacked([vectors], numbers[: self._summary + len(batch)])

    def _graph(self, arrays: dict[str, tf.Tensor]) -> tf.Tensor:
        state = self._weights.read()
        batch = Batch(beta=arrays["beta"], version=state.version, **self._batches.columns_of(arrays, 0))
        weights = self._weights.parts(state.weights)
        outputs = self._objective.gradients(
            lambda: self._network(weights, batch.states, training=True), weights, batch
        )
        return tf.concat([outputs.numbers, *map(self._weights.joined, outputs.gradients)], 0)


class ApplyProgram:
    """Clips gradients and makes the update with them. Thread-safe.

    Args:
        config: settings of the run; those for clipping are used.
        has_gradient: by optimizer and variable, whether the variable has a gradient.
        weights: the weights that are trained.
        device: TensorFlow device; None leaves the choice to TensorFlow.

    Attributes:
        program: the compiled function.
    """

    def __init__(
        self, config: Config, has_gradient: list[list[bool]], weights: VectorWeights, device: str | None
    ):
        self._config = config
        self._has_gradient = has_gradient
        self._weights = weights
        vectors = Field("gradients", (len(has_gradient), weights.size), FLOAT)
        rates = [Field("learning_rate", (), FLOAT), Field("count", (), INT)]
        self.program = Program(self._graph, Upload([vectors, *rates]), device)

    def apply(self, vectors: np.ndarray, learning_rate: float) -> int:
        """Make the update with gradients [optimizers * P]; return the updates done with this one."""
        with self.program.upload.buffer() as buffer:
            buffer.arrays["gradients"].reshape(-1)[:] = vectors
            buffer.arrays["learning_rate"][...] = learning_rate
            buffer.arrays["count"][...] = 1
            with self._weights.changing:
                result = self.program(buffer.tensor())
            return int(np.asarray(result).view(np.int64)[0])

    def _graph(self, arrays: dict[str, tf.Tensor]) -> tf.Tensor:
        state = self._weights.read()
        gradients = []
        for vector, has_gradient in zip(tf.unstack(arrays["gradients"]), self._has_gradient, strict=True):
            by_variable = zip(self._weights.parts(vector), has_gradient, strict=True)
            gradients.append(clipped(self._config, [part if has else None for part, has in by_variable]))
        applied = arrays["count"] > 0  # the call that compiles the program changes nothing
        state = self._weights.stepped(state, gradients, arrays["learning_rate"], applied)
        self._weights.write(state)
        return packed(state.version)


class ReplicaPrograms(Programs):
    """Programs for predictions and for parts of updates.

    Args:
        config: settings of the run.
        actor_critic, weights, device: as for `Programs`; the objective does not clip.
    """

    def __init__(self, config: Config, actor_critic, weights: VectorWeights, device: str | None):
        super().__init__(config, actor_critic, weights, device)
        self._config = config
        places = set(actor_critic.gradients_of)
        variables = range(len(actor_critic.variables))
        optimizers = 2 if config.dual_rmsprop else 1
        has_gradient = [
            [(optimizer, number) in places for number in variables] for optimizer in range(optimizers)
        ]
        self.apply = ApplyProgram(config, has_gradient, weights, device)

    def usual(self) -> Iterator[Program]:
        yield self.apply.program
        for states in self._usual_parts():
            yield self.gradients(states).program
        for states in self.sizes.usual_predictions():
            yield self.prediction(states).program

    def gradients(self, states: int) -> GradientProgram:
        """Return the program for gradients of so many states."""
        return self._made(("gradients", padded(states, SMALLEST_PART)), self._new_gradients)

    def _usual_parts(self) -> list[int]:
        """Return the smallest and largest part: batches are cut between segments of up to t_max steps."""
        config = self._config
        states = config.states_per_update
        update = states // config.minibatches_of(states)
        mean = update / number_of_parts(update, self._weights.size, len(config.device_names))
        return [max(1, int(mean) - config.t_max), int(mean) + config.t_max]

    def _new_gradients(self, key: tuple[str, int]) -> GradientProgram:
        rows = key[1]
        batches = self.new_upload(BatchUpload, UpdateSize(rows, 1, rows))
        objective = self._actor_critic.objective
        return GradientProgram(self._network, objective, batches, self._weights, rows, self._device)

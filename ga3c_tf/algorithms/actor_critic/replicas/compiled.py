"""A replica of compiled programs, for several GPUs."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence

import numpy as np

from ga3c_tf.algorithms.actor_critic.gradients import Gradients
from ga3c_tf.algorithms.actor_critic.replicas.gradient_programs import GradientPrograms
from ga3c_tf.algorithms.actor_critic.replicas.replica import Replica, assign
from ga3c_tf.algorithms.network_model import check_states
from ga3c_tf.config import Config
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.contracts import NO_CARRY, Prediction
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.compiled.compilation import compile_all
from ga3c_tf.model.tensorflow import tf


class VariableWeights:
    """The variables of a network as `ReadableWeights`.

    Args:
        variables: the trained variables.
        device: TensorFlow device.

    Attributes:
        version: number of updates that they contain at least, on the device.
    """

    def __init__(self, variables: Sequence[tf.Variable], device: str):
        self._variables = variables
        with tf.device(device):
            self.version = tf.Variable(0, dtype=tf.int64, trainable=False)

    def values(self) -> tuple[list[tf.Tensor], tf.Tensor]:
        return [variable.read_value() for variable in self._variables], self.version.read_value()


class CompiledReplica(Replica):
    """A replica that predicts and computes gradients with compiled programs.

    Args:
        config, spec, seed: as for `new_model`.
        device: TensorFlow device, as `configure_device` returns it.

    Attributes:
        programs: the programs.

    Raises:
        CannotCompile: the network or the loss cannot be compiled.
    """

    def __init__(self, config: Config, spec: EnvironmentSpec, seed: int, device: str):
        super().__init__(config, spec, seed, device)
        self.check_compilable()
        self._weights = VariableWeights(self._variables, device)
        self.programs = GradientPrograms(config, self.computation, self._weights, device, self.size)
        self._counting = threading.Lock()
        self._counted = 0

    def predict(self, states: np.ndarray, carry: np.ndarray = NO_CARRY) -> Prediction:
        check_states(states, self.states)
        return self.programs.prediction(len(states)).predict(states)

    def gradients(self, batch: Batch, beta: float) -> Gradients:
        self.computation.check(batch)
        numbers, row = self.programs.gradients(len(batch)).gradients(batch, beta)
        shapes = [self._variables[variable].shape for _, variable in self.computation.gradients_of]
        ends = np.cumsum([shape.num_elements() for shape in shapes])
        tensors = map(np.reshape, np.split(row, ends[:-1]), shapes)
        return Gradients.unpacked([*tensors], numbers)

    def apply(self, gradients: Sequence[tf.Tensor | np.ndarray], learning_rate: float) -> int:
        version = super().apply(gradients, learning_rate)
        with self._counting:
            if version > self._counted:  # a later update, of another trainer, may be counted already
                self._count(version)
        return version

    def replace(self, weights: Sequence[np.ndarray], version: int) -> None:
        super().replace(weights, version)
        with self._counting:
            self._count(version)

    def _count(self, version: int) -> None:
        self._counted = version
        with tf.device(self._device):
            assign(self._weights.version, tf.constant(version, tf.int64))


def compile_replicas(replicas: Sequence[CompiledReplica], say: Callable[[str], None]) -> None:
    """Compile the programs of all replicas in parallel, as `CompiledModel.compile` does those of one."""
    say(f"compiling the model for {len(replicas)} devices, which takes some seconds")
    compile_all(itertools.chain.from_iterable(replica.programs.usual() for replica in replicas))

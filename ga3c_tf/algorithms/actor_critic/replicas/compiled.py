"""A replica of compiled programs, for several GPUs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from ga3c_tf.algorithms.actor_critic.compiled.model import CompiledModel
from ga3c_tf.algorithms.actor_critic.gradients import Gradients
from ga3c_tf.algorithms.actor_critic.replicas.programs import ReplicaPrograms
from ga3c_tf.algorithms.actor_critic.replicas.replica import Replica, without_clipping
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.contracts import UpdateResult
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.compiled.compilation import compile_all
from ga3c_tf.model.tensorflow import tf


class CompiledReplica(CompiledModel, Replica):
    """A replica whose weights are a vector on its device, as those of a `CompiledModel`.

    Args:
        config, spec, seed: as for `new_model`.
        device: TensorFlow device, as `configure_device` returns it.

    Raises:
        CannotCompile: the network or the loss cannot be compiled.
    """

    _programs: ReplicaPrograms

    def __init__(self, config: Config, spec: EnvironmentSpec, seed: int, device: str):
        shape = (spec.state_shape, spec.state_dtype, spec.num_actions)
        super().__init__(without_clipping(config), *shape, seed, device=device)
        self._device = device
        self._programs = ReplicaPrograms(config, self._actor_critic, self._weights, device)
        self.bounds = self._actor_critic.loss.bounds

    def learn(self, batch: Batch, rates: Rates) -> UpdateResult:
        gradients = self.gradients(batch, rates.beta)
        divergence = self._divergence.sample(batch, gradients.log_pi)
        version = self._updates
        if gradients.finite:
            version = self.apply(gradients.tensors, rates.learning_rate)
        return UpdateResult(gradients.metrics, divergence, version, gradients.finite)

    def gradients(self, batch: Batch, beta: float) -> Gradients:
        self._actor_critic.check(batch)
        return self._programs.gradients(len(batch)).gradients(batch, beta)

    def apply(self, gradients: Sequence[np.ndarray], learning_rate: float) -> int:
        [vectors] = gradients
        version = self._programs.apply.apply(vectors, learning_rate)
        self._updates = max(self._updates, version)
        return version

    def weights(self) -> list[np.ndarray]:
        return [np.asarray(self._weights.read().weights)]

    def replace(self, weights: Sequence[np.ndarray], version: int) -> None:
        [vector] = weights
        with self._weights.changing, tf.device(self._device):
            state = self._weights.read()
            self._weights.write(state._replace(weights=vector, version=np.int64(version)))
        self._updates = version


def compile_replicas(replicas: Sequence[CompiledReplica], say: Callable[[str], None]) -> None:
    """Compile the programs of all replicas in parallel, as `CompiledModel.compile` does those of one."""
    say(f"compiling the model for {len(replicas)} devices, which takes some seconds")
    compile_all(itertools.chain.from_iterable(replica.usual_programs() for replica in replicas))

"""Synchronous updates: every device has a part of the batch, and all make the update on the whole."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from ga3c_tf.algorithms.actor_critic.gradients import Gradients
from ga3c_tf.algorithms.actor_critic.replicas.device_thread import DeviceThreads
from ga3c_tf.algorithms.actor_critic.replicas.parts import is_small, joined, number_of_parts, parts_of
from ga3c_tf.algorithms.actor_critic.replicas.replica import Replica
from ga3c_tf.algorithms.actor_critic.replicas.replicas import Replicas
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.contracts import NO_CARRY, Prediction, UpdateResult
from ga3c_tf.experience.divergence import DivergenceSampler


class SynchronousReplicas(Replicas):
    """An update is that of one model on the whole batch, after which no other weights are used.

    What is too small to be shared is the first device's: between busy agents, a thread waits milliseconds for
    a core, and a copy of the weights costs more than a small update.

    Args:
        config: settings of the run.
        replicas: a model on each device.
    """

    def __init__(self, config: Config, replicas: Sequence[Replica]):
        super().__init__(replicas)
        self._config = config
        self._weights = sum(weights.size for weights in replicas[0].weights())
        self._threads = DeviceThreads(config.device_names)
        self._divergence = DivergenceSampler(replicas[0].bounds)
        self._in_order = threading.Lock()
        """Held during an update of several devices, so that those of several trainers have one order."""

    def predict(self, states: np.ndarray, carry: np.ndarray = NO_CARRY) -> Prediction:
        if is_small(len(states), self._weights):
            return self.replicas[0].predict(states)
        return super().predict(states)

    def train(self, batches: Sequence[Batch], rates: Rates) -> list[UpdateResult]:
        return [self._update(batch, rates) for batch in batches]

    def _update(self, batch: Batch, rates: Rates) -> UpdateResult:
        parts = parts_of(batch, number_of_parts(len(batch), self._weights, len(self.replicas)))
        if len(parts) == 1:
            result = self.replicas[0].learn(batch, rates)
        else:
            with self._in_order:
                result = self._update_together(batch, parts, rates)
        if result.applied:
            self._updated(result.version)
        return result

    def _update_together(self, batch: Batch, parts: Sequence[Batch], rates: Rates) -> UpdateResult:
        gradients = self._gradients(batch, parts, rates.beta)
        divergence = self._divergence.sample(batch, gradients.log_pi)
        version = self.updates
        if gradients.finite:
            [version] = self._threads.map(
                lambda first: first.apply(gradients.tensors, rates.learning_rate), self.replicas[:1]
            )
        return UpdateResult(gradients.metrics, divergence, version, gradients.finite)

    def _gradients(self, batch: Batch, parts: Sequence[Batch], beta: float) -> Gradients:
        def gradients(number: int, part: Batch) -> Gradients:
            self._pull(number)
            return self.replicas[number].gradients(part, beta)

        shares = [1.0] * len(parts)
        if self._config.loss_reduction == "mean":
            shares = [len(part) / len(batch) for part in parts]
        return joined(self._threads.map(gradients, range(len(parts)), parts), shares)

"""Synchronous updates: every device has a part of the batch, and the first makes the update on the whole."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from ga3c_tf.algorithms.actor_critic.gradients import Gradients
from ga3c_tf.algorithms.actor_critic.replicas.device_threads import call_on_devices
from ga3c_tf.algorithms.actor_critic.replicas.parts import is_small, joined, number_of_parts, parts_of
from ga3c_tf.algorithms.actor_critic.replicas.replica import Replica
from ga3c_tf.algorithms.actor_critic.replicas.replicas import Replicas
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.errors import DeviceStopped
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.contracts import NO_CARRY, Prediction, UpdateResult


class SynchronousReplicas(Replicas):
    """An update is that of one model on the whole batch, after which no other weights are used.

    What is too small to be shared is the first device's: between busy agents, a thread waits milliseconds for
    a core, and a copy of the weights costs more than a small update.
    """

    def __init__(self, config: Config, replicas: Sequence[Replica]):
        super().__init__(config, replicas)
        self._in_order = threading.Lock()
        """Held during an update, so that those of several trainers have one order on all devices."""
        self._stopped: DeviceStopped | None = None

    def predict(self, states: np.ndarray, carry: np.ndarray = NO_CARRY) -> Prediction:
        if is_small(len(states), self.replicas[0].size):
            return self.replicas[0].predict(states, carry)
        return super().predict(states, carry)

    def _update(self, batch: Batch, rates: Rates) -> UpdateResult:
        first = self.replicas[0]
        parts = parts_of(batch, number_of_parts(len(batch), first.size, len(self.replicas)))
        with self._in_order:
            if len(parts) == 1:
                return self._updated(first.gradients(batch, rates.beta), batch, rates)
            return self._updated(self._gradients(parts, rates.beta), batch, rates)

    def _gradients(self, parts: Sequence[Batch], beta: float) -> Gradients:
        def gradients(number: int, part: Batch) -> Gradients:
            self._pull(number, self._most_behind)
            computed = self.replicas[number].gradients(part, beta)
            return computed._replace(tensors=[*map(np.asarray, computed.tensors)])

        if self._stopped:  # or each trainer would wait for the device again
            raise self._stopped
        try:
            computed = call_on_devices(self._config.device_names, gradients, range(len(parts)), parts)
        except DeviceStopped as error:
            self._stopped = error
            raise
        return joined(computed, self._config.loss_reduction)

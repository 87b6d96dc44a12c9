"""Synchronous updates: every device has a part of the batch, and all make the update on the whole."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from ga3c_tf.algorithms.actor_critic.gradients import Gradients
from ga3c_tf.algorithms.actor_critic.replicas.device_thread import DeviceThreads
from ga3c_tf.algorithms.actor_critic.replicas.parts import joined, number_of_parts, parts_of
from ga3c_tf.algorithms.actor_critic.replicas.replica import Replica
from ga3c_tf.algorithms.actor_critic.replicas.replicas import Replicas
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.contracts import UpdateResult
from ga3c_tf.experience.divergence import DivergenceSampler

Map = Callable[..., list[Any]]
"""Calls a function with the arguments of each device."""


class SynchronousReplicas(Replicas):
    """An update is that of one model on the whole batch, after which all have the same weights.

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
        """Held during an update, so that those of several trainers have the same order on all devices."""

    def train(self, batches: Sequence[Batch], rates: Rates) -> list[UpdateResult]:
        return [self._update(batch, rates) for batch in batches]

    def _update(self, batch: Batch, rates: Rates) -> UpdateResult:
        parts = parts_of(batch, number_of_parts(len(batch), self._weights, len(self.replicas)))
        # For one part, the trainer does it all: between busy agents, a thread waits milliseconds for a core.
        on_devices = self._threads.map if len(parts) > 1 else _in_turn
        gradients = self._gradients(batch, parts, rates.beta, on_devices)
        divergence = self._divergence.sample(batch, gradients.log_pi)
        version = self.updates
        if gradients.finite:
            version = self._apply(gradients, rates.learning_rate, on_devices)
        return UpdateResult(gradients.metrics, divergence, version, gradients.finite)

    def _gradients(self, batch: Batch, parts: Sequence[Batch], beta: float, on_devices: Map) -> Gradients:
        if len(parts) == 1:
            with self.lent() as number:
                return self.replicas[number].gradients(batch, beta)

        def gradients(replica: Replica, part: Batch) -> Gradients:
            return replica.gradients(part, beta)

        shares = [1.0] * len(parts)
        if self._config.loss_reduction == "mean":
            shares = [len(part) / len(batch) for part in parts]
        return joined(on_devices(gradients, self.replicas, parts), shares)

    def _apply(self, gradients: Gradients, learning_rate: float, on_devices: Map) -> int:
        """Update the first replica, and copy its weights to the others.

        Each could make the update by itself, but on a CPU a copy costs a fifth of RMSProp's step.
        """
        first = self.replicas[0]

        def apply(replica: Replica) -> int:
            return replica.apply(gradients.tensors, learning_rate)

        with self._in_order:
            [version] = on_devices(apply, [first])
            weights = first.weights()

            def copy(replica: Replica) -> None:
                if replica is not first:
                    replica.replace(weights, version)

            on_devices(copy, self.replicas)
        return version


def _in_turn(function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
    return list(map(function, *arguments))

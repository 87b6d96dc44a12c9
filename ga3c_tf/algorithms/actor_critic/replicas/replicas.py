"""A model on several devices: as `Policy` and `NetworkModel` it is one, whose weights are the first's."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from ga3c_tf.algorithms.actor_critic.replicas.replica import Replica
from ga3c_tf.algorithms.network_model import NetworkModel
from ga3c_tf.errors import UserError
from ga3c_tf.experience.contracts import NO_CARRY, Prediction
from ga3c_tf.model.tensorflow import tf


class Replicas(NetworkModel):
    """Equal models on several devices. A subclass says how they are updated. Thread-safe.

    Each prediction is made on the device with the fewest calls under way, whatever the numbers of predictors
    and devices.

    Args:
        replicas: a model on each device. The first has the weights of checkpoints.

    Raises:
        UserError: the network has memory.

    Attributes:
        replicas: the models.
    """

    def __init__(self, replicas: Sequence[Replica]):
        first = replicas[0]
        if len(first.initial_carry):
            raise UserError("a network with memory is trained on one device; name one in --device")
        self.metrics = first.metrics
        self.network = first.network
        self.dtype_policy = first.dtype_policy
        self.states = first.states
        self.version = first.version
        self.replicas = replicas
        self._lending = threading.Lock()
        self._under_way = [0] * len(replicas)
        self._lent = [0] * len(replicas)  # in all, so that they are lent in turn

    @property
    def updates(self) -> int:
        return self.replicas[0].updates

    def load(self) -> None:
        first, *others = self.replicas
        first.load()
        for other in others:
            for variable, weight in zip(other.network.weights, first.network.weights, strict=True):
                variable.assign(weight)
            other.version.assign(first.version)
            other.load()

    def store(self) -> None:
        self.replicas[0].store()

    def checkpoint_objects(self) -> dict[str, list[tf.Variable]]:
        return self.replicas[0].checkpoint_objects()

    def predict(self, states: np.ndarray, carry: np.ndarray = NO_CARRY) -> Prediction:
        with self.lent() as number:
            return self.replicas[number].predict(states)

    @contextmanager
    def lent(self) -> Iterator[int]:
        """Lend the replica with the fewest calls under way, by its number."""
        with self._lending:
            number = min(range(len(self.replicas)), key=self._load_of)
            self._under_way[number] += 1
            self._lent[number] += 1
        try:
            yield number
        finally:
            with self._lending:
                self._under_way[number] -= 1

    def _load_of(self, number: int) -> tuple[int, int]:
        return self._under_way[number], self._lent[number]

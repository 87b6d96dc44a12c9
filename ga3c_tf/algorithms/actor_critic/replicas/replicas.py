"""A model on several devices: as `Policy` and `NetworkModel` it is one, whose weights are the first's."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from ga3c_tf.algorithms.actor_critic.gradients import Gradients
from ga3c_tf.algorithms.actor_critic.replicas.replica import Replica
from ga3c_tf.algorithms.network_model import NetworkModel
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.contracts import NO_CARRY, Prediction, UpdateResult
from ga3c_tf.experience.divergence import DivergenceSampler
from ga3c_tf.model.tensorflow import tf


class Replicas(NetworkModel):
    """Equal models on several devices. A subclass says where gradients are computed. Thread-safe.

    The first replica is updated. The others pull its weights before a call if theirs are too old. Each
    prediction is made on the device with the fewest calls under way, whatever the numbers of predictors and
    devices.

    Args:
        config: settings of the run.
        replicas: a model on each device. The first has the weights of checkpoints.
        most_behind: number of updates by which a replica's weights may be too old, plus 1.

    Attributes:
        replicas: the models.
    """

    def __init__(self, config: Config, replicas: Sequence[Replica], most_behind: int = 1):
        first = replicas[0]
        self.metrics = first.metrics
        self.network = first.network
        self.dtype_policy = first.dtype_policy
        self.states = first.states
        self.initial_carry = first.initial_carry
        self.needs_segments = first.needs_segments
        self.version = first.version
        self.replicas = replicas
        self._config = config
        self._divergence = DivergenceSampler(first.bounds)
        self._lending = threading.Lock()
        self._under_way = [0] * len(replicas)
        self._lent = [0] * len(replicas)  # in all, so that they are lent in turn
        self._most_behind = most_behind
        self._versions = [0] * len(replicas)  # updates that their weights contain at least
        self._pulling = [threading.Lock() for _ in replicas]

    def load(self) -> None:
        updates = self.updates
        for replica in self.replicas:
            for variable, weight in zip(replica.network.weights, self.network.weights, strict=True):
                variable.assign(weight)
            replica.replace(self.replicas[0].weights(), updates)
        self._versions = [updates] * len(self.replicas)

    def align(self) -> None:
        for number in range(1, len(self.replicas)):
            self._pull(number, most_behind=1)

    def checkpoint_objects(self) -> dict[str, list[tf.Variable]]:
        return self.replicas[0].checkpoint_objects()

    def predict(self, states: np.ndarray, carry: np.ndarray = NO_CARRY) -> Prediction:
        with self.lent() as number:
            return self.replicas[number].predict(states, carry)

    def train(self, batches: Sequence[Batch], rates: Rates) -> list[UpdateResult]:
        return [self._update(batch, rates) for batch in batches]

    @abstractmethod
    def _update(self, batch: Batch, rates: Rates) -> UpdateResult:
        """Update the first replica with the gradients of a batch."""

    def _updated(self, gradients: Gradients, batch: Batch, rates: Rates) -> UpdateResult:
        """Update the first replica if the gradients are finite, and return what `train` does of the batch."""
        divergence = self._divergence.sample(batch, gradients.log_pi)
        version = self.updates
        if gradients.finite:
            version = self.replicas[0].apply(gradients.tensors, rates.learning_rate)
            with self._lending:
                self._versions[0] = max(self._versions[0], version)
        return UpdateResult(gradients.metrics, divergence, version, gradients.finite)

    @contextmanager
    def lent(self) -> Iterator[int]:
        """Lend the replica with the fewest calls under way, by its number. Its weights are new enough."""
        with self._lending:
            number = min(range(len(self.replicas)), key=self._load_of)
            self._under_way[number] += 1
            self._lent[number] += 1
        try:
            self._pull(number, self._most_behind)
            yield number
        finally:
            with self._lending:
                self._under_way[number] -= 1

    def _load_of(self, number: int) -> tuple[int, int]:
        return self._under_way[number], self._lent[number]

    def _pull(self, number: int, most_behind: int) -> None:
        """Bring a replica's copy of the first one's weights up to date if it is so many updates behind."""
        with self._pulling[number]:
            newest = self._versions[0]
            if newest - self._versions[number] >= most_behind:
                self.replicas[number].replace(self.replicas[0].weights(), newest)
                self._versions[number] = newest

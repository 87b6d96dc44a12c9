"""The trainer thread: merges segments of the training queue into a batch and updates the model with it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.queues import AgentMemory
from ga3c_tf.stats import Stats
from ga3c_tf.worker import Worker


class Batch(NamedTuple):
    """What one update trains on: states [batch, *state_shape], actions int32, returns float32, versions int64."""

    states: np.ndarray
    actions: np.ndarray
    returns: np.ndarray
    versions: np.ndarray


class BatchBuilder:
    """Merges segments until the batch exceeds the minimum (section 5.4, the authors' ThreadTrainer).

    Each segment is copied out of its slot at once, so that the slot can be filled again while the batch still grows.
    """

    def __init__(self, config: Config, memory: AgentMemory):
        self._minimum, self._memory = config.min_training_batch, memory
        most = config.min_training_batch + config.t_max
        self._batch = Batch(*(np.empty((most, *column.shape[2:]), column.dtype) for column in self._columns()))
        self._size = 0

    def _columns(self):
        return self._memory.states, self._memory.actions, self._memory.returns, self._memory.versions

    def add(self, slot: int) -> Batch | None:
        """Adds the segment in `slot`; returns the batch (valid until the next call) once it exceeds the minimum."""
        start, length = self._size, int(self._memory.lengths[slot])
        self._size += length
        for column, source in zip(self._batch, self._columns(), strict=True):
            column[start : self._size] = source[slot, :length]
        if self._size <= self._minimum:
            return None
        size, self._size = self._size, 0
        return Batch(*(column[:size] for column in self._batch))


def train(batch: Batch, model, stats: Stats, learning_rate: float, beta: float) -> None:
    """One update of the model, and its policy lag: updates between choosing each action and training on it."""
    result = model.train(batch.states, batch.actions, batch.returns, learning_rate, beta)
    stats.trained(result.version - 1 - batch.versions, result.policy_loss, result.value_loss, result.entropy)


class Trainer(Worker):
    """One of N_T trainer threads (section 4.1).

    Args:
        rates: gives the learning rate and beta of now.

    Attributes:
        updating: held during an update; who holds it keeps this trainer from the weights.
    """

    def __init__(
        self,
        config: Config,
        model,
        memory: AgentMemory,
        training_queue,
        answers,
        stats: Stats,
        rates: Callable[[], tuple[float, float]],
        on_error,
    ):
        super().__init__("trainer", on_error)
        self.updating = threading.Lock()
        self._model, self._stats, self._rates = model, stats, rates
        self._training_queue, self._answers = training_queue, answers
        self._builder = BatchBuilder(config, memory)

    def work(self) -> None:
        while len(slots := self._training_queue.get(1)):
            slot = int(slots[0])
            batch = self._builder.add(slot)
            self._answers.released([slot])
            if batch is not None:
                with self.updating:
                    train(batch, self._model, self._stats, *self._rates())

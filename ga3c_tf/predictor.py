"""The predictor thread: answers every waiting request of the prediction queue with one prediction."""

from __future__ import annotations

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.queues import AgentMemory
from ga3c_tf.stats import Stats
from ga3c_tf.worker import Worker


def answer(requests: np.ndarray, model, memory: AgentMemory, stats: Stats) -> np.ndarray:
    """Predicts for the states that `requests` (uint32 [batch]) index, and leaves each agent its answer.

    Returns:
        The agents answered, uint32 [batch].
    """
    policy, value, version = model.predict(memory.flat_states[requests])
    agents = memory.agents_of(requests)
    memory.policy[agents] = policy
    memory.value[agents] = value
    memory.version[agents] = version
    stats.predicted(len(requests))
    return agents


class Predictor(Worker):
    """One of N_P predictor threads (section 4.1)."""

    def __init__(self, config: Config, model, memory: AgentMemory, prediction_queue, answers, stats: Stats, on_error):
        super().__init__("predictor", on_error)
        self._maximum = config.max_prediction_batch
        self._model, self._memory, self._stats = model, memory, stats
        self._prediction_queue, self._answers = prediction_queue, answers

    def work(self) -> None:
        while len(requests := self._prediction_queue.get(self._maximum)):
            agents = answer(requests, self._model, self._memory, self._stats)
            self._answers.predicted(agents.tolist())

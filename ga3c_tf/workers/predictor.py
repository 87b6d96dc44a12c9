"""The predictor thread: answers the waiting requests of the prediction queue with one batched prediction."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.rollouts.buffers import RolloutBuffers
from ga3c_tf.rollouts.queues import IndexQueue
from ga3c_tf.rollouts.reply_pipes import ReplyPipes
from ga3c_tf.runs.stats import Stats
from ga3c_tf.workers.thread import Worker

PATIENCE_SECONDS = 0.004


def answer(requests: np.ndarray, model, memory: RolloutBuffers, stats: Stats) -> np.ndarray:
    """Predict for the requested states, and write the answers to the agents' rows of `memory`.

    Args:
        requests: uint32 [batch], indices of the states in `memory.flat_states`.

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
    """One of N_P predictor threads (section 4.1).

    Args:
        patient: returns whether the processors should rather train now. Requests then gather for `PATIENCE_SECONDS`:
            fewer and larger predictions cost less per state, and the agents are ahead of the trainers anyway.
        held: returns whether agents should wait because enough segments wait for training. Nothing is predicted
            meanwhile.
    """

    def __init__(
        self,
        config: Config,
        model,
        memory: RolloutBuffers,
        prediction_queue: IndexQueue,
        answers: ReplyPipes,
        stats: Stats,
        patient: Callable[[], bool],
        on_error: Callable[[], None],
        held: Callable[[], bool] = lambda: False,
    ):
        super().__init__("predictor", on_error)
        self._patient = patient
        self._held = held
        self._maximum = config.max_prediction_batch
        self._model = model
        self._memory = memory
        self._stats = stats
        self._prediction_queue = prediction_queue
        self._answers = answers

    def work(self) -> None:
        while len(requests := self._gather()):
            agents = answer(requests, self._model, self._memory, self._stats)
            self._answers.predicted(agents)

    def _gather(self) -> np.ndarray:
        if self._patient():
            time.sleep(PATIENCE_SECONDS)
        while self._held():
            time.sleep(PATIENCE_SECONDS)
        return self._prediction_queue.get(self._maximum)

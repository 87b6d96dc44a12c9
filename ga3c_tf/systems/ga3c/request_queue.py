"""Requests for GA3C's predictors, from the prediction queue, as soon as they should be answered."""

from __future__ import annotations

import time

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.experience.queues import IndexQueue
from ga3c_tf.systems.ga3c.batch_queue import BatchQueue

PATIENCE_SECONDS = 0.004


class RequestQueue:
    """Gives requests to all predictors, and decides how long requests gather before they are answered.

    Requests gather for `PATIENCE_SECONDS` while the trainers are behind (with tuned scheduling): fewer and
    larger predictions cost less per state, and the agents are ahead of the trainers anyway. Nothing is
    answered while as many segments wait for training as may.

    Args:
        config: settings of the run; the largest prediction batch and the scheduling are used.
        messages: the prediction queue, whose messages are indices of states.
        batches: tells whether the trainers are behind.
    """

    def __init__(self, config: Config, messages: IndexQueue, batches: BatchQueue):
        self._messages = messages
        self._batches = batches
        self._is_patient = config.scheduling == "tuned"
        self._largest = config.max_prediction_batch
        self._asked = self._patient = 0

    def next(self) -> np.ndarray:
        """Wait for requests, and return those that wait, MESSAGE [n]; none if this predictor should end."""
        self._asked += 1
        if self._is_patient and self._batches.is_behind:
            self._patient += 1
            time.sleep(PATIENCE_SECONDS)
        while self._batches.is_full:
            time.sleep(PATIENCE_SECONDS)
        return self._messages.get(self._largest)

    def waited(self) -> float:
        """Return the share of the predictions since the last call that waited for the trainers, 0 to 1."""
        share = self._patient / max(1, self._asked)
        self._asked = self._patient = 0
        return share

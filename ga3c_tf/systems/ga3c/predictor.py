"""The predictor thread: answers the waiting requests of the prediction queue with one batched prediction."""

from __future__ import annotations

from ga3c_tf.experience.reply_pipes import ReplyPipes
from ga3c_tf.systems.ga3c.request_queue import RequestQueue
from ga3c_tf.workers.inference import Inference
from ga3c_tf.workers.thread import Worker, WorkerErrors


class Predictor(Worker):
    """One of N_P predictor threads (section 4.1)."""

    def __init__(
        self, requests: RequestQueue, inference: Inference, replies: ReplyPipes, errors: WorkerErrors
    ):
        super().__init__("predictor", errors)
        self._requests = requests
        self._inference = inference
        self._replies = replies

    def work(self) -> None:
        while len(requests := self._requests.next()):
            self._replies.answer(requests, self._inference.predict(requests["index"]))

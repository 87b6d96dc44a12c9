"""The trainer thread: updates the model with the batches of the training queue."""

from __future__ import annotations

from ga3c_tf.systems.ga3c.batch_queue import BatchQueue
from ga3c_tf.workers.thread import Worker, WorkerErrors
from ga3c_tf.workers.updater import Updater


class Trainer(Worker):
    """One of N_T trainer threads (section 4.1)."""

    def __init__(self, queue: BatchQueue, updater: Updater, errors: WorkerErrors):
        super().__init__("trainer", errors)
        self._queue = queue
        self._updater = updater

    def work(self) -> None:
        while True:
            with self._queue.next() as batches:
                if not batches:
                    return
                self._updater.train_on(batches)

"""The trainer thread: updates the model with the batches that its experience gives."""

from __future__ import annotations

from ga3c_tf.experience.contracts import Experience
from ga3c_tf.workers.thread import Worker, WorkerErrors
from ga3c_tf.workers.updater import Updater


class Trainer(Worker):
    """One of N_T trainer threads (section 4.1)."""

    def __init__(self, experience: Experience, updater: Updater, errors: WorkerErrors):
        super().__init__("trainer", errors)
        self._experience = experience
        self._updater = updater

    def work(self) -> None:
        while True:
            with self._experience.next() as batches:
                if not batches:
                    return
                self._updater.train_on(batches)

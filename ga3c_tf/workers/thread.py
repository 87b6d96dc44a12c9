"""The base class of the server's threads, whose errors are collected instead of lost."""

from __future__ import annotations

import threading

from ga3c_tf.experience.queues import RecordQueue


class WorkerErrors:
    """Collects the errors of all threads, and wakes the system that waits for its processes. Thread-safe.

    Args:
        wake: queue whose records wake the system.

    Attributes:
        first: the first error, or None.
    """

    def __init__(self, wake: RecordQueue):
        self.first: BaseException | None = None
        self._wake = wake

    def add(self, error: BaseException) -> None:
        """Note an error."""
        if self.first is None:
            self.first = error
        self._wake.put(0)

    def check(self) -> None:
        """Raise the first error, if there is one."""
        if self.first is not None:
            raise self.first


class Worker(threading.Thread):
    """Base class of predictor, trainer and dynamic adjustment: runs `work` and reports the exception that it
    raises.

    Args:
        name: thread name, as profilers and tracebacks show it.
        errors: is told of the exception.
    """

    def __init__(self, name: str, errors: WorkerErrors):
        super().__init__(name=name, daemon=True)
        self._errors = errors

    def run(self) -> None:
        try:
            self.work()
        except BaseException as error:
            self._errors.add(error)

    def work(self) -> None:
        """Run the loop; return when the worker is told to stop."""
        raise NotImplementedError

"""The base class of the server's threads, whose errors are kept and reported instead of lost."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Worker(threading.Thread):
    """Base class of predictor, trainer and dynamic adjustment: runs `work` and keeps the exception that it raised.

    Args:
        name: thread name, as profilers and tracebacks show it.
        on_error: called in this thread after `error` has been set.

    Attributes:
        error: exception that `work` raised, or None.
    """

    def __init__(self, name: str, on_error: Callable[[], None]):
        super().__init__(name=name, daemon=True)
        self.error: BaseException | None = None
        self._on_error = on_error

    def run(self) -> None:
        try:
            self.work()
        except BaseException as error:
            self.error = error
            self._on_error()

    def work(self) -> None:
        """Run the loop; return when the worker is told to stop."""
        raise NotImplementedError

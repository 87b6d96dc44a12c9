"""Counts failures that a run survives, so that a persistent fault still ends the run."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

WINDOW_SECONDS = 60.0


class FailureBudget:
    """Counts failures of one kind and limits their number per minute. Thread-safe.

    Args:
        most: number of failures within a minute that is tolerated.
        clock: returns seconds, like `time.monotonic`.

    Attributes:
        count: number of all failures.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic):
        self.count = 0
        self._most = most
        self._clock = clock
        self._recent: deque[float] = deque()
        self._lock = threading.Lock()

    def add(self, error: Exception) -> None:
        """Count `error`, and raise it if there have been too many failures within a minute."""
        with self._lock:
            now = self._clock()
            self.count += 1
            self._recent.append(now)
            while self._recent[0] < now - WINDOW_SECONDS:
                self._recent.popleft()
            if len(self._recent) > self._most:
                raise error

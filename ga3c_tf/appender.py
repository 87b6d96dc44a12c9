"""Appends to a file that may have no room for a while: what does not fit now is written later, in order."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

RETRY_SECONDS = 1.0


class Appender:
    """The end of a file. Safe under threads.

    Args:
        file: appended to; made where it is not there.
        warn: told, in one line, that something cannot be written now; once a second at most.
    """

    def __init__(self, file: Path, warn: Callable[[str], None]):
        self._file, self._warn, self._lock = file, warn, threading.Lock()
        self._waiting: deque[bytes] = deque()
        self._retry_at = 0.0
        self._descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def write(self, data: bytes) -> None:
        """Appends `data`, now or with a later call."""
        with self._lock:
            self._waiting.append(data)
            if time.monotonic() >= self._retry_at:
                self._try()

    def flush(self) -> None:
        """Has the disk keep everything.

        Raises:
            OSError: it cannot.
        """
        with self._lock:
            self._write_waiting()
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Closes the file; what still has no room is lost, and told."""
        with self._lock:
            self._try()
            os.close(self._descriptor)

    def _try(self) -> None:
        try:
            self._write_waiting()
        except OSError as error:
            self._retry_at = time.monotonic() + RETRY_SECONDS
            self._warn(f"{self._file} cannot be written: {error.strerror}; {len(self._waiting)} rows wait for room")

    def _write_waiting(self) -> None:
        while self._waiting:
            data = self._waiting[0]
            written = os.write(self._descriptor, data)
            if written < len(data):
                self._waiting[0] = data[written:]
            else:
                self._waiting.popleft()

"""Files that a reader finds whole: written aside and renamed, or appended to; and locks between processes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

RETRY_SECONDS = 1.0


@contextlib.contextmanager
def atomic_write(file: Path, mode: str = "w", **options) -> Iterator[IO]:
    """Open a new file that replaces `file` at the end of the block, so that a reader sees the old one or the new.

    Args:
        file: the file to be replaced; it need not exist.
        mode: "w" for text or "wb" for bytes.
        options: further arguments of `open`.

    Raises:
        OSError: it cannot be written; `file` is unchanged.
    """
    aside = file.with_name(file.name + ".new")
    try:
        with aside.open(mode, **options) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        aside.rename(file)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise


def write_aside(file: Path, text: str, **options) -> None:
    """Write `text` to a new file and rename it to `file`, so that a reader sees the old one or the new."""
    with atomic_write(file, **options) as stream:
        stream.write(text)


class Locked(Exception):
    """Another process, or another thread, holds a lock."""


@contextlib.contextmanager
def locked(file: Path, say: Callable[[str], None], wait: bool = True) -> Iterator[None]:
    """Hold the lock of `file`, and wait for another process that has it.

    Args:
        file: the lock; made where it does not exist.
        say: told, in one line, that it has to wait.
        wait: whether to wait.

    Raises:
        Locked: another process, or another thread, has it, and `wait` is False.
    """
    with file.open("a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if not wait:
                raise Locked(file) from error
            say(f"waiting for another process that has {file}")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


class RetryingWriter:
    """Appends to a file, and tries again while the disk is full. Thread-safe.

    Args:
        file: appended to; made where it is not there.
        warn: told, in one line, that something cannot be written now; once a second at most.
    """

    def __init__(self, file: Path, warn: Callable[[str], None]):
        self._file = file
        self._warn = warn
        self._lock = threading.Lock()
        self._waiting: deque[bytes] = deque()
        self._retry_at = 0.0
        self._descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def write(self, data: bytes) -> None:
        """Append `data`, now or with a later call."""
        with self._lock:
            self._waiting.append(data)
            if time.monotonic() >= self._retry_at:
                self._try()

    def flush(self) -> None:
        """Have the disk keep everything.

        Raises:
            OSError: it cannot.
        """
        with self._lock:
            self._write_waiting()
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file; what still has no room is lost, and told."""
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

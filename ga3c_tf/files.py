"""Safe file writing: atomic replacement, appending with retries, locks between processes, and valid JSON."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import json
import math
import os
import re
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

Content = TypeVar("Content")
RETRY_SECONDS = 1.0
WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""Numbers of errors by which a file system says that it has no locks."""
WITHOUT_SYNC = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
"""Error numbers by which a file system says it cannot sync, as some network file systems do for folders."""
NO_DAMAGE = (errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE)
"""Numbers of errors of reading a file that may be undamaged."""
NO_LOCK = "the file system of {} has no locks: do not use this folder in two processes at a time"


def may_be_undamaged(error: Exception) -> bool:
    """Return whether reading a file failed for lack of memory, open files or permissions."""
    return isinstance(error, MemoryError) or getattr(error, "errno", None) in NO_DAMAGE


@contextlib.contextmanager
def atomic_write(file: Path, mode: str = "w", **options) -> Iterator[IO]:
    """Open a new file that replaces `file` at the end of the block.

    A reader sees either the old content or the new, never a part.

    Args:
        file: the file to replace; it need not exist.
        mode: "w" for text or "wb" for bytes.
        options: further arguments of `open`.

    Raises:
        OSError: the new file cannot be written; `file` is unchanged.
    """
    aside = file.with_name(file.name + ".new")
    try:
        with aside.open(mode, **options) as stream:
            yield stream
            stream.flush()
            sync(stream.fileno())
        aside.rename(file)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise


def read_once(read: Callable[[Path], Content]) -> Callable[[Path], Content]:
    """Return `read`, which returns the content of a file, such that it reads a file anew once it is replaced.

    The content is shared by all callers, who must not change it.
    """

    @functools.lru_cache(maxsize=64)
    def of_version(file: Path, *version: int) -> Content:
        return read(file)

    @functools.wraps(read)
    def content(file: Path) -> Content:
        try:
            status = file.stat()
        except FileNotFoundError:
            return read(file)
        return of_version(file, status.st_ino, status.st_mtime_ns)

    return content


def sync(descriptor: int) -> None:
    """Sync an open file or folder to disk, so that a power cut does not lose it, where the file system can.

    Raises:
        OSError: it cannot be written.
    """
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in WITHOUT_SYNC:
            raise


def write_aside(file: Path, text: str, **options) -> None:
    """Replace the content of `file` with `text`, atomically as `atomic_write` does."""
    with atomic_write(file, **options) as stream:
        stream.write(text)


def json_text(value: Any, **options: Any) -> str:
    """Format a value as JSON, with null for numbers that are not finite, which JSON lacks.

    Args:
        value: what `json.dumps` takes.
        options: further arguments of `json.dumps`.
    """
    return json.dumps(_with_null(value), allow_nan=False, **options)


def _with_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_null(content) for key, content in value.items()}
    if isinstance(value, list | tuple):
        return [_with_null(content) for content in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Locked(Exception):
    """Raised when another process, or another thread, holds a lock."""


def check_writable(folder: Path) -> None:
    """Check that files can be written to a folder, or that it can be created if it does not exist.

    Raises:
        NotADirectoryError: the folder, or the nearest path above it that exists, is not a folder.
        PermissionError: it cannot be written.
    """
    existing = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
    if not existing.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(existing))
    if not os.access(existing, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(existing))


def lock(stream: IO, wait: bool = False) -> bool:
    """Lock an open file against other processes and threads, until it is closed or this process ends.

    Args:
        stream: the open file.
        wait: whether to wait while another process or thread has the lock.

    Returns:
        Whether it is locked: False on a file system without locks, such as some of clusters.

    Raises:
        BlockingIOError: another process or thread has the lock, and `wait` is False.
    """
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno in WITHOUT_LOCKS:
            return False
        raise
    return True


@contextlib.contextmanager
def locked(file: Path, say: Callable[[str], None], wait: bool = True) -> Iterator[None]:
    """Hold the lock `file` during the block; wait while another process has it.

    Args:
        file: the lock file; it is created if it does not exist.
        say: called with one line before waiting, and where the file system has no locks.
        wait: whether to wait for the lock.

    Raises:
        Locked: another process, or another thread, has the lock, and `wait` is False.
    """
    with file.open("a") as stream:
        try:
            is_locked = lock(stream)
        except BlockingIOError as error:
            if not wait:
                raise Locked(file) from error
            say(f"waiting for another process that has {file}")
            is_locked = lock(stream, wait=True)
        if not is_locked:
            say(NO_LOCK.format(file.parent))
        yield


class RetryingWriter:
    """Appends to a file, and retries while it cannot be written, such as on a full disk. Thread-safe.

    Args:
        file: file to append to; it is created if it does not exist.
        warn: called with one line, about once a second, while the file cannot be written.
    """

    def __init__(self, file: Path, warn: Callable[[str], None]):
        self._file = file
        self._warn = warn
        self._lock = threading.Lock()
        self._waiting: deque[bytes] = deque()
        self._retry_at = 0.0
        self._descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def write(self, data: bytes) -> None:
        """Append `data`, either now or during a later call."""
        with self._lock:
            self._waiting.append(data)
            if time.monotonic() >= self._retry_at:
                self._try()

    def flush(self) -> None:
        """Write everything and sync it to disk.

        Raises:
            OSError: the file cannot be written.
        """
        with self._lock:
            self._write_waiting()
            sync(self._descriptor)

    def close(self) -> None:
        """Close the file. Data that still cannot be written is lost, with a warning."""
        with self._lock:
            self._try("are lost")
            os.close(self._descriptor)

    def _try(self, otherwise: str = "wait for room") -> None:
        """Write what waits; warn, with what becomes of the rows, if it cannot be written."""
        try:
            self._write_waiting()
        except OSError as error:
            self._retry_at = time.monotonic() + RETRY_SECONDS
            self._warn(
                f"{self._file} cannot be written: {error.strerror}; {len(self._waiting)} rows {otherwise}"
            )

    def _write_waiting(self) -> None:
        while self._waiting:
            data = self._waiting[0]
            written = os.write(self._descriptor, data)
            if written < len(data):
                self._waiting[0] = data[written:]
            else:
                self._waiting.popleft()


def as_file_name(text: str) -> str:
    """Return the text with '.' in place of characters that a file name should not have."""
    return re.sub(r"[^\w.-]", ".", text)


def removed(path: Path) -> None:
    """Remove a file or a folder with its content, if it is there and can be removed."""
    with contextlib.suppress(OSError):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

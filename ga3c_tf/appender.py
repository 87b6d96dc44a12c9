"""Appends to a file that may have no room for a while: what does not fit now is written later, in order."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


class Appender:
    """The end of a file.

    Args:
        file: appended to; made where it is not there.
        warn: told, in one line, each time that something cannot be written now.
    """

    def __init__(self, file: Path, warn: Callable[[str], None]):
        self._file, self._warn, self._waiting = file, warn, b""
        self._descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def write(self, data: bytes) -> None:
        """Appends `data`, now or with a later call."""
        self._waiting += data
        try:
            self._write_waiting()
        except OSError as error:
            self._warn(f"{self._file} cannot be written: {error.strerror}; {len(self._waiting)} bytes wait for room")

    def flush(self) -> None:
        """Has the disk keep everything.

        Raises:
            OSError: it cannot.
        """
        self._write_waiting()
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Closes the file; tells of what is lost."""
        self.write(b"")
        os.close(self._descriptor)

    def _write_waiting(self) -> None:
        while self._waiting:
            self._waiting = self._waiting[os.write(self._descriptor, self._waiting) :]

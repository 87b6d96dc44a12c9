"""Pipes of small records that serve as queues between agents and server.

A pipe of fixed-size records is a queue that any process or thread can write to and read from without a lock. Linux
writes and reads records of up to PIPE_BUF bytes whole, and one `os.read` returns every waiting record.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import termios
import threading
from multiprocessing import connection

import numpy as np

INDEX = np.dtype(np.uint32)
EPISODE = np.dtype([("agent", np.int64), ("length", np.int64), ("score", np.float64)])
STOP = 0xFFFFFFFF
"""Record that ends one reader of an index queue."""
ENDED = 1 << 31
"""Bit that marks the record after the last segment of a dead agent process in the training queue."""


class ServerGone(Exception):
    """No process reads a queue any more.

    This is not a BrokenPipeError, because an environment may raise that for its own reasons.
    """


class RecordQueue:
    """A pipe of records of one dtype. Another process that receives the queue can only write to it.

    Args:
        dtype: dtype of a record.
        room: size of the pipe in bytes, if the system allows it; otherwise, and for 0, it is 64 KiB.
    """

    def __init__(self, dtype: np.dtype, room: int = 0):
        self.dtype = dtype
        self.reader, self.writer = connection.Pipe(duplex=False)
        if room:
            with contextlib.suppress(OSError):  # the size may exceed what a user is allowed
                fcntl.fcntl(self.writer.fileno(), fcntl.F_SETPIPE_SZ, room)

    def __getstate__(self):
        # a process that also held the reading end would never notice that the server has died
        return {"dtype": self.dtype, "writer": self.writer}

    def put(self, record) -> None:
        """Write one record, or an array of records, completely; block only while the pipe is full.

        Raises:
            ServerGone: no process reads this queue any more.
        """
        try:
            os.write(self.writer.fileno(), np.asarray(record, self.dtype).tobytes())
        except BrokenPipeError:
            raise ServerGone from None

    def get(self, maximum: int = 1) -> np.ndarray:
        """Wait for a record, then return up to `maximum` waiting records, oldest first; none if the queue is closed."""
        return np.frombuffer(os.read(self.reader.fileno(), maximum * self.dtype.itemsize), self.dtype)

    def __len__(self) -> int:
        """Return the number of waiting records."""
        buffer = fcntl.ioctl(self.reader.fileno(), termios.FIONREAD, b"\0" * 4)
        return struct.unpack("i", buffer)[0] // self.dtype.itemsize


class IndexQueue(RecordQueue):
    """A queue of indices that several threads read. Each STOP record ends one of these threads."""

    def __init__(self):
        super().__init__(INDEX)
        self._reader = threading.local()

    def get(self, maximum: int = 1) -> np.ndarray:
        """Return indices like `RecordQueue.get`, but none if this reader should end.

        Indices before a STOP record are returned first.
        """
        if getattr(self._reader, "ends", False):
            self._reader.ends = False
            return np.empty(0, INDEX)
        records = super().get(maximum)
        stops = int(np.count_nonzero(records == STOP))
        if stops == 0:
            return records
        self.stop(stops - 1)  # put back those that are for other readers
        indices = records[records != STOP]
        self._reader.ends = len(indices) > 0
        return indices

    def stop(self, readers: int = 1) -> None:
        """End `readers` of the threads that read this queue."""
        if readers:
            self.put(np.full(readers, STOP, INDEX))

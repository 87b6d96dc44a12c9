"""Pipes of small records that serve as queues between agents and server.

A pipe of fixed-size records is a queue that any process or thread can write to and read from without a lock.
Linux writes and reads records of up to PIPE_BUF bytes whole, and one `os.read` returns every waiting record.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import termios
import threading
from multiprocessing import connection
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

INDEX = np.dtype(np.uint32)
MESSAGE = np.dtype([("index", "<u4"), ("generation", "<u4")])
"""Message of an agent process: index of a state or slot, and generation of the process (`ReplyPipes`)."""
WHOLE = np.dtype("<u8")
"""A message as one number, index + generation * 2^32."""
EPISODE = np.dtype([("agent", np.int64), ("length", np.int64), ("score", np.float64)])
STOP = 0xFFFFFFFF
"""Index in a message that ends one reader of an index queue."""
STOP_BYTES = STOP.to_bytes(4, "little")


PIPE_MESSAGES = 16_384
"""Number of messages for which an index queue has room: more than the largest --max-training-queue."""


class ServerGone(Exception):
    """No process reads a queue any more.

    This is not a BrokenPipeError, because an environment may raise that for its own reasons.
    """


class Writable(Protocol):
    """The end of a queue that agents write to."""

    def put(self, record: ArrayLike) -> None:
        """Write one record, or an array of records."""


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

    def put(self, record: ArrayLike) -> None:
        """Write one record, or an array of records, completely; block only while the pipe is full.

        Raises:
            ServerGone: no process reads this queue any more.
        """
        self._write(np.asarray(record, self.dtype).tobytes())

    def get(self, maximum: int = 1) -> np.ndarray:
        """Wait for a record, then return up to `maximum`, oldest first; none if the queue is closed."""
        return np.frombuffer(self._read(maximum), self.dtype)

    def _write(self, data: bytes) -> None:
        try:
            os.write(self.writer.fileno(), data)
        except BrokenPipeError:
            raise ServerGone from None

    def _read(self, maximum: int) -> bytes:
        return os.read(self.reader.fileno(), maximum * self.dtype.itemsize)

    def __len__(self) -> int:
        """Return the number of waiting records."""
        buffer = fcntl.ioctl(self.reader.fileno(), termios.FIONREAD, b"\0" * 4)
        return struct.unpack("i", buffer)[0] // self.dtype.itemsize


class IndexQueue(RecordQueue):
    """A queue of messages that several threads read. Each STOP message ends one of these threads.

    Attributes:
        readers: number of threads that read this queue, as `set_readers` was told.
    """

    def __init__(self):
        super().__init__(MESSAGE, PIPE_MESSAGES * MESSAGE.itemsize)
        self.readers = 0
        self._reader = threading.local()

    def put(self, record: ArrayLike, generation: int = 0) -> None:
        """Write an index, or an array of indices, of a process of this generation, like `RecordQueue.put`."""
        # A message as one number: with fields, this takes 8 us instead of 5.
        self._write((np.asarray(record, WHOLE) | WHOLE.type(generation << 32)).tobytes())

    def get(self, maximum: int = 1) -> np.ndarray:
        """Return messages like `RecordQueue.get`, but none if this reader should end.

        Messages before a STOP are returned first.
        """
        if getattr(self._reader, "ends", False):
            self._reader.ends = False
            return np.empty(0, MESSAGE)
        data = self._read(maximum)
        messages = np.frombuffer(data, MESSAGE)
        if STOP_BYTES not in data:  # nearly always, and a search takes less time than a comparison of fields
            return messages
        stopping = messages["index"] == STOP
        stops = int(np.count_nonzero(stopping))
        if stops == 0:
            return messages
        self._end(stops - 1)  # put back those that are for other readers
        messages = messages[~stopping]
        self._reader.ends = len(messages) > 0
        return messages

    def end_later(self) -> None:
        """Let the next `get` of this reader return none, after a `get` that did and was not for that time."""
        self._reader.ends = True

    def set_readers(self, readers: int) -> None:
        """Note that so many threads read this queue. If there were more, as many as are too many end."""
        self._end(self.readers - readers)
        self.readers = readers

    def stop(self) -> None:
        """End all threads that read this queue."""
        self._end(self.readers)

    def _end(self, readers: int) -> None:
        if readers > 0:
            self.put(np.full(readers, STOP, INDEX))


class Sender:
    """The queue as one agent process writes to it: each message carries the generation of this process."""

    def __init__(self, queue: IndexQueue, generation: int):
        self._queue = queue
        self._generation = generation

    def put(self, record: ArrayLike) -> None:
        """Write one index, or an array of indices, like `IndexQueue.put`."""
        self._queue.put(record, self._generation)

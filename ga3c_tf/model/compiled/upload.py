"""Arrays packed into one buffer, because each array that goes to a device by itself costs a call."""

from __future__ import annotations

import math
import mmap
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from ga3c_tf.model.tensorflow import tf

WORD = 4
"""Bytes of the numbers as which a program gets a buffer. To put numbers together from smaller ones takes a
kernel for each array; to take them apart takes none."""
ALIGNMENT = 64
"""Bytes at whose multiples arrays begin: TensorFlow ends the process at a tensor that is not aligned so."""


class Field(NamedTuple):
    """An array in a buffer."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def bytes(self) -> int:
        """Size of the array."""
        return math.prod(self.shape) * self.dtype.itemsize


class Buffer:
    """Memory with the arrays of an upload, which begins at a page; all zeros at first.

    Args:
        fields: the arrays, in their order in the memory.

    Attributes:
        arrays: the arrays by name, in this memory.
    """

    def __init__(self, fields: Sequence[Field]):
        places, size = _places(fields)
        self._bytes = np.frombuffer(mmap.mmap(-1, size), np.uint8)
        self.arrays: dict[str, np.ndarray] = {}
        for field, place in zip(fields, places, strict=True):
            values = self._bytes[place : place + field.bytes].view(field.dtype)
            self.arrays[field.name] = values.reshape(field.shape)

    def tensor(self) -> tf.Tensor:
        """Return the memory as a tensor, without a copy: uint32 [bytes / 4].

        It is a new one for each call: TensorFlow remembers the copy that a device has of a tensor, and would
        not see that the memory has changed.
        """
        return tf.experimental.dlpack.from_dlpack(self._bytes.view(np.uint32).__dlpack__())


class Upload:
    """The arrays that one call of a program takes, as one buffer. Thread-safe.

    Args:
        fields: the arrays.

    Attributes:
        spec: tf.TensorSpec of the packed arrays.
    """

    def __init__(self, fields: Sequence[Field]):
        self._fields = tuple(fields)
        self._free: deque[Buffer] = deque()
        self.spec = tf.TensorSpec((_places(fields)[1] // WORD,), tf.uint32)

    @contextmanager
    def buffer(self) -> Iterator[Buffer]:
        """Lend a buffer, until the call that it is for has returned its result."""
        try:
            buffer = self._free.pop()
        except IndexError:
            buffer = Buffer(self._fields)
        yield buffer
        self._free.append(buffer)

    def unpacked(self, packed: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the arrays by name, in the graph of a program, from the tensor of a buffer."""
        tensors = {}
        for field, place in zip(self._fields, _places(self._fields)[0], strict=True):
            words = packed[place // WORD : -(-(place + field.bytes) // WORD)]
            if field.dtype.itemsize > WORD:
                words = tf.reshape(words, (-1, field.dtype.itemsize // WORD))
            values = tf.reshape(tf.bitcast(words, field.dtype), (-1,))
            tensors[field.name] = tf.reshape(values[: math.prod(field.shape)], field.shape)
        return tensors


def packed(*tensors: tf.Tensor) -> tf.Tensor:
    """Return tensors of 32 or 64 bits a number as one row of 32-bit numbers, uint32 [n], in a graph.

    Not int32: TensorFlow keeps such results of a call in the memory of the host, and copies them. They are
    put together as float32, which most of them are already: that and what computes them is one kernel.
    """
    rows = [tf.reshape(tf.bitcast(tensor, tf.float32), (-1,)) for tensor in tensors]
    return tf.bitcast(tf.concat(rows, 0), tf.uint32)


def _places(fields: Sequence[Field]) -> tuple[list[int], int]:
    """Return where each array begins in a buffer, and the size of the buffer, in bytes."""
    places = []
    size = 0
    for field in fields:
        places.append(size)
        size += -(-field.bytes // ALIGNMENT) * ALIGNMENT
    return places, size

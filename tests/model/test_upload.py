"""Arrays in one buffer: what is written there is what a graph unpacks."""

import threading
import time

import numpy as np
import pytest

from ga3c_tf.model.compiled.compilation import CannotCompile, compile_all
from ga3c_tf.model.compiled.upload import ALIGNMENT, Field, Upload, packed
from ga3c_tf.model.tensorflow import tf

FIELDS = [
    Field("count", (), np.dtype(np.int32)),
    Field("states", (3, 5), np.dtype(np.uint8)),  # not a multiple of four bytes
    Field("returns", (7,), np.dtype(np.float32)),
    Field("versions", (2, 2), np.dtype(np.int64)),
]


def test_a_graph_unpacks_what_python_has_written():
    upload = Upload(FIELDS)
    rng = np.random.default_rng(0)
    unpack = tf.function(upload.unpacked, input_signature=[upload.spec])
    for _ in range(2):  # the buffer is used again
        with upload.buffer() as buffer:
            written = {}
            for field in FIELDS:
                written[field.name] = (100 * rng.random(field.shape)).astype(field.dtype)
                buffer.arrays[field.name][...] = written[field.name]
            tensors = unpack(buffer.tensor())
        for name, values in written.items():
            np.testing.assert_array_equal(tensors[name], values)
            assert tensors[name].dtype == values.dtype


def test_arrays_are_aligned_and_two_calls_at_once_have_two_buffers():
    upload = Upload(FIELDS)
    with upload.buffer() as one, upload.buffer() as other:
        for array in (*one.arrays.values(), *other.arrays.values()):
            assert array.ctypes.data % ALIGNMENT == 0
        one.arrays["count"][...] = 3
        assert other.arrays["count"] == 0
    with upload.buffer() as again:
        assert again in (one, other)


def test_results_are_packed_bit_by_bit():
    numbers = packed(tf.constant(2**40 + 3, tf.int64), tf.constant([np.nan, -0.5])).numpy()
    assert numbers[:2].view(np.int64) == 2**40 + 3
    np.testing.assert_array_equal(numbers[2:].view(np.float32), np.array([np.nan, -0.5], np.float32))


PROGRAMS = 5000
"""More than are compiled in minutes."""


class Slow:
    """A program that compiles for a while."""

    compiled = 0

    def compile(self):
        time.sleep(0.05)
        type(self).compiled += 1


def test_an_interrupt_while_programs_are_compiled_leaves_no_thread_behind():
    def programs():
        for _ in range(PROGRAMS):
            yield Slow()
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        compile_all(programs())
    assert Slow.compiled < PROGRAMS and threading.active_count() == before


def test_what_xla_cannot_do_is_told_in_one_line():
    class Impossible:
        def compile(self):
            raise tf.errors.InvalidArgumentError(None, None, "graph f on XLA_CPU_JIT: no AsString\nmore")

    with pytest.raises(CannotCompile, match=r"^XLA cannot do it: no AsString$"):
        compile_all([Impossible()])

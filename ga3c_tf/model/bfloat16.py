"""Whether this processor computes faster in bfloat16 than in float32, by a measurement."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

from ga3c_tf.model.tensorflow import tf

STATES = 128
CALLS = 8
FASTER = 1.1
"""Smallest speed-up that counts: weights are cast in every call, which the measured layers do not show."""


@functools.cache
def bfloat16_is_faster() -> bool:
    """Time two layers of the small network, forward and backward, with both dtypes in turn on the CPU.

    It takes half a second. Processors with instructions for bfloat16 (AVX-512 BF16, AMX) gain from it, and on
    others it is many times slower.
    """
    works = {dtype: _work(dtype) for dtype in (tf.float32, tf.bfloat16)}
    times = {dtype: min(_seconds(work) for _ in range(CALLS)) for dtype, work in works.items()}
    return times[tf.float32] > FASTER * times[tf.bfloat16]


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _work(dtype: tf.DType) -> Callable[[], object]:
    """Return the gradients of the second convolution and the dense layer, traced and called once."""
    with tf.device("/CPU:0"):
        images = tf.ones((STATES, 21, 21, 16), dtype)
        filters = tf.ones((4, 4, 16, 32), dtype)
        weights = tf.ones((3872, 256), dtype)

        @tf.function
        def gradients():
            with tf.GradientTape() as tape:
                tape.watch((images, filters, weights))
                planes = tf.nn.relu(tf.nn.conv2d(images, filters, 2, "SAME"))
                hidden = tf.reshape(planes, (STATES, -1)) @ weights
            return tape.gradient(hidden, (images, filters, weights))

        def run():
            return gradients()[0].numpy()

        run()
    return run

"""How a component is timed: on one core, by the mean of many calls.

An agent step, a queue's round trip and, on a CPU, prediction and update run on one core. Their process is
bound to it if the operating system supports this (Linux), and TensorFlow has one thread there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable


def ms_per_call(call: Callable[[], object], seconds: float) -> float:
    """Return the mean milliseconds of a `call`, repeated for `seconds` or at least once after a warm-up."""
    call()
    calls = 0
    start = time.perf_counter()
    while True:
        call()
        calls += 1
        elapsed = time.perf_counter() - start
        if elapsed >= seconds:
            return 1000 * elapsed / calls


def bind_to_one_core() -> None:
    """Bind this thread, and the threads and processes that it starts later, to the last core it may use."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

"""Ctrl-C during a training that a Python program or a notebook runs."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ga3c_tf.runs import outcomes

if TYPE_CHECKING:
    from ga3c_tf.systems.training import Training


@contextlib.contextmanager
def stopped_by_interrupt(training: Training) -> Iterator[None]:
    """Let Ctrl-C, or a notebook's stop button, end the training with a checkpoint; a second one ends it at
    once.

    In other threads than the main one, where Python allows no signal handlers, do nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []

    def on_interrupt(number, frame):
        if received:
            training.kill()
            raise KeyboardInterrupt
        received.append(number)
        training.stop(outcomes.INTERRUPTED)

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

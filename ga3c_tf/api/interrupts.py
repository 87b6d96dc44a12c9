"""Signals that end a training which a Python program or a notebook runs."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ga3c_tf.host.signals import ENDING
from ga3c_tf.runs import outcomes

if TYPE_CHECKING:
    from ga3c_tf.systems.training import Training


@contextlib.contextmanager
def stopped_by_signals(training: Training) -> Iterator[None]:
    """Let a signal end the training with a checkpoint; a second one ends it at once.

    The program goes on after Ctrl-C, or a notebook's stop button. SIGTERM and SIGHUP end it after the
    checkpoint; they are left to the program where it handles or ignores them. In other threads than the main
    one, where Python allows no signal handlers, do nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []

    def on_signal(number, frame):
        if received:
            training.kill()
            raise KeyboardInterrupt
        received.append(number)
        training.stop(outcomes.INTERRUPTED)

    answered = [
        number for number in ENDING if number == signal.SIGINT or signal.getsignal(number) == signal.SIG_DFL
    ]
    before = {number: signal.signal(number, on_signal) for number in answered}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if received and received[0] != signal.SIGINT:  # not after an error, which would not be seen
        with contextlib.suppress(OSError):
            sys.stdout.flush()  # the signal discards what is buffered
        signal.raise_signal(received[0])

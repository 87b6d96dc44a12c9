"""Signals that end a program, and processes that are not to answer them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, what `kill` and cluster managers send, and the end of a terminal or of an ssh connection."""


@contextmanager
def left_to_this_process() -> Iterator[None]:
    """Block the signals of `ENDING` in this thread; processes that it starts meanwhile have them blocked for good.

    A signal to the whole process group is then answered by this process alone. In any thread, where a handler could be
    set in the main thread only.
    """
    resource_tracker.ensure_running()  # multiprocessing would start it within, and unblock the signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

"""Signals that end a program, how it answers them, and a way to keep child processes from receiving them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import NoReturn

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Sent by Ctrl-C, by `kill` and cluster managers, and at the end of a terminal or an ssh connection."""


class EndedBySignal(SystemExit):
    """Raised by a signal handler. Any other SystemExit comes from user code, such as an environment."""


def exit_by_signal(number: int, frame: object) -> NoReturn:
    """Handle a signal: end the program with exit code 128 + `number`, so files and processes are closed."""
    raise EndedBySignal(128 + number)


@contextmanager
def left_to_this_process() -> Iterator[None]:
    """Block the signals in `ENDING` in this thread during the block; processes started in it keep them
    blocked.

    Only this process then answers a signal to the whole process group. Unlike signal handlers, which can be
    set in the main thread only, this works in any thread. A process that may start programs unblocks the
    signals, as `processes.begin_child_process` does, because the programs would keep them blocked too.
    """
    resource_tracker.ensure_running()  # else multiprocessing starts it in the block, and unblocks the signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class TimeLimitReached(Exception):
    """Raised by `time_limit`. It is no OSError as TimeoutError is, which a block may suppress."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeLimitReached in the block after so many seconds. For the main thread, which has one timer."""

    def end(number: int, frame: object) -> NoReturn:
        raise TimeLimitReached(f"not done after {seconds:g} s")

    handler = signal.signal(signal.SIGALRM, end)
    others = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *others)

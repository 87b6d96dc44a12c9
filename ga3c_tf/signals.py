"""Signals that a process and those it starts are not to answer."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ignored(*signals: signal.Signals) -> Iterator[None]:
    """Within it these signals are ignored, and by processes started within it for good. Main thread only."""
    before = [signal.signal(number, signal.SIG_IGN) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)

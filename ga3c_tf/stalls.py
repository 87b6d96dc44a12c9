"""Notices that a stage of a run no longer moves, and which."""

from __future__ import annotations

import time
from collections.abc import Callable

STALL_SECONDS = 30.0


class StallWatch:
    """Looks at counters that should rise.

    Args:
        clock: seconds, as `time.monotonic` gives them.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._seen: dict[str, tuple[int, float, float]] = {}  # count, since when, when last told

    def stalled(self, counters: dict[str, int]) -> dict[str, float]:
        """The stages that have stood still for STALL_SECONDS, each named again only after as long, and for how long."""
        now, found = self._clock(), {}
        for name, count in counters.items():
            before, since, told = self._seen.get(name, (None, now, now))
            if count != before:
                since = told = now
            elif now - told >= STALL_SECONDS:
                told, found[name] = now, now - since
            self._seen[name] = count, since, told
        return found

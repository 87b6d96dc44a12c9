"""Notices that a stage of a run no longer moves, and which."""

from __future__ import annotations

import time
from collections.abc import Callable

STALL_SECONDS = 30.0


class StallDetector:
    """Looks at counters that should rise. As for `Watchdog`, time counts only while someone looks.

    Args:
        clock: seconds, as `time.monotonic` gives them.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._looked = clock()
        # By stage: the count, the seconds since it rose, and how many of them had passed at the last report.
        self._seen: dict[str, tuple[int, float, float]] = {}

    def stalled(self, counters: dict[str, int]) -> dict[str, float]:
        """Return the stalled stages and the seconds since each last progressed; each is named once in STALL_SECONDS."""
        now = self._clock()
        found = {}
        passed = min(now - self._looked, 1.0)
        self._looked = now
        for name, count in counters.items():
            before, stood, told = self._seen.get(name, (None, 0.0, 0.0))
            stood, told = (stood + passed, told) if count == before else (0.0, 0.0)
            if stood - told >= STALL_SECONDS:
                told = stood
                found[name] = stood
            self._seen[name] = count, stood, told
        return found

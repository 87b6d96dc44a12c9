"""Detects which stages of a run no longer make progress."""

from __future__ import annotations

import time
from collections.abc import Callable

STALL_SECONDS = 30.0


class StallDetector:
    """Watches counters that should rise. As in `Watchdog`, a call counts at most one second, so pauses do not
    count.

    Args:
        clock: returns seconds, like `time.monotonic`.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._looked = clock()
        # By stage: the count, the seconds since it last rose, and how many had passed at the last report.
        self._seen: dict[str, tuple[int, float, float]] = {}

    def stalled(self, counters: dict[str, int]) -> dict[str, float]:
        """Return the stalled stages, and for each the seconds since it last made progress.

        A stage that stays stalled is reported again after every STALL_SECONDS.

        Args:
            counters: by stage, a count that rises while the stage makes progress.
        """
        now = self._clock()
        stalled = {}
        passed = min(now - self._looked, 1.0)
        self._looked = now
        for name, count in counters.items():
            before, stood, reported = self._seen.get(name, (None, 0.0, 0.0))
            stood, reported = (stood + passed, reported) if count == before else (0.0, 0.0)
            if stood - reported >= STALL_SECONDS:
                reported = stood
                stalled[name] = stood
            self._seen[name] = count, stood, reported
        return stalled

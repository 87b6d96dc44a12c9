"""Measures for how long something has not changed, such as a counter that should rise."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Standstill(Generic[Key]):
    """Measures for how long values have not changed.

    A call counts at most one second, because a pause of the whole run, such as a stopped process group or a
    sleeping machine, is nobody's fault.

    Args:
        clock: returns seconds, like `time.monotonic`.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._looked = clock()
        self._seen: dict[Key, tuple[float, float]] = {}  # the value, and the seconds since it last changed

    def seconds(self, values: Mapping[Key, float]) -> dict[Key, float]:
        """Return the seconds since each value last changed, or since it was first given."""
        now = self._clock()
        passed = min(now - self._looked, 1.0)
        self._looked = now
        seen = {}
        for key, value in values.items():
            before, stood = self._seen.get(key, (None, 0.0))
            seen[key] = value, stood + passed if value == before else 0.0
        self._seen = seen
        return {key: stood for key, (_, stood) in seen.items()}

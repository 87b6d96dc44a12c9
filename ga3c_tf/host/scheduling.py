"""How the operating system shares the cores among our threads."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def schedule_as_batch() -> None:
    """Has this thread, and the threads and processes it starts from now on, wait for a core instead of taking one.

    With Linux's SCHED_BATCH a thread that wakes up does not interrupt the one that runs. Where all cores are busy,
    requests then gather into larger predictions and caches stay warm; an idle core is used as soon as ever.
    Elsewhere, or where it is not allowed, nothing changes.
    """
    if hasattr(os, "SCHED_BATCH"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


class IdleCores:
    """How much of their time the cores that this process may run on have nothing to do, whoever uses them."""

    def __init__(self):
        self._before = _core_times()

    def share(self) -> float:
        """The idle share of the time since the last call, 0 to 1; 0 where the system does not tell."""
        before, self._before = self._before, _core_times()
        idle, total = (after - earlier for after, earlier in zip(self._before, before, strict=True))
        return idle / total if total else 0.0


def _core_times() -> tuple[int, int]:
    """Idle and all time of these cores so far, in the clock ticks of /proc/stat."""
    cores = {f"cpu{core}" for core in os.sched_getaffinity(0)} if hasattr(os, "sched_getaffinity") else set()
    try:
        lines = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    except OSError:
        return 0, 0
    times = [[int(ticks) for ticks in line[1:9]] for line in lines if line[0] in cores]
    return sum(ticks[3] + ticks[4] for ticks in times), sum(map(sum, times))

"""How the operating system shares the cores among our threads, and how busy it keeps them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


def schedule_as(kind: str) -> None:
    """Schedule this thread, and the threads and processes it starts from now on, as the setting `scheduling` says.

    With Linux's SCHED_BATCH a thread that wakes up does not interrupt the one that runs. Where all cores are busy,
    requests then gather into larger predictions and caches stay warm; an idle core is used as soon as ever.
    Where the system has no such policy, or does not allow it, nothing changes.

    Args:
        kind: 'tuned' for SCHED_BATCH, or 'plain' for the system's usual policy.
    """
    name = "SCHED_BATCH" if kind == "tuned" else "SCHED_OTHER"
    if hasattr(os, name):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, getattr(os, name), os.sched_param(0))


@contextlib.contextmanager
def scheduling_restored() -> Iterator[None]:
    """Restore this thread's scheduling policy at the end of the block."""
    before = os.sched_getscheduler(0) if hasattr(os, "sched_getscheduler") else None
    try:
        yield
    finally:
        if before is not None:
            with contextlib.suppress(OSError):
                os.sched_setscheduler(0, before, os.sched_param(0))


class IdleCores:
    """Measures the share of their time in which the cores that this process may run on have nothing to do."""

    def __init__(self):
        self._before = _core_times()

    def share(self) -> float:
        """Return the idle share of the time since the last call, 0 to 1; 0 where the system does not tell."""
        idle_before, total_before = self._before
        self._before = _core_times()
        idle, total = self._before
        elapsed = total - total_before
        return (idle - idle_before) / elapsed if elapsed else 0.0


def busy_seconds() -> float:
    """Return the seconds that the cores this process may use have not been idle, whoever used them.

    Time that a hypervisor took away counts as used.
    """
    idle, total = _core_times()
    return (total - idle) / os.sysconf("SC_CLK_TCK")


def _core_times() -> tuple[int, int]:
    """Return the idle time and all time of these cores so far, in the clock ticks of /proc/stat; zeros without it.

    psutil gives the times of all cores that are online without their numbers. Where a core in between is offline, its
    list does not tell which of them this process may run on.
    """
    cores = {f"cpu{core}" for core in os.sched_getaffinity(0)} if hasattr(os, "sched_getaffinity") else set()
    try:
        lines = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    except OSError:
        return 0, 0
    # The columns: user, nice, system, idle, iowait, irq, softirq, steal; guests' time is part of the first two.
    times = [[int(ticks) for ticks in line[1:9]] for line in lines if line[0] in cores]
    idle = sum(ticks[3] + ticks[4] for ticks in times)
    total = sum(map(sum, times))
    return idle, total

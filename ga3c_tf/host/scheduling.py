"""Scheduling of threads by the operating system, and how busy the cores are."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


def schedule_as(kind: str) -> None:
    """Set the scheduling policy of this thread, and of the threads and processes that it starts from now on.

    With Linux's SCHED_BATCH, a thread that wakes up does not interrupt a running one. Where all cores are
    busy, requests then gather into larger prediction batches, and caches stay warm. Idle cores are used as
    soon as before. Nothing changes where the system does not have or does not allow the policy, or
    where the user has given the program another one, such as SCHED_IDLE.

    Args:
        kind: value of the setting `scheduling`: 'tuned' for SCHED_BATCH, or 'plain' for the system's usual
            policy.
    """
    name = "SCHED_BATCH" if kind == "tuned" else "SCHED_OTHER"
    if hasattr(os, name) and os.sched_getscheduler(0) in (os.SCHED_OTHER, os.SCHED_BATCH):
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
    """Measures the share of time in which the cores that this process may run on are idle."""

    def __init__(self):
        self._before = _core_times()

    def share(self) -> float:
        """Return the idle share of the time since the last call, 0 to 1; 0 where it is not reported."""
        idle_before, total_before = self._before
        self._before = _core_times()
        idle, total = self._before
        elapsed = total - total_before
        return (idle - idle_before) / elapsed if elapsed else 0.0


def busy_seconds() -> float:
    """Return the busy time of the cores that this process may use, in seconds since the start of the machine.

    It is summed over the cores. The time of all processes counts, and so does time that a hypervisor took
    away.
    """
    idle, total = _core_times()
    return (total - idle) / os.sysconf("SC_CLK_TCK")


def _core_times() -> tuple[int, int]:
    """Return the idle time and the total time of the cores that this process may run on, in clock ticks.

    Both are read from /proc/stat, and are 0 without that file. psutil is not used because it lists the times
    of online cores without their numbers. If a core is offline, the list does not show which of them this
    process may run on.
    """
    cores = {f"cpu{core}" for core in os.sched_getaffinity(0)} if hasattr(os, "sched_getaffinity") else set()
    try:
        lines = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    except OSError:
        return 0, 0
    # The columns are user, nice, system, idle, iowait, irq, softirq and steal. The first two include guests.
    times = [[int(ticks) for ticks in line[1:9]] for line in lines if line[0] in cores]
    idle = sum(ticks[3] + ticks[4] for ticks in times)
    total = sum(map(sum, times))
    return idle, total

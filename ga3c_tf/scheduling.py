"""How the operating system shares the cores among our threads."""

from __future__ import annotations

import contextlib
import os


def schedule_as_batch() -> None:
    """Has this thread, and the threads and processes it starts from now on, wait for a core instead of taking one.

    With Linux's SCHED_BATCH a thread that wakes up does not interrupt the one that runs. Where all cores are busy,
    requests then gather into larger predictions and caches stay warm; an idle core is used as soon as ever.
    Elsewhere, or where it is not allowed, nothing changes.
    """
    if hasattr(os, "SCHED_BATCH"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))

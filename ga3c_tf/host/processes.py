"""Process groups and their processor time, and the end of a process with its parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal

import psutil

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def process_group(leader: int) -> dict[int, dict]:
    """Return the processes of a process group by id.

    Each has 'parent', the id of its parent, and 'cpu_s', the processor time that it has used, in seconds. Zombies,
    which have ended but have not been waited for, are included.

    Args:
        leader: id of the process that leads the group.
    """
    members = {}
    for number in psutil.pids():
        with contextlib.suppress(OSError, psutil.Error):  # a process may end meanwhile
            if os.getpgid(number) == leader:
                process = psutil.Process(number)
                used = process.cpu_times()
                members[number] = {"parent": process.ppid(), "cpu_s": used.user + used.system}
    return members


def end_with_parent() -> None:
    """Make the kernel send SIGINT to this process when its parent ends, even by kill -9.

    SIGINT is unblocked first, because a parent that blocks it passes this on to its children.
    """
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGINT)

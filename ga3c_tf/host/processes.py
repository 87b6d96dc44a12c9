"""The processes of this machine and what they have used."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal

import psutil

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def process_group(leader: int) -> dict[int, dict]:
    """Return the processes of a group by id, each with its 'parent' and 'cpu_s', the processor time that it has used.

    A process that has ended, and that nobody has waited for yet, is still one of them.
    """
    members = {}
    for number in psutil.pids():
        with contextlib.suppress(OSError, psutil.Error):  # it has ended meanwhile
            if os.getpgid(number) == leader:
                process = psutil.Process(number)
                used = process.cpu_times()
                members[number] = {"parent": process.ppid(), "cpu_s": used.user + used.system}
    return members


def end_with_parent() -> None:
    """Have the kernel send SIGINT to this process when its parent ends, be it by kill -9; a parent may block SIGINT."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGINT)

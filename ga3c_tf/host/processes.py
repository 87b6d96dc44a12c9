"""The processes of this machine and what they have used."""

from __future__ import annotations

import contextlib
import os

import psutil


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

"""Process groups, their processor time, a process's end with its parent, and one that nothing holds up."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

import psutil

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def process_group(leader: int) -> dict[int, dict]:
    """Return the processes of a process group by id.

    Each has 'parent', the id of its parent, and 'cpu_s', the processor time that it has used, in seconds.
    Zombies, which have ended but have not been waited for, are included.

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


@contextlib.contextmanager
def exit_not_held_up(seconds: float, say: Callable[[str], None]) -> Iterator[None]:
    """End the program at most some seconds after the block, whatever user code has left behind in this
    process.

    Otherwise Python would wait for ever for threads and processes that an environment has started and not
    ended.

    Args:
        seconds: seconds that the program may take to end by itself.
        say: called with one line if it does not.
    """
    code: str | int | None = 1
    try:
        yield
    except SystemExit as ending:
        code = ending.code
        raise
    finally:
        number = code if isinstance(code, int) else int(code is not None)
        threading.Thread(target=_exit_after, args=(seconds, number, say), daemon=True).start()


def _exit_after(seconds: float, code: int, say: Callable[[str], None]) -> None:
    time.sleep(seconds)
    names = [
        thread.name for thread in threading.enumerate() if not thread.daemon and thread.name != "MainThread"
    ]
    left = f"threads ({', '.join(names)})" if names else "threads or processes"
    try:
        say(f"user code, such as an environment, has left {left} running; the program is ended nevertheless")
    finally:
        os._exit(code)

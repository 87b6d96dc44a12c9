"""Groups of processes, programs that processes with environments have started, and the end of both.

Functions import psutil themselves, because agent processes import this module and do not need psutil.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.process import BaseProcess

from ga3c_tf.host.signals import ENDING

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def process_group(leader: int) -> dict[int, dict]:
    """Return the processes of a process group by id.

    Each has 'parent', the id of its parent, and 'cpu_s', the processor time that it has used, in seconds.
    Zombies, which have ended but have not been waited for, are included.

    Args:
        leader: id of the process that leads the group.
    """
    import psutil

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


STARTED_BY = "GA3C_TF_STARTED_BY"
"""Environment variable with the id of the process that has started a program, or one of the programs before
it.

A program inherits it even if it has a session of its own, and keeps it when its parent has been killed.
"""


def begin_child_process() -> None:
    """Make this process ignore the signals in `ENDING`, and mark the programs that it starts for
    `end_offspring`.

    The signals get handlers, and are not blocked or ignored: programs would inherit that, and could not be
    terminated. A signal that is ignored already, such as SIGHUP under `nohup`, stays so.
    """
    os.environ[STARTED_BY] = str(os.getpid())
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, frame: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


@contextlib.contextmanager
def offspring_ends_with_program() -> Iterator[None]:
    """Mark the programs started in the block; those left when this program ends are killed then."""
    before = {name: value for name, value in os.environ.items() if name == STARTED_BY}
    os.environ[STARTED_BY] = str(os.getpid())
    atexit.unregister(end_offspring)
    atexit.register(end_offspring, [os.getpid()])
    try:
        yield
    finally:
        os.environ.pop(STARTED_BY, None)  # another thread may have ended its block before
        os.environ.update(before)


def kill_family(process: BaseProcess) -> None:
    """Kill a process, unless it has ended, and its descendants: forks too, which carry no mark of it."""
    import psutil  # agent processes do without it

    descendants: list[psutil.Process] = []
    if process.exitcode is None:  # or else its id may be another process's by now
        with contextlib.suppress(psutil.NoSuchProcess):
            parent = psutil.Process(process.pid)
            parent.suspend()  # so that it forks no more
            descendants = parent.children(recursive=True)
    process.kill()
    for descendant in descendants:
        with contextlib.suppress(psutil.Error):  # it has ended
            descendant.kill()


def end_offspring(parents: Iterable[int | None]) -> None:
    """Kill the programs that these processes have started and left behind.

    Args:
        parents: ids of processes that have called `begin_child_process` and have ended, or of this one at its
            end; None is left out.
    """
    import psutil

    marks = {str(parent) for parent in parents}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):  # it has ended, or belongs to another user
            if process.environ().get(STARTED_BY) in marks:
                process.kill()

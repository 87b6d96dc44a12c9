"""Programs a process with environments starts, like simulators: they get signals as usual and end with it."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
from collections.abc import Iterable, Iterator

from ga3c_tf.host.signals import ENDING

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
        del os.environ[STARTED_BY]
        os.environ.update(before)


def end_offspring(parents: Iterable[int | None]) -> None:
    """Kill the programs that these processes have started and left behind.

    Args:
        parents: ids of processes that have called `begin_child_process` and have ended, or of this one at its
            end; None is left out.
    """
    import psutil  # agent processes do without it

    marks = {str(parent) for parent in parents}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):  # it has ended, or belongs to another user
            if process.environ().get(STARTED_BY) in marks:
                process.kill()

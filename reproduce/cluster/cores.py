"""Cores for one run alone: a cluster counts them, but leaves every process free to run on all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

FOLDER = Path("/tmp") / f"ga3c_tf-cores-{os.getuid()}"
"""A file for each core of this machine: who has its lock has the core, until the kernel takes it back at the end."""
WAIT_SECONDS = 10.0
POLL_SECONDS = 0.5


@contextlib.contextmanager
def pinned(count: int, say: Callable[[str], None]) -> Iterator[None]:
    """Keep this thread, and what it starts, on `count` cores that no other caller on this machine has.

    Where too few are free for `WAIT_SECONDS`, or somebody else has made the folder of the locks, it goes on with all
    cores that this thread had.

    Args:
        count: cores.
        say: told, in one line, where they could not be had.
    """
    before = os.sched_getaffinity(0)
    with contextlib.ExitStack() as locks:
        try:
            _make_folder()
        except OSError as error:
            say(f"{FOLDER}: {error.strerror}; not pinned to any cores")
        else:
            cores = _reserve(count, sorted(before), locks)
            if cores:
                os.sched_setaffinity(0, cores)
            else:
                say(f"fewer than {count} of {len(before)} cores are free of other runs; not pinned to any")
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)


def _make_folder() -> None:
    """Make the folder of the locks, whose name anybody could know: files opened in another's may be links.

    Raises:
        OSError: it is not a folder of this user that nobody else can write to.
    """
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    status = FOLDER.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise PermissionError(errno.EPERM, "it is not a folder that only you can write to", str(FOLDER))


def _reserve(count: int, cores: list[int], locks: contextlib.ExitStack) -> list[int]:
    """Lock `count` of the cores, all or none; return them."""
    until = time.monotonic() + WAIT_SECONDS
    while True:
        with contextlib.ExitStack() as held, (FOLDER / "choosing").open("a") as choosing:
            fcntl.flock(choosing, fcntl.LOCK_EX)  # or two that choose at once could each get a half
            mine: list[int] = []
            for core in cores:
                if len(mine) < count and _locked(core, held):
                    mine.append(core)
            if len(mine) == count:
                locks.enter_context(held.pop_all())
                return mine
        if time.monotonic() >= until:
            return []
        time.sleep(POLL_SECONDS)


def _locked(core: int, held: contextlib.ExitStack) -> bool:
    """Take the lock of a core, if nobody has it."""
    stream = held.enter_context((FOLDER / str(core)).open("a"))
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False

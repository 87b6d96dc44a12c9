"""Reserves cores for one run: a Ray cluster only counts cores, and lets every process run on all of them."""

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
"""Folder with a file for each core of this machine. A process that holds the file's lock has the core; the
kernel releases the lock when the process ends."""
WAIT_SECONDS = 10.0
POLL_SECONDS = 0.5


@contextlib.contextmanager
def pinned(count: int, say: Callable[[str], None]) -> Iterator[None]:
    """Pin this thread, and what it starts, to `count` cores that no other caller on this machine has
    reserved.

    If too few cores become free within `WAIT_SECONDS`, or if the folder of the locks is another user's, the
    thread keeps all cores that it had.

    Args:
        count: number of cores.
        say: called with one line if the cores cannot be reserved.
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
    """Make the folder of the locks.

    Its name is known to everybody, so another user may have made it first, with links in place of the files.

    Raises:
        OSError: the folder does not belong to this user, or others can write to it.
    """
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    status = FOLDER.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise PermissionError(errno.EPERM, "it is not a folder that only you can write to", str(FOLDER))


def _reserve(count: int, cores: list[int], locks: contextlib.ExitStack) -> list[int]:
    """Lock `count` of the cores and return them; if too few are free, lock none and return []."""
    until = time.monotonic() + WAIT_SECONDS
    while True:
        with contextlib.ExitStack() as held, (FOLDER / "choosing").open("a") as choosing:
            fcntl.flock(choosing, fcntl.LOCK_EX)  # else two callers at once could each lock half
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
    """Take the lock of a core if it is free; return whether it was."""
    stream = held.enter_context((FOLDER / str(core)).open("a"))
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False

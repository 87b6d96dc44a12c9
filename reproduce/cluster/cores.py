"""Reserves cores for one run: a Ray cluster only counts cores, and lets every process run on all of them."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator

NAME = "\0ga3c_tf-core-{}"
"""Abstract name of a socket: who has bound it has the core, until the process ends."""
WAIT_SECONDS = 10.0
POLL_SECONDS = 0.5


@contextlib.contextmanager
def pinned(count: int, say: Callable[[str], None]) -> Iterator[None]:
    """Pin this thread, and what it starts, to `count` cores that no other caller on this machine has
    reserved.

    If too few cores become free within `WAIT_SECONDS`, the thread keeps all cores that it had, and `say` is
    called with one line.
    """
    before = os.sched_getaffinity(0)
    until = time.monotonic() + WAIT_SECONDS
    with contextlib.ExitStack() as reserved:
        while not (cores := _reserve(count, sorted(before), reserved)) and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
        if cores:
            os.sched_setaffinity(0, cores)
        else:
            say(f"fewer than {count} of {len(before)} cores are free of other runs; not pinned to any")
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)


def _reserve(count: int, cores: list[int], reserved: contextlib.ExitStack) -> list[int]:
    """Reserve `count` of the cores and return them; if too few are free, reserve none and return []."""
    with contextlib.ExitStack() as attempt:
        if not _bound("choosing", attempt):  # else two callers at once could each reserve half
            return []
        with contextlib.ExitStack() as free:
            chosen: list[int] = []
            for core in cores:
                if len(chosen) < count and _bound(core, free):
                    chosen.append(core)
            if len(chosen) < count:
                return []
            reserved.enter_context(free.pop_all())
            return chosen


def _bound(name: int | str, until_closed: contextlib.ExitStack) -> bool:
    """Bind the socket of a core if it is free; return whether it was."""
    holder = until_closed.enter_context(socket.socket(socket.AF_UNIX))
    try:
        holder.bind(NAME.format(name))
    except OSError:  # in use, or no permission
        return False
    return True

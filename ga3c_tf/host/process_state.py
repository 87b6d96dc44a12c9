"""State of the process that environments may change: its random generators and its working folder."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator

import numpy as np


@contextlib.contextmanager
def global_generators_kept() -> Iterator[None]:
    """Give the generators of `random` and `numpy.random` their old states back after the block."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002 - only the legacy generator is global
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002


class WorkingFolder:
    """Keeps the working folder of environments apart from the program's, whose relative paths stay what they
    were.

    What is done with the environments stands in `with` blocks of one such object: a block begins in the
    folder in which the last one ended, the first one in the program's, and the program's folder comes back at
    the end.
    """

    def __init__(self) -> None:
        self._environments: str | None = None
        self._programs: str | None = None

    def __enter__(self) -> None:
        self._programs = _current()
        if self._environments is not None:
            os.chdir(self._environments)

    def __exit__(self, *_: object) -> None:
        self._environments = _current()
        if self._programs is not None:
            os.chdir(self._programs)


def _current() -> str | None:
    """Return the working folder; None if it has been deleted."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None

"""The working folder of the process, which an environment may change for its own files."""

from __future__ import annotations

import os


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

"""Prints lines of a long run, which must not end because its output cannot be written."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TextIO


class OutputClosed(BrokenPipeError):
    """The reader of the output has gone, which is a request to end."""


def open_closed_output() -> None:
    """Direct output to nowhere where its file descriptor is closed (`>&-`); Python then has no stream for it."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for as long as the process lives


@contextlib.contextmanager
def write_errors_ignored() -> Iterator[None]:
    """Ignore errors of writing within the block: a full disk behind the output, or a terminal that was closed.

    Raises:
        OutputClosed: The reader of the output has gone.
    """
    try:
        yield
    except BrokenPipeError:
        raise OutputClosed from None
    except OSError:
        pass


def say(text: str, stream: TextIO | None = None) -> None:
    """Print `text` and a line break at once, to standard output by default; it is lost where it cannot be written.

    Raises:
        OutputClosed: As `write_errors_ignored`.
    """
    with write_errors_ignored():
        print(text, file=stream or sys.stdout, flush=True)


def discard_unwritten() -> None:
    """Drop the output that could not be written: Python would try again at its exit, and exit with code 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

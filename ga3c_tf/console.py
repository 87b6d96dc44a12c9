"""Output of long runs, which must not end because a line cannot be printed."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import TextIO


class OutputClosed(BrokenPipeError):
    """Raised when the reader of the output has closed it, which is a request to end."""


def open_standard_descriptors() -> None:
    """Open /dev/null in place of standard input, output and error where they are closed (`<&- >&- 2>&-`).

    Otherwise the next files to be opened would take their numbers, and receive what libraries write there.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free, which is this one
            os.set_inheritable(descriptor, True)


def prepare_output() -> None:
    """Prepare standard output and standard error, so that no text that is written to them ends the program.

    Where they are closed (`>&-`), Python has no stream, and they are sent to /dev/null. Characters that they
    cannot encode are written as escape sequences.
    """
    open_standard_descriptors()
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for as long as the process lives
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(OSError):  # of a stream that cannot be flushed
                stream.reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def write_errors_ignored() -> Iterator[None]:
    """Ignore write errors in the block, such as a full disk or a closed terminal.

    Raises:
        OutputClosed: the reader has closed the output.
    """
    try:
        yield
    except BrokenPipeError:
        raise OutputClosed from None
    except OSError:
        pass


def say(text: str, stream: TextIO | None = None) -> None:
    """Print `text` and a line break without buffering, to standard output by default; ignore write errors.

    Raises:
        OutputClosed: the reader has closed the output.
    """
    with write_errors_ignored():
        print(text, file=stream or sys.stdout, flush=True)


def counted(number: float, noun: str) -> str:
    """Return a number with its noun, such as '1 episode', '1,000 episodes' or '1.5 minutes'."""
    text = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{text} {noun}" if number == 1 else f"{text} {noun}s"


def warn(text: str) -> None:
    """Print one line, prefixed with 'ga3c-tf:', to standard error."""
    say(f"ga3c-tf: {text}", sys.stderr)


def discard_unwritten() -> None:
    """Drop output that could not be written; else Python would try again at exit, and exit with code 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

"""Functions that all commands share: signals, and the command line for records."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from ga3c_tf.host.signals import ENDING, exit_by_signal


def command_line() -> list[str]:
    """Return the words of the command that this process runs, to record in the run folder."""
    name = Path(sys.argv[0]).name
    return [*(["python", "-m", "ga3c_tf"] if name == "__main__.py" else [name]), *sys.argv[1:]]


def exit_on_signals() -> None:
    """Exit at a signal that ends programs, so that files and processes are closed."""
    for number in signals_to_answer():
        signal.signal(number, exit_by_signal)


def signals_to_answer() -> list[signal.Signals]:
    """Return the signals that end a program, without SIGHUP if it is ignored, as under `nohup`."""
    return [
        ending for ending in ENDING if ending != signal.SIGHUP or signal.getsignal(ending) != signal.SIG_IGN
    ]

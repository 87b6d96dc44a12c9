"""The command `ga3c-tf` in a process of its own, as a user meets it."""

import contextlib
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import warm

ENVIRONMENT = {**os.environ, "COLUMNS": "120", "SDL_VIDEODRIVER": "dummy"}


def ga3c_tf(*arguments, fresh=False, **options) -> subprocess.CompletedProcess[str]:
    """Runs it to its end.

    Args:
        arguments: the words after `ga3c-tf`.
        fresh: in a new interpreter, where it matters what is imported and when; else as tests/warm.py says.
        options: as for `subprocess.run`.
    """
    options = {"capture_output": True, "text": True, "env": ENVIRONMENT, **options}
    if fresh:
        return subprocess.run([sys.executable, "-m", "ga3c_tf", *map(str, arguments)], **options)
    return warm.run(arguments, **options)


def python(program, *arguments, **options) -> subprocess.CompletedProcess[str]:
    """Runs a program as `python -c` does, but as tests/warm.py says."""
    return warm.run(["-c", program, *arguments], **{"env": ENVIRONMENT, **options})


def output_of(*arguments) -> str:
    """What it printed, where it ended well."""
    done = ga3c_tf(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Child(warm.Popen):
    """A command that the package itself begins, as `[sys.executable, "-m", "ga3c_tf", ...]`."""

    def __init__(self, command, **options):
        assert command[:3] == [sys.executable, "-m", "ga3c_tf"]
        super().__init__(command[3:], **options)


@contextlib.contextmanager
def children_of(module):
    """Within it the commands that this module of the package begins are started as tests/warm.py says."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": Child}))
        yield

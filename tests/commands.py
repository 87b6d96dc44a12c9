"""The command `ga3c-tf` in a process of its own, as a user meets it."""

import os
import subprocess
import sys

ENVIRONMENT = {**os.environ, "COLUMNS": "120", "SDL_VIDEODRIVER": "dummy"}


def ga3c_tf(*arguments, **options) -> subprocess.CompletedProcess[str]:
    """Runs it to its end; `options` go to `subprocess.run`."""
    command = [sys.executable, "-m", "ga3c_tf", *map(str, arguments)]
    return subprocess.run(command, **{"capture_output": True, "text": True, "env": ENVIRONMENT, **options})


def output_of(*arguments) -> str:
    """What it printed, where it ended well."""
    done = ga3c_tf(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout

"""Runs of figures that take seconds, and commands of their own that carry them out."""

import subprocess
import sys
from pathlib import Path

from ga3c_tf.reproduce.runs.specs import run_spec

EXECUTE = """
import json, sys
from pathlib import Path
from ga3c_tf.cli.terminal import exit_on_signals
from ga3c_tf.reproduce.runs.specs import RunSpec
exit_on_signals()
def say(text):
    print(text, flush=True)
{executor}
specs = [RunSpec.from_values(json.loads(text)) for text in sys.argv[2:]]
runs = executor.execute(specs, Path(sys.argv[1]), False)
print(*[run.status_text for run in runs])
"""


def tiny(seed, game="cartpole", **settings):
    """The specification of a run of 300 steps."""
    common = {
        "num_agents": 2,
        "num_predictors": 1,
        "num_trainers": 1,
        "agent_processes": 1,
        "log_seconds": 0.2,
    }
    return run_spec(game, seed, **{**common, "steps": 300, **settings})


def quiet(text):
    """Says nothing."""


def saved_steps(folder: Path) -> int:
    """The agent steps of the newest checkpoint in a run folder."""
    return max((int(path.name) for path in folder.glob("checkpoints/0*")), default=0)


def start(executor: str, runs: Path, specs, **options) -> subprocess.Popen:
    """Begins to carry out runs in an interpreter of its own, which prints what is said and how each run has
    ended.

    Args:
        executor: lines of Python that make `executor`, which tells its news to `say`.
        runs: folder of the run folders.
        specs: specifications of the runs.
        options: as for `subprocess.Popen`.
    """
    program = EXECUTE.format(executor=executor)
    words = [sys.executable, "-c", program, str(runs), *(spec.to_json() for spec in specs)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)

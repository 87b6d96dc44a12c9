"""Who carries out a list of runs: here one after another on this machine."""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from ga3c_tf.files import Locked
from ga3c_tf.reproduce.measures.text import duration
from ga3c_tf.reproduce.runs.execute import execute_run
from ga3c_tf.reproduce.runs.run import Run
from ga3c_tf.reproduce.runs.specs import RunSpec


class Executor(Protocol):
    """Executes runs, one `execute_run` each, which is safe to repeat."""

    def execute(self, specs: Sequence[RunSpec], runs: Path, force: bool) -> list[Run]:
        """Bring every run to its end; one that fails does not end the others.

        Args:
            specs: what to run.
            runs: the folder of the run folders.
            force: repeat runs that are finished.

        Returns:
            The runs, in the order of the specs.
        """


class LocalExecutor:
    """One run after another.

    The runs of one seed follow one another in random order, then those of the next: what changes on the machine with
    time is then not taken for what the runs differ in, and an early end leaves whole seeds. Runs that another command
    is executing come last, so that several commands share the work.

    Args:
        say: called with one line of progress at a time.
    """

    def __init__(self, say: Callable[[str], None]):
        self._say = say

    def execute(self, specs: Sequence[RunSpec], runs: Path, force: bool) -> list[Run]:
        """As `Executor.execute`."""
        done = {spec: not force and Run.of(spec, runs).ended for spec in specs}
        left = sum(spec.seconds for spec in specs if not done[spec])
        self._say(f"{sum(done.values())} of {len(specs)} runs have ended; about {duration(left)} left")
        estimated = 0.0
        start = time.monotonic()
        results: dict[RunSpec, Run] = {}
        waiting = deque(sorted(specs, key=_place))
        busy_in_a_row = 0
        while waiting:
            # 1. Take the next run that no other command is executing, or wait where there is no such run.
            spec = waiting.popleft()
            number = f"[{len(results) + 1}/{len(specs)}]"
            begin = partial(self._say, f"{number} {spec.id}")
            try:
                run = execute_run(spec, runs, force, self._say, busy_in_a_row >= len(waiting), begin)
            except Locked:
                waiting.append(spec)
                busy_in_a_row += 1
                continue
            busy_in_a_row = 0
            results[spec] = run
            if done[spec]:
                continue
            # 2. Tell how it ended and how long the others will take.
            estimated += spec.seconds
            took = time.monotonic() - start
            remaining = max(0.0, left - estimated) * took / estimated
            self._say(f"{number} {run.status_text}; about {duration(remaining)} left")
        return [results[spec] for spec in specs]


def _place(spec: RunSpec) -> tuple[int, str]:
    """Return what orders runs: by seed, then as good as at random, the same whenever it is asked."""
    return spec.seed, hashlib.sha256(spec.id.encode()).hexdigest()

"""Who carries out a list of runs: here one after another on this machine."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

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
    """One run after another, each having the machine to itself.

    The runs of one seed follow one another in random order, then those of the next: what changes on the machine with
    time is then not taken for what the runs differ in, and an early end leaves whole seeds.

    Args:
        say: called with one line of progress at a time.
    """

    def __init__(self, say: Callable[[str], None]):
        self._say = say

    def execute(self, specs: Sequence[RunSpec], runs: Path, force: bool) -> list[Run]:
        """As `Executor.execute`."""
        done = [not force and Run.of(spec, runs).finished for spec in specs]
        left = sum(spec.seconds for spec, finished in zip(specs, done, strict=True) if not finished)
        self._say(f"{len(specs)} runs, {sum(done)} of them finished; about {duration(left)} left")
        estimated = 0.0
        start = time.monotonic()
        results: dict[RunSpec, Run] = {}
        order = sorted(zip(specs, done, strict=True), key=lambda each: _place(each[0]))
        for number, (spec, finished) in enumerate(order, 1):
            if not finished:
                self._say(f"[{number}/{len(specs)}] {spec.id}")
            run = execute_run(spec, runs, force, self._say)
            results[spec] = run
            if finished:
                continue
            estimated += spec.seconds
            took = time.monotonic() - start
            remaining = max(0.0, left - estimated) * took / estimated
            self._say(f"[{number}/{len(specs)}] {run.status_text}; about {duration(remaining)} left")
        return [results[spec] for spec in specs]


def _place(spec: RunSpec) -> tuple[int, str]:
    """Return what orders runs: by seed, then as good as at random, the same whenever it is asked."""
    return spec.seed, hashlib.sha256(spec.id.encode()).hexdigest()


def duration(seconds: float) -> str:
    """Such as '40 s', '12 min', '3.5 h' or '2.1 days'."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"

"""Executors of a list of runs: their interface, and one that makes them one after another on this machine."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from ga3c_tf.files import Locked
from ga3c_tf.host.machine import usable_cores
from ga3c_tf.reproduce.measures.text import duration
from ga3c_tf.reproduce.runs.execute import execute_run
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec


class Executor(Protocol):
    """Executes runs, each by `execute_run`, which is safe to repeat."""

    def execute(self, specs: Sequence[RunSpec], runs: Path, force: bool) -> list[RecordedRun]:
        """Execute all runs in the folder `runs`; a run that fails does not end the others.

        With `force`, runs that have ended are repeated. The runs are returned in the order of `specs`.
        """


class LocalExecutor:
    """Executes one run after another on this machine.

    All runs of one seed are made in random order, then those of the next seed. So a change of the machine's
    speed is not mistaken for an effect of the settings, and an early end leaves complete seeds. A figure may
    put some runs of a seed before the others, by their turns. Runs that another command is executing come
    last, so that several commands share the work. `say` is called with one line of progress at a time.
    """

    def __init__(self, say: Callable[[str], None]):
        self._say = say

    def execute(self, specs: Sequence[RunSpec], runs: Path, force: bool) -> list[RecordedRun]:
        """Execute the runs as described for `Executor.execute`."""
        left = [spec for spec in specs if force or not RecordedRun.of(spec, runs).ended]
        estimated_s = sum(spec.seconds for spec in left)
        ended = f"{len(specs) - len(left)} of {len(specs)} runs have ended"
        self._say(f"{ended}; about {duration(estimated_s)} left")
        self._warn_of_idle_cores(left)
        start = time.monotonic()
        results: dict[RunSpec, RecordedRun] = {}
        for wait in (False, True):  # runs that another command is executing come last
            for spec in sorted(set(specs) - results.keys(), key=order):
                number = f"[{len(results) + 1}/{len(specs)}]"
                begin = partial(self._say, f"{number} {spec.id}")
                with contextlib.suppress(Locked):
                    results[spec] = execute_run(spec, runs, force, self._say, wait, begin)
                    if spec in left:
                        made_s = sum(other.seconds for other in left if other in results)
                        remaining_s = (estimated_s - made_s) * (time.monotonic() - start) / made_s
                        status = results[spec].status_text
                        self._say(f"{number} {status}; about {duration(remaining_s)} left")
        return [results[spec] for spec in specs]

    def _warn_of_idle_cores(self, specs: Sequence[RunSpec]) -> None:
        """Warn if A3C has fewer agents than there are cores, in runs of a given time."""
        agents = [spec.config.num_agents for spec in specs if spec.system == "a3c" and spec.config.minutes]
        if agents and min(agents) < usable_cores():
            self._say(
                f"A3C has {min(agents)} agents and this machine {usable_cores()} cores, so no finding will "
                "say that GA3C is faster; to compare them, "
                f"limit the command to {min(agents)} cores with taskset"
            )


def order(spec: RunSpec) -> tuple[int, int, str]:
    """Return a run's sort key: seed, turn, and a hash of its id, which gives the same random order always."""
    return spec.seed, spec.turn, hashlib.sha256(spec.id.encode()).hexdigest()

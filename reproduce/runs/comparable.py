"""Whether the speeds of runs may be compared: by their machines, calibrations and use of the cores."""

from __future__ import annotations

from collections.abc import Iterable

from ga3c_tf.host.calibration import agree
from ga3c_tf.reproduce.runs.run import RecordedRun

AT_ONE_TIME_S = 60.0
"""Runs that begin within this many seconds are compared even if their calibrations differ.

Calibrations guard against a machine whose speed changes between hours.
"""
LEAST_CPU = 0.5
"""Share of the cores A3C uses at least if alone on the machine: its agents never wait for each other."""


def measured_alike(runs: Iterable[RecordedRun]) -> bool:
    """Return whether the speeds of runs may be compared: on one machine, whose calibrations agree, or begun
    within `AT_ONE_TIME_S`.
    """
    measured = [run for run in runs if run.finished]
    if len({run.machine for run in measured}) > 1:
        return False
    starts = [run.started_s for run in measured]
    agreeing = agree(calibration for run in measured for calibration in run.calibrations)
    return agreeing or max(starts) - min(starts) <= AT_ONE_TIME_S


def seeds_have_one_machine(runs: Iterable[RecordedRun]) -> bool:
    """Return whether the finished runs of each seed were made on one machine, so its speed favors none."""
    machines: dict[int, set[str]] = {}
    for run in runs:
        if run.finished:
            machines.setdefault(run.spec.seed, set()).add(run.machine)
    return all(len(of_seed) == 1 for of_seed in machines.values())


def a3c_has_few_agents(runs: Iterable[RecordedRun]) -> bool:
    """Return whether a finished run of A3C had fewer agents than cores, so it could not use all cores."""
    return any(
        run.spec.config.num_agents < session["cores"]
        for run in runs
        if run.finished and run.spec.system == "a3c"
        for session in run.sessions
    )


def a3c_lacked_processor(runs: Iterable[RecordedRun]) -> bool:
    """Return whether a finished run of A3C is known to have used less than `LEAST_CPU` of the cores."""
    used = [run.result.get("cpu_utilization") for run in runs if run.finished and run.spec.system == "a3c"]
    return any(share is not None and share < LEAST_CPU for share in used)

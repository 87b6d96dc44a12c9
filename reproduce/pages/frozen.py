"""When the rules of each figure were committed, and how many of its runs were made before."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from ga3c_tf.reproduce.runs.run import Run


class Frozen(NamedTuple):
    """The commit since which the rules that judge a figure have not changed."""

    commit: str
    date: str


SPEEDS = Frozen("0703b9d", "2026-11-24T02:33:52+00:00")
PAIRED = Frozen("c3eabd7", "2026-11-23T11:27:26+00:00")
RULES = {
    "scores": Frozen("5fac22b", "2026-11-23T09:26:50+00:00"),
    "pps": SPEEDS,
    "adjustment": SPEEDS,
    "tps": SPEEDS,
    "queues": SPEEDS,
    "speed": SPEEDS,
    "wall-clock": PAIRED,
    "learning-curves": Frozen("8a445d3", "2026-11-23T09:48:51+00:00"),
    "policy-lag": PAIRED,
    "utilization": Frozen("91cc78f", "2026-11-24T07:52:04+00:00"),
    "environments": Frozen("eae32f7", "2026-11-23T21:13:20+00:00"),
    "environments, tuned": Frozen("2d103ab", "2026-11-24T08:00:28+00:00"),
    "sample-efficiency": Frozen("5f6c7c3", "2026-11-24T02:41:22+00:00"),
    "corrections": Frozen("11bb582", "2026-11-24T16:21:48+00:00"),
    "batch-size": Frozen("510cb28", "2026-11-24T22:07:33+00:00"),
    "lag-boundary": Frozen("deea977", "2026-11-24T16:57:21+00:00"),
}
"""Of every figure with findings, by name; a budget of its own follows a comma."""


def row(name: str, budget: str, runs: Iterable[Run]) -> list[str] | None:
    """Return name, commit and day, and how many finished runs began before and after; None for a figure without rules.

    Args:
        name: of the figure.
        budget: of the runs.
        runs: of the figure at that budget, finished or not.
    """
    name = named(name, budget)
    rule = RULES.get(name) or RULES.get(name.split(",")[0])
    if rule is None:
        return None
    times = [datetime.fromisoformat(run.sessions[0]["started"]) for run in runs if run.finished]
    before = sum(time < datetime.fromisoformat(rule.date) for time in times)
    return [name, rule.commit, rule.date[:10], str(before), str(len(times) - before)]


def named(name: str, budget: str) -> str:
    """Return how the pages call a figure at a budget: quick goes without saying."""
    return name if budget == "quick" else f"{name}, {budget}"

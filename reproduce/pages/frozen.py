"""When the rules of each figure were committed, and how many of its runs were made before."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from ga3c_tf.reproduce.measures.verdicts import Claim
from ga3c_tf.reproduce.pages.changes import CHANGES, Changed
from ga3c_tf.reproduce.runs.run import Run


class Frozen(NamedTuple):
    """The commit since which no change of a rule has altered a number or a verdict of a figure."""

    commit: str
    date: str


SPEEDS = Frozen("0703b9d", "2026-11-24T02:33:52+00:00")
ERRORS = Frozen("29c629f", "2026-11-25T01:16:53+00:00")
AUDIT = Frozen("4c087a6", "2026-11-25T14:16:43+00:00")
ON_GPU = Frozen("11a9789", "2026-11-26T05:51:46+00:00")
LEFT_RANDOM = Frozen("61fdb08", "2026-11-26T16:06:15+00:00")
REVIEW = Frozen("8dd236f", "2026-11-26T16:12:06+00:00")
RULES = {
    "scores": Frozen("5fac22b", "2026-11-23T09:26:50+00:00"),
    "pps": REVIEW,
    "adjustment": SPEEDS,
    "tps": SPEEDS,
    "queues": REVIEW,
    "speed": SPEEDS,
    "wall-clock": AUDIT,
    "learning-curves": Frozen("4495cf9", "2026-11-26T17:49:37+00:00"),
    "policy-lag": Frozen("74bb5ba", "2026-11-25T03:03:31+00:00"),
    "utilization": ERRORS,
    "environments": AUDIT,
    "environments, tuned": LEFT_RANDOM,
    "sample-efficiency": Frozen("5f6c7c3", "2026-11-24T02:41:22+00:00"),
    "corrections": AUDIT,
    "batch-size": ERRORS,
    "pps, gpu": REVIEW,
    "queues, gpu": ON_GPU,
    "utilization, gpu": REVIEW,
    "lag-boundary": Frozen("2f0657f", "2026-11-25T04:41:35+00:00"),
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
    rule = _rule(name)
    if rule is None:
        return None
    finished = [run for run in runs if run.finished]
    before = sum(_began_before(rule, run) for run in finished)
    return [name, rule.commit, rule.date[:10], str(before), str(len(finished) - before)]


def changes(name: str, claims: Iterable[Claim], runs: Iterable[Run]) -> list[tuple[Claim, Changed]]:
    """Return the claims whose verdict a change of rules has altered, with the change: none if all runs began after it.

    Args:
        name: of the figure, as `named` gives it.
        claims: of the figure.
        runs: of the figure, finished or not.
    """
    rule = _rule(name)
    if rule is None or not any(_began_before(rule, run) for run in runs if run.finished):
        return []
    return [(claim, each) for claim in claims for each in CHANGES if each.is_about(name, claim.text)]


def _rule(name: str) -> Frozen | None:
    """Return when the rules of a figure were committed, named as `named` does."""
    return RULES.get(name) or RULES.get(name.split(",")[0])


def _began_before(rule: Frozen, run: Run) -> bool:
    return datetime.fromisoformat(run.sessions[0]["started"]) < datetime.fromisoformat(rule.date)


def named(name: str, budget: str) -> str:
    """Return how the pages call a figure at a budget: quick goes without saying."""
    return name if budget == "quick" else f"{name}, {budget}"

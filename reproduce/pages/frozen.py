"""When the rules of each figure were committed, and how many of its runs began before."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from ga3c_tf.reproduce.measures.verdicts import Claim
from ga3c_tf.reproduce.pages.changes import CHANGES, VerdictChange
from ga3c_tf.reproduce.runs.run import RecordedRun


class Frozen(NamedTuple):
    """The commit since which no change of a rule has altered a number or a verdict of a figure."""

    commit: str
    date: str


ERRORS = Frozen("29c629f", "2026-11-25T01:16:53+00:00")
ON_GPU = Frozen("11a9789", "2026-11-26T05:51:46+00:00")
LEFT_RANDOM = Frozen("61fdb08", "2026-11-26T16:06:15+00:00")
REVIEW = Frozen("8dd236f", "2026-11-26T16:12:06+00:00")
SECOND_REVIEW = Frozen("a553561", "2026-11-27T10:23:03+00:00")
PAIRS = Frozen("7677e2c", "2026-11-28T06:58:41+00:00")
RULES = {
    "scores": Frozen("5fac22b", "2026-11-23T09:26:50+00:00"),
    "scores, tuned": SECOND_REVIEW,
    "pps": REVIEW,
    "adjustment": Frozen("ffc5c0e", "2026-11-27T13:30:40+00:00"),
    "tps": SECOND_REVIEW,
    "queues": REVIEW,
    "speed": PAIRS,
    "wall-clock": PAIRS,
    "learning-curves": Frozen("4495cf9", "2026-11-26T17:49:37+00:00"),
    "policy-lag": Frozen("85f12af", "2026-11-27T19:50:40+00:00"),
    "utilization": ERRORS,
    "environments": Frozen("2b28b90", "2026-11-27T17:55:34+00:00"),
    "environments, tuned": LEFT_RANDOM,
    "sample-efficiency": SECOND_REVIEW,
    "corrections": Frozen("10be76b", "2026-11-27T13:50:46+00:00"),
    "batch-size": ERRORS,
    "pps, gpu": REVIEW,
    "queues, gpu": ON_GPU,
    "utilization, gpu": Frozen("8073a10", "2026-11-27T13:05:34+00:00"),
    "lag-boundary": Frozen("f28001c", "2026-11-27T19:29:34+00:00"),
    "papers-algorithm": Frozen("cb9933c", "2026-11-28T09:10:51+00:00"),
}
"""The commit for each figure with findings, by name. A name with a comma is for one budget of the figure."""


def row(name: str, budget: str, runs: Iterable[RecordedRun]) -> list[str] | None:
    """Return a table row: name, commit, day, and the number of finished runs that began before and after the
    commit.

    Args:
        name: name of the figure.
        budget: budget of the runs.
        runs: runs of the figure at that budget, finished or not.

    Returns:
        The cells; None for a figure without rules.
    """
    name = named(name, budget)
    rule = _rule(name)
    if rule is None:
        return None
    finished = [run for run in runs if run.finished]
    before = sum(_began_before(rule, run) for run in finished)
    return [name, rule.commit, rule.date[:10], str(before), str(len(finished) - before)]


def changes(
    name: str, claims: Iterable[Claim], runs: Iterable[RecordedRun]
) -> list[tuple[Claim, VerdictChange]]:
    """Return the claims whose verdict a change of rules has altered, each with the change.

    There are none if all finished runs began after the figure's rules were committed.

    Args:
        name: name of the figure, from `named`.
        claims: claims of the figure.
        runs: runs of the figure, finished or not.
    """
    rule = _rule(name)
    if rule is None or not any(_began_before(rule, run) for run in runs if run.finished):
        return []
    return [(claim, change) for claim in claims for change in CHANGES if change.is_about(name, claim)]


def _rule(name: str) -> Frozen | None:
    """Return the commit of a figure's rules, by its name from `named`; None for a figure without rules."""
    return RULES.get(name) or RULES.get(name.split(",")[0])


def _began_before(rule: Frozen, run: RecordedRun) -> bool:
    return datetime.fromisoformat(run.sessions[0]["started"]) < datetime.fromisoformat(rule.date)


def named(name: str, budget: str) -> str:
    """Return the name of a figure at a budget on the pages; the budget `quick` is not named."""
    return name if budget == "quick" else f"{name}, {budget}"

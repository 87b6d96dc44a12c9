"""The history of a results folder's rules, which is data: history.json.

It has, by figure, the commit since which no change of a rule has altered a verdict (`rules`), the claims that
a change of a rule has given another verdict (`changes`), and those whose test a review has rejected
(`reviews`). A figure at another budget than `quick` is named with it, such as 'pps, gpu'.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.measures.verdicts import INCONCLUSIVE, OBSERVED, Claim
from ga3c_tf.reproduce.runs.run import RecordedRun

FILE = "history.json"


class RuleCommit(NamedTuple):
    """The commit since which no change of a rule has altered a number or a verdict of a figure."""

    commit: str
    date: str

    def precedes(self, run: RecordedRun) -> bool:
        """Return whether a run began after the commit."""
        return datetime.fromisoformat(run.sessions[0]["started"]) >= datetime.fromisoformat(self.date)


class Change(NamedTuple):
    """A claim that has another verdict since a change of its rule."""

    figure: str  # name of the figure, from `named`
    game: str  # game of the claim; empty if it is about several games
    key: str  # key of the claim
    day: str  # day of the change
    earlier: str  # verdict by the earlier rule
    change: str  # what changed in the rule

    def is_about(self, figure: str, claim: Claim) -> bool:
        """Return whether the change is about this claim of this figure."""
        return (figure, claim.key) == (self.figure, self.key) and claim.game in ("", self.game)

    @property
    def was_undecided(self) -> bool:
        """Whether the earlier verdict decided nothing."""
        return self.earlier.startswith((INCONCLUSIVE, OBSERVED))


@dataclass(frozen=True)
class History:
    """The history of a results folder; empty for a folder without one.

    Attributes:
        rules: commit of the rules, by figure.
        changes: claims with another verdict since a change.
        reviews: why a review has rejected the test of a claim, by figure and key of the claim.
    """

    rules: Mapping[str, RuleCommit] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    reviews: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path) -> History:
        """Return the history of a results folder.

        Raises:
            UserError: history.json is damaged.
        """
        file = folder / FILE
        try:
            values = json.loads(file.read_text(encoding="utf-8"))
            rules = {name: RuleCommit(**rule) for name, rule in values["rules"].items()}
            return cls(rules, tuple(Change(**change) for change in values["changes"]), values["reviews"])
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise UserError(f"{file} is damaged: {' '.join(str(error).split())}") from None

    def rule(self, name: str) -> RuleCommit | None:
        """Return the commit of a figure's rules, by its name from `named`; None for a figure without any."""
        return self.rules.get(name) or self.rules.get(name.split(",")[0])

    def row(self, name: str, runs: Iterable[RecordedRun]) -> list[str] | None:
        """Return name, commit, day, and the number of finished runs that began before and after the commit.

        Args:
            name: name of the figure, from `named`.
            runs: runs of the figure, finished or not.
        """
        rule = self.rule(name)
        if rule is None:
            return None
        after = [rule.precedes(run) for run in runs if run.finished]
        return [name, rule.commit, rule.date[:10], str(after.count(False)), str(after.count(True))]

    def changes_of(self, name: str, claims: Iterable[Claim]) -> list[tuple[Claim, Change]]:
        """Return the claims of a figure whose verdict a change has altered, each with the change."""
        return [
            (claim, change) for claim in claims for change in self.changes if change.is_about(name, claim)
        ]


def named(name: str, budget: str) -> str:
    """Return the name of a figure at a budget; the budget `quick` is not named."""
    return name if budget == "quick" else f"{name}, {budget}"

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
from ga3c_tf.reproduce.measures.verdicts import Claim
from ga3c_tf.reproduce.runs.run import RecordedRun

FILE = "history.json"


class Change(NamedTuple):
    """A claim that has another verdict since a change of its rule."""

    figure: str  # name of the figure, from `named`
    game: str  # game of the claim; empty if it is about several games
    key: str  # key of the claim
    day: str  # day of the change
    earlier: str  # verdict by the earlier rule
    change: str  # what changed in the rule


@dataclass(frozen=True)
class History:
    """The history of a results folder; empty for a folder without one.

    Attributes:
        rules: commit and date of the rules, by figure.
        changes: claims with another verdict since a change.
        reviews: why a review has rejected the test of a claim, by figure and key of the claim.
    """

    rules: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
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
            changes = tuple(Change(**change) for change in values["changes"])
            return cls(values["rules"], changes, values["reviews"])
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise UserError(f"{file} is damaged: {' '.join(str(error).split())}") from None

    def committed(self, figure: str, budget: str, finished: Iterable[RecordedRun]) -> list[str]:
        """Return the commit of a figure's rules, its day, and how many finished runs began before and after
        it; [] for a figure without any.
        """
        rule = self.rules.get(named(figure, budget), self.rules.get(figure))
        if rule is None:
            return []
        since = datetime.fromisoformat(rule["date"]).timestamp()
        after = [run.started_s >= since for run in finished]
        return [rule["commit"], rule["date"][:10], str(after.count(False)), str(after.count(True))]

    def changes_of(self, figure: str, budget: str, claim: Claim) -> list[Change]:
        """Return the changes that have altered the verdict of a claim."""
        about = (named(figure, budget), claim.key)
        return [
            change
            for change in self.changes
            if about == (change.figure, change.key) and claim.game in ("", change.game)
        ]


def named(figure: str, budget: str) -> str:
    """Return the name of a figure at a budget; the budget `quick` is not named."""
    return figure if budget == "quick" else f"{figure}, {budget}"

"""What is known about a figure at one budget: its runs, our records of them, and the paper's."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ga3c_tf.reproduce.measures.records import MEASURED, NOT_RUN, Record
from ga3c_tf.reproduce.runs.run import RecordedRun


@dataclass(frozen=True)
class Results:
    """Everything that is known about one figure at one budget."""

    budget: str  # one of `BUDGETS`
    command: str  # command that makes the figure
    paper: list[Record]  # records of the paper, from all of its tables
    runs: list[RecordedRun]  # all runs of the figure, finished or not, in the order of their specifications
    records: list[Record]  # our own records of these runs
    beside: Sequence[Record] = ()  # our own records of the figure that is shown beside this one, if any
    # why a review has rejected the test of a claim, by key of the claim
    reviews: Mapping[str, str] = field(default_factory=dict)

    @functools.cached_property
    def _statuses(self) -> dict[str, str]:
        """For each run id, the first status other than 'measured', or 'measured' if no record has another."""
        statuses: dict[str, str] = {}
        for record in self.records:
            if statuses.get(str(record.run_id), MEASURED) == MEASURED:
                statuses[str(record.run_id)] = record.status
        return statuses

    def status(self, run: RecordedRun) -> str:
        """Return 'measured', or the recorded reason why a value is missing; 'not run' without a record."""
        return self._statuses.get(run.spec.id, NOT_RUN)

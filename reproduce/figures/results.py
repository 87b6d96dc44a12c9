"""What is known about a figure at one budget: its runs, our records of them, and the paper's."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
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
    def values(self) -> dict[str, dict[str, float]]:
        """The measured values of each run, by its id and by metric."""
        values: dict[str, dict[str, float]] = {run.spec.id: {} for run in self.runs}
        for record in self.records:
            if record.value is not None:
                values[str(record.run_id)][record.metric] = record.value
        return values

    @functools.cached_property
    def _statuses(self) -> dict[str, str]:
        """For each run id, the first status other than 'measured', or 'measured' if no record has another."""
        statuses: dict[str, str] = {}
        for record in self.records:
            if statuses.get(str(record.run_id), MEASURED) == MEASURED:
                statuses[str(record.run_id)] = record.status
        return statuses

    def value(self, run: RecordedRun, metric: str) -> float | None:
        """Return the value of a metric of this run, or None if it has none."""
        return self.values[run.spec.id].get(metric)

    def score(self, run: RecordedRun, metric: str) -> float | None:
        """Return the value of a score in points, which is that of the random policy for a diverged run."""
        if not run.diverged:
            return self.value(run, metric)
        return None if math.isnan(run.random_score) else run.random_score

    def status(self, run: RecordedRun) -> str:
        """Return 'measured', or the recorded reason why a value is missing; 'not run' without a record."""
        return self._statuses.get(run.spec.id, NOT_RUN)

    def has_begun(self, runs: Iterable[RecordedRun]) -> bool:
        """Return whether any of these runs is finished or known to have failed."""
        return any(run.finished or self.status(run) != NOT_RUN for run in runs)

    @property
    def begun(self) -> bool:
        """Whether any run is finished or known to have failed."""
        return self.has_begun(self.runs)

    @property
    def judges_gpu(self) -> bool:
        """Whether claims needing a GPU are judged: always, but at `quick` only if a finished run used one."""
        return self.budget != "quick" or any(run.on_gpu for run in self.runs if run.finished)

    def unfinished(self, runs: Iterable[RecordedRun]) -> str:
        """Return the seed and status of each of these runs not finished, as the text of one table cell."""
        return "; ".join(f"seed {run.spec.seed}: {self.status(run)}" for run in runs if not run.finished)

    def papers(self, table: str, **cells: str) -> float | None:
        """Return the first value in a table of the paper with these cells of its record, or None."""
        for record in self.paper:
            if record.table == table and all(getattr(record, name) == text for name, text in cells.items()):
                return record.value
        return None

"""What is known about a figure at one budget: its runs, our records of them, and the paper's."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ga3c_tf.reproduce.measures.records import MEASURED, NOT_RUN, Record
from ga3c_tf.reproduce.runs.run import RecordedRun


@dataclass(frozen=True)
class Results:
    """Everything that is known about one figure at one budget.

    Attributes:
        budget: one of `BUDGETS`.
        command: command that makes the figure.
        paper: records of the paper, from all of its tables.
        runs: all runs of the figure, finished or not, in the order of their specifications.
        records: our own records of these runs.
        beside: our own records of the figure that is shown beside this one, if any.
        reviews: why a review has rejected the test of a claim, by key of the claim.
    """

    budget: str
    command: str
    paper: list[Record]
    runs: list[RecordedRun]
    records: list[Record]
    beside: Sequence[Record] = ()
    reviews: Mapping[str, str] = field(default_factory=dict)

    @functools.cached_property
    def _by_run(self) -> dict[tuple[str, str], Record]:
        return {(str(record.run_id), record.metric): record for record in self.records}

    @functools.cached_property
    def _statuses(self) -> dict[str, str]:
        """For each run id, the first status other than 'measured', or 'measured' if no record has another."""
        statuses: dict[str, str] = {}
        for record in self.records:
            if statuses.get(str(record.run_id), MEASURED) == MEASURED:
                statuses[str(record.run_id)] = record.status
        return statuses

    def of_game(self, game: str) -> Results:
        """Return the results of one game only."""
        runs = [run for run in self.runs if run.spec.game == game]
        return dataclasses.replace(
            self, runs=runs, records=[record for record in self.records if record.game == game]
        )

    def value(self, run: RecordedRun, metric: str) -> float | None:
        """Return the value of a metric of this run, or None if it has none."""
        record = self._by_run.get((run.spec.id, metric))
        return record.value if record else None

    def status(self, run: RecordedRun) -> str:
        """Return 'measured', or the recorded reason why a value is missing; 'not run' without a record."""
        return self._statuses.get(run.spec.id, NOT_RUN)

    @property
    def begun(self) -> bool:
        """Whether any run is finished or known to have failed."""
        return any(run.finished or self.status(run) != NOT_RUN for run in self.runs)

    @property
    def ended(self) -> bool:
        """Whether all runs are finished or have diverged. Before that, a verdict could still change."""
        return all(run.ended for run in self.runs)

    @property
    def judges_gpu(self) -> bool:
        """Whether claims needing a GPU are judged: always, but at `quick` only if a finished run used one."""
        return self.budget != "quick" or any(run.on_gpu for run in self.runs if run.finished)

    def values(self, metric: str, runs: Iterable[RecordedRun]) -> list[float]:
        """Return the values of a metric of these runs, leaving out runs without one."""
        return [value for run in runs if (value := self.value(run, metric)) is not None]

    def score(self, run: RecordedRun, metric: str, random: float | None = None) -> float | None:
        """Return the score of this run, or None if it has none. A run that diverged scores as the random
        policy.

        Args:
            run: run whose score is returned.
            metric: name of a score in points.
            random: score of the random policy; None for `RecordedRun.random_score`.
        """
        if not run.diverged:
            return self.value(run, metric)
        counted = run.random_score if random is None else random
        return None if math.isnan(counted) else counted

    def scores(self, metric: str, runs: Iterable[RecordedRun], random: float | None = None) -> list[float]:
        """Return the scores of these runs as `score` gives them, leaving out runs without one."""
        return [score for run in runs if (score := self.score(run, metric, random)) is not None]

    def unfinished(self, runs: Iterable[RecordedRun]) -> str:
        """Return the seed and status of each of these runs not finished, as the text of one table cell."""
        return "; ".join(f"seed {run.spec.seed}: {self.status(run)}" for run in runs if not run.finished)

    @property
    def failed(self) -> list[tuple[str, str]]:
        """Id and status of each run that stopped without being finished."""
        return [(run.spec.id, self.status(run)) for run in self.runs if not run.finished and run.result]

    def papers(self, table: str, **cells: str) -> Record | None:
        """Return the first record in a table of the paper with these cells, or None.

        Args:
            table: name of the table.
            cells: values of the record by column.
        """
        for record in self.paper:
            if record.table == table and all(getattr(record, name) == text for name, text in cells.items()):
                return record
        return None

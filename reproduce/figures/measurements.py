"""The results of a figure as a table: a row for each run, with game, seed, system, dimensions and values."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ga3c_tf.reproduce.measures import verdicts
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS, Effect, paired, paired_ratio
from ga3c_tf.reproduce.measures.records import MEASURED, NOT_RUN, Record
from ga3c_tf.reproduce.measures.verdicts import Guard
from ga3c_tf.reproduce.runs import comparable
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import SYSTEMS, RunSpec

Dimensions = Callable[[RunSpec], Mapping[str, Any]]
SEED = ("seed",)


@dataclass(frozen=True)
class Results:
    """Everything that is known about one figure at one budget."""

    budget: str  # one of `BUDGETS`
    command: str  # command that makes the figure
    paper: list[Record]  # records of the paper, from all of its tables
    runs: list[RecordedRun]  # all runs of the figure, finished or not, in the order of their specifications
    records: list[Record]  # our own records of these runs
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


class Measure(NamedTuple):
    """One number of a run. Without one, the value is not-a-number, and `why_not` says why."""

    metric: str
    value: float
    unit: str
    protocol: str
    why_not: str = "nothing to measure"
    method: str | None = None  # None: the method of the run
    agent_steps: int | None = None  # at which the number was taken; None: at the end of the run


def record_of(figure: str, run: RecordedRun, measure: Measure) -> Record:
    """Return the record of a number for the figure of this name."""
    spec = run.spec
    is_measured = not math.isnan(measure.value)
    record = Record(
        figure,
        spec.game,
        measure.method or spec.method,
        measure.metric,
        measure.value if is_measured else None,
        measure.unit,
        measure.protocol,
        source="this package",
        status=MEASURED if is_measured else " ".join(measure.why_not.split()),
        seed=spec.seed,
        run_id=spec.id,
    )
    if not run.result.get("sessions"):
        return record
    return replace(
        record,
        commit=run.commit,
        dirty=run.dirty,
        hours=round(run.hours, 4),
        agent_steps=run.agent_steps if measure.agent_steps is None else measure.agent_steps,
        hardware=run.hardware,
    )


class Row(NamedTuple):
    """A run: what tells it apart from others, by dimension, and what was measured, by metric."""

    run: RecordedRun
    facts: Mapping[str, Any]
    values: Mapping[str, float]
    status: str  # 'measured', or the recorded reason why a value is missing; 'not run' without a record

    @property
    def begun(self) -> bool:
        """Whether the run is finished or known to have failed."""
        return self.run.finished or self.status != NOT_RUN

    def key(self, dimensions: Sequence[str]) -> Any:
        """Return the values of dimensions: a tuple, or the value of a single one."""
        key = tuple(self.facts[name] for name in dimensions)
        return key if len(key) > 1 else key[0]


class Pairs(NamedTuple):
    """Values of two groups, by the key of the pair."""

    # first, second: values of both groups, with the same keys
    first: pd.Series
    second: pd.Series
    # whether the machine is known to have changed its speed in so many pairs that too few are left to
    # decide. The values are then those of all pairs
    changed: bool

    @property
    def ratio(self) -> pd.Series:
        """The first values divided by the second."""
        return self.first / self.second

    def difference(self, **names: Any) -> Effect:
        """Return the mean of the first values minus the second; see `estimates.paired`."""
        return paired(self.first, self.second, **names)

    def factor(self, limit: float = 1.0, **names: Any) -> Effect:
        """Return the mean ratio of the first values to the second; see `estimates.paired_ratio`."""
        return paired_ratio(self.first, self.second, limit, **names)


@dataclass(frozen=True)
class Measurements:
    """Runs of a figure and their measured values."""

    results: Results  # the results of the figure, also those of other games
    # the runs, in the order of their plan. Their dimensions are game, seed, system, added, and those of
    # the figure
    rows: Sequence[Row]
    every: Sequence[Row] = ()  # all runs of the figure, of which `rows` may be a part

    @classmethod
    def of(cls, results: Results, dimensions: Dimensions) -> Measurements:
        """Return the table of a figure's results. All scores of a run that diverged are the random policy's.

        Args:
            results: the results.
            dimensions: returns the values of the dimensions of a run, by name.
        """
        trained = [record for record in results.records if record.method != "random"]
        scores = {record.metric for record in trained if record.unit == "points"}
        values: dict[str, dict[str, float]] = {run.spec.id: {} for run in results.runs}
        for record in results.records:
            if record.value is not None:
                values[str(record.run_id)][record.metric] = record.value
        rows = []
        for run in results.runs:
            spec = run.spec
            usual = {"game": spec.game, "seed": spec.seed, "system": SYSTEMS[spec.system]}
            facts = {**usual, "added": spec.is_added, **dimensions(spec)}
            of_run = values[spec.id]
            if run.diverged and not math.isnan(run.random_score):
                of_run |= dict.fromkeys(scores, run.random_score)
            rows.append(Row(run, facts, of_run, results.status(run)))
        return cls(results, rows, rows)

    @property
    def budget(self) -> str:
        """The budget of the runs, one of `BUDGETS`."""
        return self.results.budget

    @property
    def judges_gpu(self) -> bool:
        """Whether claims needing a GPU are judged: always, but at `quick` only if a finished run used one."""
        return self.budget != "quick" or any(row.run.on_gpu for row in self.every if row.run.finished)

    def papers(self, table: str, **cells: str) -> float | None:
        """Return the first value in a table of the paper for the game with these cells of its record, or
        None.
        """
        for record in self.results.paper:
            texts = {"game": self.game, **cells}
            if record.table == table and all(getattr(record, name) == text for name, text in texts.items()):
                return record.value
        return None

    @property
    def runs(self) -> list[RecordedRun]:
        """The runs, in the order of their plan."""
        return [row.run for row in self.rows]

    @property
    def finished(self) -> list[RecordedRun]:
        """The finished runs."""
        return [run for run in self.runs if run.finished]

    @property
    def ended(self) -> list[RecordedRun]:
        """The runs that are finished or diverged."""
        return [run for run in self.runs if run.ended]

    @property
    def begun(self) -> bool:
        """Whether any run is finished or known to have failed."""
        return any(row.begun for row in self.rows)

    @property
    def unfinished(self) -> str:
        """The text of `unfinished`."""
        return unfinished(self.rows)

    @property
    def of_game(self) -> Measurements:
        """All planned runs of the figure in the game of the first run."""
        return replace(self, rows=self.every).select(game=self.game, added=False)

    @property
    def game(self) -> str:
        """The game of the first run."""
        return self.rows[0].facts["game"]

    @property
    def has_added(self) -> bool:
        """Whether it has runs of added seeds."""
        return any(row.facts["added"] for row in self.rows)

    def names(self, dimension: str) -> list:
        """Return the values of a dimension, in the order of the plan."""
        return list(dict.fromkeys(row.facts[dimension] for row in self.rows))

    def select(self, **where: Any) -> Measurements:
        """Return the part with these values of dimensions: one value, or a tuple of several."""
        rows = self.rows
        for name, value in where.items():
            values = value if isinstance(value, tuple) else (value,)
            rows = [row for row in rows if row.facts[name] in values]
        return replace(self, rows=rows)

    def parts(self, *dimensions: str) -> Iterator[tuple[Any, Measurements]]:
        """Return the part of each combination of dimensions, in the order of the plan."""
        for key, rows in grouped(self.rows, lambda row: row.key(dimensions)).items():
            yield key, replace(self, rows=rows)

    def numbers(self, metric: str) -> list[float]:
        """Return the values of a metric, in the order of the plan."""
        return [row.values[metric] for row in self.rows if metric in row.values]

    def lists(self, metric: str, *dimensions: str) -> dict[Any, list[float]]:
        """Return the values of a metric by dimensions."""
        return {key: part.numbers(metric) for key, part in self.parts(*dimensions)}

    def series(self, metric: str, by: Sequence[str] = SEED, least: int = 1) -> pd.Series:
        """Return the mean of a metric by dimensions, of the groups with at least so many values."""
        lists = self.lists(metric, *by)
        means = {key: np.mean(values) for key, values in lists.items() if len(values) >= least}
        return pd.Series(means, dtype=float)

    def pairs(
        self,
        metric: str | Callable[[Measurements], pd.Series],
        first: Mapping,
        second: Mapping,
        by: Sequence[str] = SEED,
        least: tuple[int, int] = (1, 1),
    ) -> Pairs:
        """Return the values of two groups that depend on the speed of the machine.

        Pairs of whose runs the machine or its speed is known to differ are left out, unless too few are left.

        Args:
            metric: name of the metric, or a function that returns its values by key.
            first, second: dimensions of both groups.
            by: dimensions that make the key.
            least: number of values that the mean of a pair needs in each group.
        """
        groups = [self.select(**first), self.select(**second)]
        x, y = (
            metric(group) if callable(metric) else group.series(metric, by, count)
            for group, count in zip(groups, least, strict=True)
        )
        both = pd.concat([x, y], axis=1, join="inner", keys=["first", "second"])
        rows = grouped([row for group in groups for row in group.rows], lambda row: row.key(by))
        steady = [key for key in both.index if comparable.measured_alike(row.run for row in rows[key])]
        few = len(steady) < LEAST_SEEDS
        chosen = both if few else both.loc[steady]
        return Pairs(chosen["first"], chosen["second"], few and len(both) >= LEAST_SEEDS)

    @property
    def missing(self) -> Guard:
        """The guard against a run that has not ended or is not recorded, so that a verdict could change."""
        missing = any(row.status == NOT_RUN or not row.run.ended for row in self.rows)
        return Guard(verdicts.RUNS_MISSING, missing)

    @property
    def several_machines(self) -> Guard:
        """The guard against a seed with runs on several machines."""
        return Guard(verdicts.SEVERAL_MACHINES, not comparable.seeds_have_one_machine(self.runs))

    def timed(self, *pairs: Pairs) -> list[Guard]:
        """Return the reasons against comparing these pairs, whose values depend on the machine's speed."""
        return [self.missing, self.several_machines, speed_changed(*pairs)]

    @property
    def unfair_to_a3c(self) -> list[Guard]:
        """Whether A3C could not use all cores, so that nothing may be in favor of GA3C."""
        return [
            Guard(verdicts.FEW_AGENTS, comparable.a3c_has_few_agents(self.runs), (verdicts.HOLDS,)),
            Guard(verdicts.BUSY_MACHINE, comparable.a3c_lacked_processor(self.runs), (verdicts.HOLDS,)),
        ]


def unfinished(rows: Iterable[Row]) -> str:
    """Return the seed and status of each run that is not finished, as the text of one cell."""
    return "; ".join(f"seed {row.facts['seed']}: {row.status}" for row in rows if not row.run.finished)


def speed_changed(*pairs: Pairs) -> Guard:
    """Whether the machine has changed its speed in too many of these pairs, so that they decide nothing."""
    kinds = (*verdicts.DECIDED, verdicts.FEW_SEEDS)  # what is not significant anyway says so
    return Guard(verdicts.SPEED_CHANGED, any(pair.changed for pair in pairs), kinds)


def grouped(items: Iterable, key: Callable[[Any], Any]) -> dict[Any, list]:
    """Group items, such as runs, by the value of `key`, in the order in which the values first appear."""
    groups: dict[Any, list] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups

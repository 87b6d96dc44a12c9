"""The table of a figure: a row for each run, with its game, seed, system, dimensions and measured values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.measures import verdicts
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS
from ga3c_tf.reproduce.measures.verdicts import Guard
from ga3c_tf.reproduce.runs import run as recorded
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import SYSTEMS, RunSpec

Dimensions = Callable[[RunSpec], Mapping[str, Any]]
SEED = ("seed",)
METHODS = (*SYSTEMS.values(), "random")
"""Methods of records that are not by a method of the user's own."""


class Measure(NamedTuple):
    """One number of a run. Without one, the value is not-a-number, and `why_not` says why."""

    metric: str
    value: float
    unit: str
    protocol: str
    why_not: str = "nothing to measure"
    method: str | None = None  # None: the method of the run
    agent_steps: int | None = None  # at which the number was taken; None: at the end of the run


class Row(NamedTuple):
    """A run: what tells it apart from others, by dimension, and what was measured, by metric."""

    run: RecordedRun
    facts: Mapping[str, Any]
    values: Mapping[str, float]

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


@dataclass(frozen=True)
class Measurements:
    """Runs of a figure and their measured values."""

    results: Results  # the results of the figure, also those of other games
    # the runs, in the order of their plan. Their dimensions are game, seed, system, added, and those of
    # the figure
    rows: Sequence[Row]

    @classmethod
    def of(cls, results: Results, dimensions: Dimensions, scores: Sequence[str] = ()) -> Measurements:
        """Return the table of a figure's results.

        Args:
            results: the results.
            dimensions: returns the values of the dimensions of a run, by name.
            scores: metrics in which a run that diverged counts as the random policy.
        """
        rows = []
        for run in results.runs:
            spec = run.spec
            usual = {"game": spec.game, "seed": spec.seed, "system": SYSTEMS[spec.system]}
            facts = {**usual, "added": spec.is_added, **dimensions(spec)}
            random = {metric: results.score(run, metric) for metric in scores if run.diverged}
            values = {**results.values[spec.id], **random}
            rows.append(Row(run, facts, {name: value for name, value in values.items() if value is not None}))
        return cls(results, rows)

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
    def of_game(self) -> list[RecordedRun]:
        """All planned runs of the figure in the game of the first run."""
        return [run for run in self.results.runs if run.spec.game == self.game and not run.spec.is_added]

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
        return Measurements(self.results, rows)

    def parts(self, *dimensions: str) -> Iterator[tuple[Any, Measurements]]:
        """Return the part of each combination of dimensions, in the order of the plan."""
        for key, rows in grouped(self.rows, lambda row: row.key(dimensions)).items():
            yield key, Measurements(self.results, rows)

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

    def beside(self, metric: str) -> list[float]:
        """Return the values of a metric in the game of the first run, of the figure that is shown beside."""
        return [
            record.value
            for record in self.results.beside
            if (record.game, record.metric) == (self.game, metric)
            and record.method in METHODS
            and record.value is not None
        ]

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
        steady = [key for key in both.index if measured_alike(row.run for row in rows[key])]
        few = len(steady) < LEAST_SEEDS
        chosen = both if few else both.loc[steady]
        return Pairs(chosen["first"], chosen["second"], few and len(both) >= LEAST_SEEDS)

    @property
    def missing(self) -> Guard:
        """Whether a run has not ended, so that a verdict could still change."""
        return Guard(verdicts.RUNS_MISSING, len(self.ended) < len(self.rows))

    @property
    def several_machines(self) -> Guard:
        """Whether a seed has runs on several machines."""
        return Guard(verdicts.SEVERAL_MACHINES, not recorded.seeds_have_one_machine(self.runs))

    def timed(self, *pairs: Pairs) -> list[Guard]:
        """Return the reasons against comparing these pairs, whose values depend on the machine's speed."""
        return [self.missing, self.several_machines, speed_changed(*pairs)]

    @property
    def unfair_to_a3c(self) -> list[Guard]:
        """Whether A3C could not use all cores, so that nothing may be in favor of GA3C."""
        return [
            Guard(verdicts.FEW_AGENTS, recorded.a3c_has_few_agents(self.runs), (verdicts.HOLDS,)),
            Guard(verdicts.BUSY_MACHINE, recorded.a3c_lacked_processor(self.runs), (verdicts.HOLDS,)),
        ]


def measured_alike(runs: Iterable[RecordedRun]) -> bool:
    """Return whether the speeds of runs may be compared: on one machine, whose calibrations agree, or begun
    within a minute.
    """
    measured = [run for run in runs if run.finished]
    if len({run.machine for run in measured}) > 1:
        return False
    starts = [run.started_s for run in measured]
    return recorded.comparable(measured) or max(starts) - min(starts) <= recorded.AT_ONE_TIME_S


def speed_changed(*pairs: Pairs) -> Guard:
    """Whether the machine has changed its speed in too many of these pairs."""
    return Guard(verdicts.SPEED_CHANGED, any(pair.changed for pair in pairs))


def grouped(items: Iterable, key: Callable[[Any], Any]) -> dict[Any, list]:
    """Group items, such as runs, by the value of `key`, in the order in which the values first appear."""
    groups: dict[Any, list] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups

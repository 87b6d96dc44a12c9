"""The tidy table of a figure: a row for each run and metric, with game, seed, system and dimensions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS
from ga3c_tf.reproduce.measures.verdicts import (
    BUSY_MACHINE,
    FEW_AGENTS,
    HOLDS,
    RUNS_MISSING,
    SEVERAL_MACHINES,
    SPEED_CHANGED,
    Guard,
)
from ga3c_tf.reproduce.runs.run import (
    AT_ONE_TIME_S,
    RecordedRun,
    a3c_has_few_agents,
    a3c_lacked_processor,
    comparable,
    seeds_have_one_machine,
)
from ga3c_tf.reproduce.runs.specs import ADDED, SYSTEMS, RunSpec

Dimensions = Callable[[RunSpec], Mapping[str, Any]]
SEED = ("seed",)


class Pairs(NamedTuple):
    """Values of two groups, by the key of the pair.

    Attributes:
        first, second: values of both groups, with the same keys.
        changed: whether the machine is known to have changed its speed in so many pairs that too few are left
            to decide. The values are then those of all pairs.
    """

    first: pd.Series
    second: pd.Series
    changed: bool


@dataclass(frozen=True)
class Measurements:
    """Runs of a figure and their measured values.

    Attributes:
        results: the results of the figure, also those of other games.
        facts: a row for each run, by its id: the columns run (`RecordedRun`), game, seed, system, added, and
            the dimensions of the figure.
        values: a row for each value: the columns metric and value, and those of the run.
    """

    results: Results
    facts: pd.DataFrame
    values: pd.DataFrame

    @classmethod
    def of(cls, results: Results, dimensions: Dimensions, scores: Sequence[str] = ()) -> Measurements:
        """Return the table of a figure's results.

        Args:
            results: the results.
            dimensions: returns the values of the dimensions of a run, by name.
            scores: metrics in which a run that diverged counts as the random policy.
        """
        facts = pd.DataFrame([_facts(run, dimensions) for run in results.runs]).set_index("id", drop=False)
        measured = {(record.run_id, record.metric): record.value for record in results.records}
        for run in results.runs:
            if run.diverged:
                measured |= {(run.spec.id, metric): run.random_score for metric in scores}
        rows = [(*key, value) for key, value in measured.items() if value is not None]
        values = pd.DataFrame(rows, columns=["id", "metric", "value"])
        return cls(results, facts, values.merge(facts.reset_index(drop=True), on="id"))

    @property
    def runs(self) -> list[RecordedRun]:
        """The runs, in the order of their plan."""
        return list(self.facts["run"])

    @property
    def finished(self) -> list[RecordedRun]:
        """The finished runs."""
        return [run for run in self.runs if run.finished]

    @property
    def game(self) -> str:
        """The game of the first run."""
        return self.facts["game"].iloc[0]

    def names(self, dimension: str) -> list:
        """Return the values of a dimension, in the order of the plan."""
        return list(self.facts[dimension].unique())

    def select(self, **where: Any) -> Measurements:
        """Return the part with these values of dimensions: one value, or a tuple of several."""
        facts = self.facts
        for name, value in where.items():
            facts = facts[facts[name].isin(value if isinstance(value, tuple) else (value,))]
        return Measurements(self.results, facts, self.values[self.values["id"].isin(facts.index)])

    def parts(self, *dimensions: str) -> Iterable[tuple[Any, Measurements]]:
        """Return the part of each combination of dimensions, in the order of the plan."""
        for key, facts in self.facts.groupby(list(dimensions), sort=False):
            part = Measurements(self.results, facts, self.values[self.values["id"].isin(facts.index)])
            yield (key if len(dimensions) > 1 else key[0]), part

    def series(self, metric: str, by: Sequence[str] = SEED, least: int = 1) -> pd.Series:
        """Return the mean of a metric by dimensions, of the groups with at least so many values."""
        groups = self.values[self.values["metric"] == metric].groupby(list(by), sort=False)["value"]
        return groups.mean()[groups.count() >= least]

    def numbers(self, metric: str) -> list[float]:
        """Return the values of a metric, in the order of the plan."""
        return self.values.loc[self.values["metric"] == metric, "value"].tolist()

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
        keys = x.index.intersection(y.index, sort=False)
        runs = pd.concat([group.facts for group in groups]).groupby(list(by), sort=False)["run"].agg(list)
        steady = [key for key in keys if measured_alike(runs[key])]
        few = len(steady) < LEAST_SEEDS
        kept = keys if few else keys[keys.isin(steady)]
        return Pairs(x[kept], y[kept], few and len(keys) >= LEAST_SEEDS)

    @functools.cached_property
    def missing(self) -> Guard:
        """Whether a run has not ended, so that a verdict could still change."""
        return Guard(RUNS_MISSING, not all(run.ended for run in self.runs))

    @functools.cached_property
    def several_machines(self) -> Guard:
        """Whether a seed has runs on several machines."""
        return Guard(SEVERAL_MACHINES, not seeds_have_one_machine(self.runs))

    @property
    def unfair_to_a3c(self) -> list[Guard]:
        """Whether A3C could not use all cores, so that nothing may be in favor of GA3C."""
        return [
            Guard(FEW_AGENTS, a3c_has_few_agents(self.runs), (HOLDS,)),
            Guard(BUSY_MACHINE, a3c_lacked_processor(self.runs), (HOLDS,)),
        ]

    @property
    def unfinished(self) -> str:
        """The seed and status of each run that is not finished, as the text of one cell."""
        return self.results.unfinished(self.runs)


def measured_alike(runs: Iterable[RecordedRun]) -> bool:
    """Return whether the speeds of runs may be compared: on one machine, whose calibrations agree, or begun
    within a minute.
    """
    measured = [run for run in runs if run.finished]
    if len({run.machine for run in measured}) > 1:
        return False
    starts = [run.started_s for run in measured]
    return comparable(measured) or max(starts) - min(starts) <= AT_ONE_TIME_S


def speed_changed(*pairs: Pairs) -> Guard:
    """Whether the machine has changed its speed in too many of these pairs."""
    return Guard(SPEED_CHANGED, any(pair.changed for pair in pairs))


def label(spec: RunSpec) -> dict[str, Any]:
    """Return the label of a run as its only dimension, without the mark of added seeds."""
    return {"label": ", ".join(word.removesuffix(ADDED) for word in spec.label)}


def words_of(*names: str) -> Dimensions:
    """Return the dimensions of runs whose labels have a word for each of these names."""
    return lambda spec: dict(zip(names, (word.removesuffix(ADDED) for word in spec.label), strict=True))


def _facts(run: RecordedRun, dimensions: Dimensions) -> dict[str, Any]:
    spec = run.spec
    return {
        "id": spec.id,
        "run": run,
        "game": spec.game,
        "seed": spec.seed,
        "system": SYSTEMS[spec.system],
        "added": spec.is_added,
        **dimensions(spec),
    }

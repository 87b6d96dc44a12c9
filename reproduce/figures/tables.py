"""Tables of the results: a row for each part of a figure's runs, and the usual cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.measures.text import counted, game_title, geometric_mean, mean_ci, number

Cell = Callable[[Measurements], str]
"""Returns the text of a cell for the part of the table that its row is about."""

HEADINGS = {"label": "setting", "added": "planned or added"}
"""Headings of dimensions that have another name in the code."""


class Table(NamedTuple):
    """A table of the results: a row for each combination of dimensions, a column for each cell.

    The last columns are the runs that are not finished, and the number of seeds that have finished runs.
    """

    by: Sequence[str]  # the dimensions of the rows
    columns: Mapping[str, Cell]  # the cells, by heading
    title: str = ""  # what the table shows; empty for the only one
    where: Mapping[str, Any] = {}  # the runs that are shown, as in `Measurements.select`

    @property
    def header(self) -> list[str]:
        """The headings."""
        return [*(HEADINGS.get(name, name.replace("_", " ")) for name in self.by), *self._cells, "seeds"]

    def rows(self, table: Measurements) -> list[list[str]]:
        """Return the cells of each row of which a run has begun."""
        parts = [part for _, part in table.select(**self.where).parts(*self.by)]
        return [self._row(part) for part in parts if any(run.result for run in part.runs)]

    def _row(self, part: Measurements) -> list[str]:
        facts = {**part.rows[0].facts, "added": "added" if part.has_added else "planned"}
        names = [game_title(part.game) if name == "game" else str(facts[name]) for name in self.by]
        seeds = len({run.spec.seed for run in part.finished})
        cells = [cell(part).removesuffix(f" ({counted(seeds, 'seed')})") for cell in self._cells.values()]
        return [*names, *cells, str(seeds)]

    @property
    def _cells(self) -> dict[str, Cell]:
        return {**self.columns, **UNFINISHED}


def mean_of(metric: str, **where: Any) -> Cell:
    """Return a cell with the mean of a metric, its interval and the number of seeds."""
    return lambda part: mean_ci(part.select(**where).numbers(metric))


def means_of(*metrics: str) -> dict[str, Cell]:
    """Return a cell for each metric, as `mean_of` does, by its name."""
    return {metric: mean_of(metric) for metric in metrics}


def time_of(metric: str) -> Cell:
    """Return a cell with the geometric mean of times and its interval, which is computed on the logarithm.

    There is none if a run has no time: it would be the mean of the fastest runs.
    """

    def cell(part: Measurements) -> str:
        times = part.numbers(metric)
        return geometric_mean(times) if len(times) == len(part.ended) else "-"

    return cell


def reached(metric: str) -> Cell:
    """Return a cell with the number of runs that have a value of a metric."""
    return lambda part: f"{len(part.numbers(metric))} of {len(part.ended)}"


def _minutes(part: Measurements) -> str:
    times = [60 * run.hours for run in part.finished]
    return number(sum(times) / len(times)) if times else "-"


MINUTES: dict[str, Cell] = {"minutes": _minutes}
UNFINISHED: dict[str, Cell] = {"not finished": lambda part: part.unfinished}

"""The rows of a run's CSV files: their columns, and how those of older versions are read too."""

from __future__ import annotations

import array
import contextlib
import csv
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from math import isfinite
from pathlib import Path

import numpy as np

EPISODE_COLUMNS = ("time_s", "agent_steps", "episode", "score", "length")
METRIC_COLUMNS = (
    "time_s",
    "agent_steps",
    "updates",
    "pps",
    "tps",
    "policy_lag_mean",
    "policy_lag_p95",
    "prediction_batch",
    "training_batch",
    "prediction_queue",
    "training_queue",
    "agents",
    "predictors",
    "trainers",
    "policy_loss",
    "value_loss",
    "entropy",
    "rss_mb",
    # New columns are added at the end: files of an older version, without them, can be read and continued.
    "policy_lag_states",
    "kl",
    "total_variation",
    "effective_sample_size",
    "clipped",
    "floored",
    "version_spread",
    "bootstrap_lag",
    "dropped_steps",
    "q_loss",
    "q_value",
    "sample_age",
    "training_intensity",
    "replica_lag",
    "carry_age",
    "chi_squared",
    "k3",
    "m2",
    "masked",
    "explained_variance",
    "learning_rate",
    "beta",
    "epsilon",
)
ADJUSTMENT_COLUMNS = ("time_s", "agents", "predictors", "trainers", "rate", "noise", "accepted", "why")
EVENT_COLUMNS = ("time_s", "agent_steps", "event", "why")
NODE_COLUMNS = ("time_s", "agent_steps", "node", "agents", "pps", "policy_lag_mean", "round_trip_ms")
TEXTS = ("event", "why", "node")
_OWN = re.compile(r"\w+(/\w+)+", re.ASCII)


def is_own(name: str) -> bool:
    """Return whether a metric is one of a callback's own: its name has a group, as in 'evaluation/score'."""
    return _OWN.fullmatch(name) is not None


def metric_columns(folder: Path) -> tuple[str, ...]:
    """Return the columns of a run's metrics.csv: `METRIC_COLUMNS`, and those of callbacks."""
    with open_csv(folder / "metrics.csv") as lines:
        header = next(iter(lines), "")
    return (*METRIC_COLUMNS, *filter(is_own, header.rstrip("\r\n").split(",")))


def read_rows(file: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """Read the rows of a run's CSV file as strings; skip damaged lines, such as a half-written last one.

    It is meant for small files, since a row takes about a kilobyte of memory. `read_columns` takes 8 bytes
    per number.
    """
    with open_csv(file) as lines:
        rows = [cells for _, cells in parsed_lines(lines, columns) if cells is not None]
    return [dict(zip(columns, cells, strict=True)) for cells in rows]


def read_columns(file: Path, columns: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Read the numeric columns of a run's CSV file, each float64 [rows]; an empty cell is not-a-number.

    Damaged lines are skipped, as in `read_rows`.
    """
    with open_csv(file) as lines:
        return columns_of(lines, columns)


def columns_of(lines: Iterable[str], columns: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Return the numeric columns of the lines of a run's CSV file, as `read_columns` does."""
    numbers = {name: array.array("d") for name in columns if name not in TEXTS}
    places = [(columns.index(name), values.append) for name, values in numbers.items()]
    for _, cells in parsed_lines(lines, columns):
        if cells is not None:
            for place, append in places:
                append(float(cells[place] or "nan"))
    return {name: np.array(values) for name, values in numbers.items()}


def open_csv(file: Path) -> contextlib.AbstractContextManager[Iterable[str]]:
    """Open a CSV file; one that does not exist has no lines."""
    if not file.exists():
        return contextlib.nullcontext(())
    return file.open(errors="replace", newline="\n")


def parsed_lines(lines: Iterable[str], columns: tuple[str, ...]) -> Iterator[tuple[str, list[str] | None]]:
    """Yield each line except the header, with its cells, or with None if the line is damaged.

    Lines have the cells of `columns`, whatever columns their file has. Each line is parsed on its own,
    because a wrong quotation mark would otherwise swallow all lines after it.
    """
    lines = iter(lines)
    first = next(lines, "")
    arranged = _arrangement(first, columns)
    if first and arranged is None:
        lines = itertools.chain([first], lines)
    for line in lines:
        cells = (arranged or _as_it_is)(line.rstrip("\r\n"))
        yield cells + "\n", _cells(cells, columns) if line.endswith("\n") else None


def _arrangement(header: str, columns: tuple[str, ...]) -> Callable[[str], str] | None:
    """Return what gives a line of a file with this header the cells of `columns`; None for another header.

    An older version wrote only the first columns, and files may have columns of callbacks after them.
    """
    names = tuple(header.rstrip("\r\n").split(","))
    if names == columns[: len(names)]:
        missing = "," * (len(columns) - len(names))
        return lambda line: line + missing
    if names[:1] != columns[:1] or not all(name in columns or is_own(name) for name in names):
        return None
    places = [names.index(name) if name in names else len(names) for name in columns]

    def arranged(line: str) -> str:
        cells = [*line.split(","), ""]  # the last one is that of a column that the file lacks
        return ",".join(cells[place] for place in places) if len(cells) == len(names) + 1 else ""

    return arranged


def _as_it_is(line: str) -> str:
    return line


def _cells(line: str, columns: tuple[str, ...]) -> list[str] | None:
    """Split a line without its line break into cells; return None for a damaged line."""
    try:
        [cells] = csv.reader([line]) if '"' in line else [line.split(",")]
        if len(cells) != len(columns) or not cells[0]:
            return None
        for name, cell in zip(columns, cells, strict=True):
            if cell and name not in TEXTS and not isfinite(float(cell)):
                return None
        return cells
    except (csv.Error, ValueError):
        return None

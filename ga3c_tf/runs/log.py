"""A run's curves: CSV files and TensorBoard events, which a resumed run continues from its checkpoint."""

from __future__ import annotations

import array
import contextlib
import csv
import io
import itertools
import math
import os
import platform
import re
import time
from collections.abc import Callable, Iterable, Iterator
from math import isfinite
from pathlib import Path

import numpy as np
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.record_writer import RecordWriter

from ga3c_tf.files import RetryingWriter, atomic_write

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
)
ADJUSTMENT_COLUMNS = ("time_s", "agents", "predictors", "trainers", "rate", "noise", "accepted", "why")
EVENT_COLUMNS = ("time_s", "agent_steps", "event", "why")
NODE_COLUMNS = ("time_s", "agent_steps", "node", "agents", "pps", "policy_lag_mean", "round_trip_ms")
TEXTS = ("event", "why", "node")
WARN_SECONDS = 60.0
BLOCK_BYTES = 65_536
"""Bytes read at a time from the end of a file."""
_OWN = re.compile(r"\w+(/\w+)+", re.ASCII)


def is_own(name: str) -> bool:
    """Return whether a metric is one of a callback's own: its name has a group, as in 'evaluation/score'."""
    return _OWN.fullmatch(name) is not None


def metric_columns(folder: Path) -> tuple[str, ...]:
    """Return the columns of a run's metrics.csv: `METRIC_COLUMNS`, and those of callbacks."""
    with _opened(folder / "metrics.csv") as lines:
        header = next(iter(lines), "")
    return (*METRIC_COLUMNS, *filter(is_own, header.removesuffix("\n").split(",")))


class RunLog:
    """Writes the curves of one run.

    Args:
        folder: the run folder.
        agent_steps: agent steps so far.
        time_s: seconds of training so far. Later rows are dropped: they belong to a part of the run that was
            lost and is repeated.
        episodes: number of episodes so far. Rows of later episodes are dropped from episodes.csv.
        warn: called with one line, at most once a minute, while rows cannot be written, and about damaged
            rows.
        nodes: whether to write nodes.csv.
        own_metrics: names of the metrics of callbacks, which follow the columns of metrics.csv.
    """

    def __init__(
        self,
        folder: Path,
        agent_steps: int = 0,
        time_s: float = 0.0,
        episodes: int = 0,
        warn: Callable[[str], None] = print,
        nodes: bool = False,
        own_metrics: Iterable[str] = (),
    ):
        def table(
            name: str, columns: tuple[str, ...], counter: str = "time_s", last: float = time_s + 1e-3
        ) -> RetryingWriter:
            _drop_rows(folder / name, columns, counter, last, warn)
            return RetryingWriter(folder / name, self._no_room)

        self._warn = warn
        self._warned = -math.inf
        self._episodes = table("episodes.csv", EPISODE_COLUMNS, "episode", episodes)
        self._columns = tuple(dict.fromkeys((*metric_columns(folder), *own_metrics)))
        self._metrics = table("metrics.csv", self._columns)
        self._adjustment = table("adjustment.csv", ADJUSTMENT_COLUMNS)
        self._event_log = table("events.csv", EVENT_COLUMNS)
        self._node_log = table("nodes.csv", NODE_COLUMNS) if nodes else None
        # TensorBoard reads the files in the order of their names.
        seconds, nanoseconds = divmod(time.time_ns(), 10**9)
        name = f"events.out.tfevents.{seconds}.{platform.node()}.{os.getpid()}.{nanoseconds:09d}"
        self._tensorboard = RetryingWriter(folder / name, self._no_room)
        self._add(event_pb2.Event(file_version="brain.Event:2"))
        if agent_steps:  # TensorBoard drops what an earlier session wrote from this step on
            start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
            self._add(event_pb2.Event(step=agent_steps + 1, session_log=start))

    def episode(self, row: dict[str, float], rolling_score: float) -> None:
        """Add one row to episodes.csv."""
        self._write(self._episodes, EPISODE_COLUMNS, row)
        self._summary(
            row["agent_steps"],
            {
                "episode/score": row["score"],
                "episode/length": row["length"],
                "episode/rolling_score": rolling_score,
            },
        )

    def metrics(self, row: dict[str, float]) -> None:
        """Add one row to metrics.csv; further values in `row` go to TensorBoard only.

        Columns of other algorithms stay empty.
        """
        self._write(self._metrics, self._columns, dict.fromkeys(self._columns, math.nan) | row)
        self._summary(
            row["agent_steps"],
            {
                name if is_own(name) else f"metrics/{name}": value
                for name, value in row.items()
                if name not in ("time_s", "agent_steps")
            },
        )

    def adjustment(self, row: dict[str, float | str]) -> None:
        """Add one row to adjustment.csv; may be called from another thread than the other methods."""
        self._write(self._adjustment, ADJUSTMENT_COLUMNS, row)

    def event(self, row: dict[str, float | str]) -> None:
        """Add one row to events.csv: a problem that was dealt with."""
        self._write(self._event_log, EVENT_COLUMNS, row)

    def node(self, row: dict[str, float | str]) -> None:
        """Add one row to nodes.csv: what the agents of one machine have done. Needs `nodes=True`."""
        assert self._node_log is not None
        self._write(self._node_log, NODE_COLUMNS, row)

    def flush(self) -> None:
        """Sync everything written so far to disk.

        Raises:
            OSError: a file cannot be written.
        """
        for file in self._files():
            file.flush()

    def close(self) -> None:
        """Close all files; warn about rows that could not be written."""
        self._warned = -math.inf
        for file in self._files():
            file.close()

    def _files(self) -> tuple[RetryingWriter, ...]:
        nodes = (self._node_log,) if self._node_log else ()
        return self._episodes, self._metrics, self._adjustment, self._event_log, self._tensorboard, *nodes

    @staticmethod
    def _write(file: RetryingWriter, columns: tuple[str, ...], row: dict) -> None:
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow([_text(row[column]) for column in columns])
        file.write(line.getvalue().encode())

    def _summary(self, agent_steps, values):
        event = event_pb2.Event(step=int(agent_steps))
        for name, value in values.items():
            if not math.isnan(value):
                event.summary.value.append(summary_pb2.Summary.Value(tag=name, simple_value=value))
        self._add(event)

    def _add(self, event: event_pb2.Event) -> None:
        event.wall_time = time.time()
        record = io.BytesIO()
        RecordWriter(record).write(event.SerializeToString())
        self._tensorboard.write(record.getvalue())

    def _no_room(self, text: str) -> None:
        if time.monotonic() >= self._warned + WARN_SECONDS:
            self._warned = time.monotonic()
            self._warn(text)


def read_rows(file: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """Read the rows of a run's CSV file as strings; skip damaged lines, such as a half-written last one.

    It is meant for small files, since a row takes about a kilobyte of memory. `read_columns` takes 8 bytes
    per number.
    """
    with _opened(file) as lines:
        rows = [cells for _, cells in _parsed(lines, columns) if cells is not None]
    return [dict(zip(columns, cells, strict=True)) for cells in rows]


def read_columns(file: Path, columns: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Read the numeric columns of a run's CSV file, each float64 [rows]; an empty cell is not-a-number.

    Damaged lines are skipped, as in `read_rows`.
    """
    with _opened(file) as lines:
        return columns_of(lines, columns)


def columns_of(lines: Iterable[str], columns: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Return the numeric columns of the lines of a run's CSV file, as `read_columns` does."""
    numbers = {name: array.array("d") for name in columns if name not in TEXTS}
    places = [(columns.index(name), values.append) for name, values in numbers.items()]
    for _, cells in _parsed(lines, columns):
        if cells is not None:
            for place, append in places:
                append(float(cells[place] or "nan"))
    return {name: np.array(values) for name, values in numbers.items()}


def read_last_rows(file: Path, columns: tuple[str, ...], count: int) -> list[dict[str, str]]:
    """Read at most `count` rows from the end of a run's CSV file, as strings; skip damaged lines."""
    if not file.exists():
        return []
    with file.open("rb") as content:
        place = content.seek(0, os.SEEK_END)
        end = b""
        while place and end.count(b"\n") <= count:
            size = min(BLOCK_BYTES, place)
            place = content.seek(place - size)
            end = content.read(size) + end
    # Text after the last line break is an incomplete line.
    lines = end.decode(errors="replace").split("\n")[:-1]
    with file.open(errors="replace", newline="\n") as stream:
        arranged = _arrangement(stream.readline(), columns) or _as_it_is
    # So may be the first line.
    rows = [_cells(arranged(line), columns) for line in (lines[1:] if place else lines)]
    return [dict(zip(columns, cells, strict=True)) for cells in rows[-count:] if cells is not None]


def _opened(file: Path) -> contextlib.AbstractContextManager[Iterable[str]]:
    """Open a CSV file; one that does not exist has no lines."""
    if not file.exists():
        return contextlib.nullcontext(())
    return file.open(errors="replace", newline="\n")


def _parsed(lines: Iterable[str], columns: tuple[str, ...]) -> Iterator[tuple[str, list[str] | None]]:
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
        cells = (arranged or _as_it_is)(line.removesuffix("\n"))
        yield cells + "\n", _cells(cells, columns) if line.endswith("\n") else None


def _arrangement(header: str, columns: tuple[str, ...]) -> Callable[[str], str] | None:
    """Return what gives a line of a file with this header the cells of `columns`; None for another header.

    An older version wrote only the first columns, and files may have columns of callbacks after them.
    """
    names = tuple(header.removesuffix("\n").split(","))
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


def _drop_rows(
    file: Path, columns: tuple[str, ...], counter: str, last: float, warn: Callable[[str], None]
) -> None:
    """Rewrite `file` with its header and rows whose `counter` is at most `last`; warn about damaged rows."""
    damaged = 0
    place = columns.index(counter)
    with _opened(file) as lines, atomic_write(file, newline="") as stream:
        stream.write(",".join(columns) + "\n")
        for line, cells in _parsed(lines, columns):
            if cells is None:
                damaged += 1
            elif float(cells[place] or "inf") <= last:
                stream.write(line)
    if damaged:
        warn(f"{file}: {damaged} damaged row{'s are' if damaged > 1 else ' is'} left out")


def _text(value: float | str) -> str:
    """Format a CSV cell.

    Texts stay as they are, integers have no decimal point, other numbers have six significant digits or, from
    1000 on, three decimals, and not-a-number is empty.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, float) and math.isnan(value):
        return ""
    if float(value).is_integer():
        return str(int(value))
    return f"{value:.3f}" if abs(value) >= 1000 else f"{value:.6g}"

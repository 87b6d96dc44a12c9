"""A run's curves: CSV files and TensorBoard events, which a resumed run continues from its checkpoint."""

from __future__ import annotations

import csv
import io
import math
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.record_writer import RecordWriter

from ga3c_tf.files import RetryingWriter, atomic_write
from ga3c_tf.runs.csv_rows import (
    ADJUSTMENT_COLUMNS,
    EPISODE_COLUMNS,
    EVENT_COLUMNS,
    NODE_COLUMNS,
    is_own,
    metric_columns,
    open_csv,
    parsed_lines,
)

WARN_SECONDS = 60.0


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
        # TensorBoard drops what an earlier session wrote from this step on.
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


def _drop_rows(
    file: Path, columns: tuple[str, ...], counter: str, last: float, warn: Callable[[str], None]
) -> None:
    """Rewrite `file` with its header and rows whose `counter` is at most `last`; warn about damaged rows.

    A half-written last row is common after a kill. With more damage the file as it was is kept.
    """
    damaged = 0
    before = None
    place = columns.index(counter)
    with open_csv(file) as lines, atomic_write(file, newline="") as stream:
        stream.write(",".join(columns) + "\n")
        for line, cells in parsed_lines(lines, columns):
            if cells is None:
                damaged += 1
            elif float(cells[place] or "inf") <= last:
                stream.write(line)
        if damaged > 1:
            before = file.with_name(f"{file.name}.damaged-{time.time_ns()}")
            shutil.copyfile(file, before)
    if damaged:
        where = f"; the file as it was is {before.name}" if before else ""
        warn(f"{file}: {damaged} damaged row{'s are' if damaged > 1 else ' is'} left out{where}")


def _text(value: float | str) -> str:
    """Format a CSV cell.

    Texts stay as they are, integers have no decimal point, other numbers have six significant digits or, from
    1000 on, three decimals, and a number that is not finite is empty.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return ""
    if float(value).is_integer():
        return str(int(value))
    return f"{value:.3f}" if abs(value) >= 1000 else f"{value:.6g}"

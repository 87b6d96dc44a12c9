"""The curves of a run: episodes.csv, metrics.csv and TensorBoard events, continued where a checkpoint stands."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable
from pathlib import Path

from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.event_file_writer import EventFileWriter

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
)
ADJUSTMENT_COLUMNS = ("time_s", "agents", "predictors", "trainers", "rate", "noise", "accepted", "why")


class RunLog:
    """Writes the curves of one run.

    Args:
        folder: the run folder.
        agent_steps: where the run stands; rows beyond `time_s` and `episodes` are dropped, since they are of a part
            that was lost and will be run again.
        time_s: seconds of training so far.
        episodes: episodes so far.
    """

    def __init__(self, folder: Path, agent_steps: int = 0, time_s: float = 0.0, episodes: int = 0):
        self._episodes = _open(folder / "episodes.csv", EPISODE_COLUMNS, lambda row: int(row["episode"]) <= episodes)
        self._metrics = _open(folder / "metrics.csv", METRIC_COLUMNS, lambda row: float(row["time_s"]) <= time_s + 1e-3)
        self._adjustment = _open(
            folder / "adjustment.csv", ADJUSTMENT_COLUMNS, lambda row: float(row["time_s"]) <= time_s + 1e-3
        )
        self._events = EventFileWriter(str(folder))
        if agent_steps:  # TensorBoard drops what an earlier session wrote from this step on
            start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
            self._events.add_event(event_pb2.Event(step=agent_steps + 1, session_log=start))

    def episode(self, row: dict[str, float], rolling_score: float) -> None:
        """Adds one row to episodes.csv."""
        self._write(self._episodes, EPISODE_COLUMNS, row)
        self._summary(
            row["agent_steps"],
            {"episode/score": row["score"], "episode/length": row["length"], "episode/rolling_score": rolling_score},
        )

    def metrics(self, row: dict[str, float]) -> None:
        """Adds one row to metrics.csv; further values in `row` go to TensorBoard only."""
        self._write(self._metrics, METRIC_COLUMNS, row)
        self._summary(
            row["agent_steps"],
            {f"metrics/{name}": value for name, value in row.items() if name not in ("time_s", "agent_steps")},
        )

    def adjustment(self, row: dict[str, float | str]) -> None:
        """Adds one row to adjustment.csv; safe in another thread than the rest."""
        self._write(self._adjustment, ADJUSTMENT_COLUMNS, row)

    def flush(self) -> None:
        """Has the disk keep everything written so far."""
        for stream in (self._episodes, self._metrics, self._adjustment):
            os.fsync(stream.fileno())
        self._events.flush()

    def close(self) -> None:
        """Flushes and closes all files."""
        for stream in (self._episodes, self._metrics, self._adjustment, self._events):
            stream.close()

    @staticmethod
    def _write(stream, columns, row):
        csv.writer(stream, lineterminator="\n").writerow([_text(row[column]) for column in columns])
        stream.flush()

    def _summary(self, agent_steps, values):
        event = event_pb2.Event(step=int(agent_steps))
        for name, value in values.items():
            if not math.isnan(value):
                event.summary.value.append(summary_pb2.Summary.Value(tag=name, simple_value=value))
        self._events.add_event(event)


def read_rows(file: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """The rows of a run's CSV file as texts; a damaged line, such as a half-written last one, is left out."""
    if not file.exists():
        return []
    with file.open(newline="", errors="replace") as stream:
        return [row for row in csv.DictReader(stream) if _whole(row, columns)]


def _whole(row: dict, columns: tuple[str, ...]) -> bool:
    try:
        numbers = [row[name] for name in columns if name != "why"]
        return set(row) == set(columns) and all(text == "" or math.isfinite(float(text)) for text in numbers)
    except (KeyError, TypeError, ValueError):
        return False


def _open(file: Path, columns: tuple[str, ...], keep: Callable[[dict], bool]):
    """Opens `file` to append to it, after writing its header and the earlier rows to keep."""
    kept = [row for row in read_rows(file, columns) if keep(row)]
    aside = file.with_name(file.name + ".new")
    with aside.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)
    aside.rename(file)
    return file.open("a", newline="")


def _text(value: float | str) -> str:
    """A CSV cell: texts as they are, whole numbers whole, others to six digits, not-a-number empty."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and math.isnan(value):
        return ""
    return str(int(value)) if float(value).is_integer() else f"{value:.3f}" if abs(value) >= 1000 else f"{value:.6g}"

"""Pictures of learning curves that several figures draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.measures.random_policy import RANDOM_SCORES
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.runs.curve import Columns


def curves(
    table: Measurements, lines: str, row: str = "game", curve: Callable[[RecordedRun], Columns] | None = None
) -> dict[str, dict[str, list[Columns]]]:
    """Return the curves of the finished runs, by title of a row of panels and by line.

    Args:
        table: the runs.
        lines: dimension of the lines.
        row: dimension of the rows of panels; rows without a finished run are left out.
        curve: returns the curve of a run; None for that of curve.csv.
    """
    read = curve or (lambda run: run.curve)
    rows = {}
    for title, part in table.parts(row):
        if part.finished:
            rows[str(title).replace("_", " ")] = {
                _named(lines, line): [read(run) for run in runs.finished] for line, runs in part.parts(lines)
            }
    return rows


def _named(dimension: str, line: object) -> str:
    """Return the name of a line; a number is named with its dimension."""
    return line if isinstance(line, str) else f"{dimension} {line:,}"


def curves_by(lines: str, row: str = "game") -> Callable[[Measurements, Path], None]:
    """Return a plot of the planned runs' scores against time and agent steps, with the random policy's score.

    Args:
        lines: dimension of the lines.
        row: dimension of the rows of panels.
    """

    def plot(table: Measurements, stem: Path) -> None:
        draw(curves(table.select(added=False), lines, row), stem)

    return plot


def draw(rows: dict[str, dict[str, list[Columns]]], stem: Path, **options: Any) -> None:
    """Draw rows of curves, if there are any.

    Args:
        rows: curves, as `curves` returns them.
        stem: path of the picture files, without the suffix.
        options: further arguments of `score_plots.score_curves`; `random` replaces the recorded scores.
    """
    from ga3c_tf.reproduce.drawing import score_plots

    recorded = {game.replace("_", " "): score for game, score in RANDOM_SCORES.items()}
    random: Mapping[str, float | None] = {**recorded, **options.pop("random", {})}
    if rows:
        score_plots.score_curves(rows, stem, random, **options)

"""Pictures of figures. Matplotlib is imported when they are drawn."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.figures.normalized import random_mean
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.runs.curve import Columns

ScoreOf = Callable[[Measurements], float | None]
"""Returns a score of the game of a part, if it is known."""


def drawing(name: str) -> ModuleType:
    """Return a module of `drawing`."""
    return importlib.import_module(f"ga3c_tf.reproduce.drawing.{name}")


def draw_curves(
    table: Measurements,
    stem: Path,
    lines: str,
    panels: str = "game",
    curve: Callable[[RecordedRun], Columns] = lambda run: run.curve,
    reach: ScoreOf = lambda part: None,
    goal: ScoreOf = lambda part: None,
    names: Mapping[str, str] = MappingProxyType({}),
    **options: Any,
) -> None:
    """Draw scores against time and agent steps, a row for each game, say, with a finished run.

    Args:
        table: the runs.
        stem: path of the picture files, without the suffix.
        lines, panels: dimensions of the lines and of the rows of panels.
        curve: returns the curve of a run.
        reach: returns the score that the axis must include.
        goal: returns the score at which the runs end, if there is one.
        names: names of lines that are not called by their dimension.
        options: further arguments of `score_plots.score_curves`.
    """
    plots = drawing("score_plots")
    rows = []
    for title, part in table.parts(panels):
        of_lines = {names.get(line, _named(lines, line)): runs.finished for line, runs in part.parts(lines)}
        curves = {name: [*map(curve, runs)] for name, runs in of_lines.items()}
        if part.finished:
            scores = (random_mean(part), goal(part), reach(part))
            rows.append(plots.Panel(title.replace("_", " "), curves, *scores))
    if rows:
        plots.score_curves(rows, stem, **options)


def _named(dimension: str, line: object) -> str:
    """Return the name of a line; a number is named with its dimension."""
    return line if isinstance(line, str) else f"{dimension} {line:,}"

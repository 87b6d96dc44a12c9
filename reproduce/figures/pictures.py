"""Pictures of figures. Matplotlib is imported when they are drawn."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.figures.normalized import random_mean

if TYPE_CHECKING:
    from ga3c_tf.reproduce.figures.figure import Figure


def drawing(name: str) -> ModuleType:
    """Return a module of `drawing`."""
    return importlib.import_module(f"ga3c_tf.reproduce.drawing.{name}")


def draw_curves(figure: Figure, table: Measurements, stem: Path) -> None:
    """Draw scores against time and agent steps, a row for each panel with a finished run.

    Args:
        figure: says what its lines and panels are, and what else is drawn.
        table: the runs.
        stem: path of the picture files, without the suffix.
    """
    plots = drawing("score_plots")
    rows = []
    for title, part in figure.drawn(table).parts(figure.panels):
        curves = {
            figure.line_name(runs): [*map(figure.curve, runs.finished)]
            for _, runs in part.parts(figure.lines)
        }
        if part.finished:
            scores = (random_mean(part), figure.goal(part), figure.reach(part))
            rows.append(plots.Panel(title.replace("_", " "), curves, *scores))
    if rows:
        plots.score_curves(rows, stem, figure.time_label)

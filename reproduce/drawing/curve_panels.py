"""The picture of learning curves game by game, beside the scores that they are to reach."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.ticker import MaxNLocator

from ga3c_tf.reproduce.drawing.canvas import FONT, LOOKS, canvas, handles, legend_above, save, short_number
from ga3c_tf.reproduce.drawing.score_plots import GOAL_LINE, RANDOM_LINE
from ga3c_tf.runs.curve import Columns


class Panel(NamedTuple):
    """What is drawn of a game."""

    title: str
    curves: Sequence[Columns]  # of each seed
    paper: float | None  # the paper's score
    random: float | None  # score of the random policy


def curve_panels(panels: Sequence[tuple], stem: Path, columns: int = 3) -> None:
    """Draw the rolling score of each seed against agent steps, in a panel for each game.

    Args:
        panels: the games.
        stem: path of the picture files, without the suffix.
        columns: number of panels in a row.
    """
    rows = -(-len(panels) // columns)
    figure, axes = canvas(rows, columns, 0.5 + 1.1 * rows)
    for axis, panel in zip(axes.flat, map(Panel._make, panels), strict=False):
        for curve in panel.curves:
            millions = curve["agent_steps"] / 1e6
            axis.plot(
                millions, curve["rolling_score"], color=LOOKS["ga3c"].color, linewidth=0.8, label="GA3C, ours"
            )
        if panel.paper is not None:
            axis.axhline(panel.paper, label="GA3C, paper", **GOAL_LINE)
        if panel.random is not None:
            axis.axhline(panel.random, label="random policy", **RANDOM_LINE)
        axis.set_title(panel.title)
        axis.yaxis.set_major_locator(MaxNLocator(3))
        axis.yaxis.set_major_formatter(lambda value, _: short_number(value))
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    figure.supxlabel("agent steps (millions)", fontsize=FONT)
    figure.supylabel("score", fontsize=FONT)
    legend_above(figure, handles(axes.flat), 3)
    save(figure, stem)

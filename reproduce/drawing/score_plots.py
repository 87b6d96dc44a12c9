"""Pictures of scores: against time and agent steps, and game by game."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ga3c_tf.reproduce.drawing.canvas import (
    COLORS,
    FONT,
    LOOKS,
    NO_SYSTEM,
    canvas,
    draw_level,
    few_ticks,
    handles,
    legend_above,
    log_scale,
    looks,
    save,
)
from ga3c_tf.runs.curve import Columns
from ga3c_tf.trained.intervals import mean_interval

MARKS = {  # marker and color of each method in Table 3; the marks of the paper are open
    "random": ("o", NO_SYSTEM),
    "human": ("^", NO_SYSTEM),
    "A3C (4 days, CPU)": ("s", LOOKS["a3c"].color),
    "GA3C (1 day, GPU)": ("D", LOOKS["ga3c"].color),
}
OURS = LOOKS["ga3c"].color
GRID = 75
LINE_STYLES = ("-", "--", "-.", ":")
GOAL_LINE: dict[str, Any] = {"color": "black", "linewidth": 0.7, "linestyle": (0, (6, 3))}
AGAINST = (("time_s", 60.0), ("agent_steps", 1e6))
"""Column of a curve and its unit on the axis, of each of the two axes."""
FAR_APART = 10
"""The time axis is logarithmic if the ends of the curves differ by more than this factor."""


class Panel(NamedTuple):
    """Learning curves of a game, say."""

    title: str
    curves: Mapping[str, Sequence[Columns]]  # curves of the seeds, by label of a line
    random: float | None = None  # score of the random policy, if it is known
    goal: float | None = None  # score at which the runs end, or that of the paper
    # score that the axis must include, so that it does not magnify the noise of runs that learned nothing
    reach: float | None = None


class GameScores(NamedTuple):
    """The scores of a game in Table 3."""

    game: str
    papers: Mapping[str, float]  # the paper's, by method of `MARKS`
    random: Sequence[float]  # ours of the random policy
    ours: Sequence[float]  # ours of each seed
    sample: Sequence[float]  # the scores of the interval: those of seeds, or of episodes of a single seed


def score_panels(games: Sequence[GameScores], stem: Path) -> None:
    """Draw a small panel for each game, with the paper's scores and ours."""
    figure, axes = canvas(3, 3, 3.9)
    for axis, scores in zip(axes.flat, games, strict=True):
        _draw_scores(axis, scores)
        axis.set_title(scores.game.replace("_", " "))
        axis.set_xlim(-0.7, 5.7)
        axis.set_xticks([])
        axis.margins(y=0.15)
    figure.supylabel("score (log axis where all are positive)", fontsize=FONT)
    legend_above(figure, handles(axes.flat), 2)
    save(figure, stem)


def _draw_scores(axis, scores: GameScores) -> None:
    for method, score in scores.papers.items():
        marker, color = MARKS[method]
        style = {"color": color, "markerfacecolor": "none", "label": f"{method}, paper"}
        axis.plot(list(MARKS).index(method), score, marker, **style)
    if scores.random:
        axis.plot(4, np.mean(scores.random), MARKS["random"][0], color=NO_SYSTEM, label="random, ours")
    low, high = mean_interval(scores.sample) if scores.ours else (np.nan, np.nan)
    axis.vlines(5, low, high, color=OURS, linewidth=2, alpha=0.5)
    if scores.ours:
        label = "GA3C, ours (seeds; bar: 95 %)"
        axis.plot([5] * len(scores.ours), scores.ours, "_", color=OURS, markersize=6, label=label)
    if np.nanmin([*scores.papers.values(), *scores.random, *scores.ours, low, 1.0]) > 0:
        log_scale(axis)
    else:
        few_ticks(axis, 4)


def curve_panels(panels: Sequence[Panel], stem: Path, columns: int = 3) -> None:
    """Draw the rolling score of each seed against agent steps, in a panel for each game."""
    rows = -(-len(panels) // columns)
    figure, axes = canvas(rows, columns, 0.5 + 1.1 * rows)
    for axis, panel in zip(axes.flat, panels, strict=False):
        for label, curves in panel.curves.items():
            for curve in curves:
                style: dict[str, Any] = {"color": OURS, "linewidth": 0.8, "label": label}
                axis.plot(curve["agent_steps"] / 1e6, curve["rolling_score"], **style)
        draw_level([axis], panel.goal, "GA3C, paper", GOAL_LINE)
        draw_level([axis], panel.random)
        axis.set_title(panel.title.replace("_", " "))
        few_ticks(axis, 3)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    figure.supxlabel("agent steps (millions)", fontsize=FONT)
    figure.supylabel("score", fontsize=FONT)
    legend_above(figure, handles(axes.flat), 3)
    save(figure, stem)


def score_curves(panels: Sequence[Panel], stem: Path, time_label: str = "time (minutes)") -> None:
    """Draw the score against time and against agent steps, as the mean over seeds and their range.

    Where runs end at a score, each run has a line of its own, since a mean would end with the first of them.
    The label of the axis of time says what the time counts from.
    """
    figure, axes = canvas(len(panels), 2, 0.6 + 1.4 * len(panels), sharey="row")
    draw_rows(axes, panels, time_label)
    legend_above(figure, handles(axes.flat), 2)
    save(figure, stem)


def draw_rows(axes: Sequence, panels: Sequence[Panel], time_label: str = "time (minutes)") -> None:
    """Draw a row of two axes for each panel, as `score_curves` does."""
    for row, (title, curves, random, goal, reach) in zip(axes, panels, strict=True):
        time = row[0]
        draw_curves(row, curves, apart=goal is not None)
        ends = [line.get_xdata()[-1] for line in time.get_lines()]
        draw_level(row, random)
        draw_level(row, goal, "score to reach", GOAL_LINE)
        if reach is not None:
            time.set_ylim(top=max(reach, time.get_ylim()[1]))
        if ends and max(ends) > FAR_APART * min(ends):
            time.set_xscale("log")
            time.xaxis.set_major_formatter("{x:g}")
        time.set_ylabel(f"{title}\nscore" if title else "score")
    axes[-1][0].set_xlabel(time_label)
    axes[-1][1].set_xlabel("agent steps (millions)")


def draw_curves(axes: Sequence, curves: Mapping[str, Sequence[Columns]], apart: bool = False) -> None:
    """Draw the score against time and agent steps, on two axes: the mean over seeds and their range, or each
    seed apart. The curves are by label of a line.
    """
    for number, (label, seeds) in enumerate(curves.items()):
        style = looks()[label].line if label in looks() else LINE_STYLES[number % len(LINE_STYLES)]
        line = {"color": color_of(label, number, curves), "linestyle": style, "label": label}
        settled = [curve for curve in map(_settled, seeds) if len(curve["time_s"]) > 1]
        for axis, (column, unit) in zip(axes, AGAINST, strict=True):
            for curve in settled if apart else ():
                axis.plot(curve[column] / unit, curve["rolling_score"], linewidth=0.9, **line)
            if settled and not apart:
                grid, scores = _over_seeds(settled, column)
                area = {"color": line["color"], "alpha": 0.2, "linewidth": 0}
                axis.fill_between(grid / unit, scores.min(axis=0), scores.max(axis=0), **area)
                axis.plot(grid / unit, scores.mean(axis=0), **line)


def _over_seeds(curves: Sequence[Columns], column: str) -> tuple[np.ndarray, np.ndarray]:
    """Return places where all seeds have scores, and the scores there: [places], [seed, places]."""
    start = max(curve[column][0] for curve in curves)
    end = max(start, min(curve[column][-1] for curve in curves))
    far = np.geomspace(max(start, 1e-3), max(end, 1e-3), GRID)
    grid = np.union1d(np.linspace(start, end, GRID), far)
    return grid, np.array([np.interp(grid, curve[column], curve["rolling_score"]) for curve in curves])


def color_of(label: str, number: int, labels: Iterable[str]) -> str:
    """Return the color of a line, by its label and place among the labels in the picture.

    A line that is the only one of its system has the color of the system, with which its label begins. All
    others have colors that no such line has.
    """
    counts = Counter(other.split(",")[0] for other in labels)
    taken = {first: look.color for first, look in looks().items() if counts[first] == 1}
    free = [color for color in COLORS if color not in taken.values()]
    return taken.get(label.split(",")[0], free[number % len(free)])


def _settled(curve: Columns) -> Columns:
    """Return the part of a curve whose rolling score is over ten or more episodes, or all if none is."""
    enough = curve["episodes"] >= 10
    return {name: values[enough] for name, values in curve.items()} if enough.any() else curve

"""Pictures of scores: against time and agent steps, and game by game."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import LogLocator

from ga3c_tf.reproduce.drawing.canvas import (
    COLORS,
    FONT,
    LOOKS,
    NO_SYSTEM,
    canvas,
    handles,
    legend_above,
    save,
    short_number,
)
from ga3c_tf.reproduce.runs.specs import SYSTEMS
from ga3c_tf.runs.curve import Columns
from ga3c_tf.trained.intervals import mean_interval

MARKS = {  # marker and color of each method in Table 3; the marks of the paper are open
    "random": ("o", NO_SYSTEM),
    "human": ("^", NO_SYSTEM),
    "A3C (4 days, CPU)": ("s", LOOKS["a3c"].color),
    "GA3C (1 day, GPU)": ("D", LOOKS["ga3c"].color),
}
GRID = 75
LINE_STYLES = ("-", "--", "-.", ":")
RANDOM_LINE: dict[str, Any] = {"color": NO_SYSTEM, "linewidth": 0.7, "linestyle": ":"}
GOAL_LINE: dict[str, Any] = {"color": "black", "linewidth": 0.7, "linestyle": (0, (6, 3))}
NO_SCORES: Mapping[str, float | None] = MappingProxyType({})
FAR_APART = 10
"""The time axis is logarithmic if the ends of the curves differ by more than this factor."""


def score_panels(
    panels: Sequence[tuple[str, dict, list[float], list[float], list[float]]], stem: Path
) -> None:
    """Draw a small panel for each game, with the paper's scores and ours.

    Args:
        panels: for each game its name, the paper's score by method (None if it has none), our scores of the
            random policy, our score of each seed, and the scores that the interval is computed from: those of
            the seeds, or of the episodes of a single seed.
        stem: path of the picture files, without the suffix.
    """
    figure, axes = canvas(3, 3, 3.9)
    for axis, (name, marks, random, scores, sample) in zip(axes.flat, panels, strict=True):
        for place, (method, value) in enumerate(marks.items()):
            if value is not None:
                marker, color = MARKS[method]
                axis.plot(place, value, marker, color=color, markerfacecolor="none", label=f"{method}, paper")
        if random:
            axis.plot(4, np.mean(random), MARKS["random"][0], color=NO_SYSTEM, label="random, ours")
        shown = [*random, *scores, *(value for value in marks.values() if value is not None)]
        if scores:
            color = LOOKS["ga3c"].color
            if len(sample) > 1:
                low, high = mean_interval(sample)
                shown.append(low)
                axis.vlines(5, low, high, color=color, linewidth=2, alpha=0.5)
            axis.plot(
                [5] * len(scores),
                scores,
                "_",
                color=color,
                markersize=6,
                label="GA3C, ours (seeds; bar: 95 %)",
            )
        axis.set_title(name)
        if min(shown, default=0.0) > 0:
            axis.set_yscale("log")
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
            axis.minorticks_off()
        axis.set_xlim(-0.7, 5.7)
        axis.set_xticks([])
        axis.margins(y=0.15)
        if axis.get_yscale() == "linear":
            axis.yaxis.set_major_locator(plt.MaxNLocator(4))
        axis.yaxis.set_major_formatter(lambda value, _: short_number(value))
    figure.supylabel("score (log axis where all are positive)", fontsize=FONT)
    legend_above(figure, handles(axes.flat), 2)
    save(figure, stem)


def score_curves(
    groups: dict[str, dict[str, list[Columns]]],
    stem: Path,
    random: Mapping[str, float | None] = NO_SCORES,
    reach: Mapping[str, float | None] = NO_SCORES,
    goals: Mapping[str, float] = MappingProxyType({}),
    time_label: str = "time (minutes)",
) -> None:
    """Draw the score against time and against agent steps, as the mean over seeds and their range.

    Where runs end at a score, each run has a line of its own, since a mean would end with the first of them.

    Args:
        groups: curves of the runs, by title of a row of panels and by label of a line.
        stem: path of the picture files, without the suffix.
        random: score of the random policy by title, if it is known.
        reach: score that the axis must include, by title, so that it does not magnify the noise of runs that
            learned nothing.
        goals: score at which the runs end, by title, where there is one.
        time_label: label of the axis of time, which says what the time counts from.
    """
    figure, axes = canvas(len(groups), 2, 0.6 + 1.4 * len(groups), sharey="row")
    for (time, steps), (title, curves) in zip(axes, groups.items(), strict=True):
        draw = draw_runs if title in goals else draw_curves
        draw(time, steps, curves)
        ends = [line.get_xdata()[-1] for line in time.get_lines()]
        draw_random_policy([time, steps], random.get(title))
        if title in goals:
            for axis in (time, steps):
                axis.axhline(goals[title], label="score to reach", **GOAL_LINE)
        least = reach.get(title)
        if least is not None:
            time.set_ylim(top=max(least, time.get_ylim()[1]))
        if ends and max(ends) > FAR_APART * min(ends):
            time.set_xscale("log")
            time.xaxis.set_major_formatter("{x:g}")
        time.set_ylabel(f"{title}\nscore" if title else "score")
    axes[-1, 0].set_xlabel(time_label)
    axes[-1, 1].set_xlabel("agent steps (millions)")
    legend_above(figure, handles(axes.flat), 2)
    save(figure, stem)


def draw_random_policy(axes: Iterable, score: float | None) -> None:
    """Draw a line at the score of the random policy on each axis, if the score is known."""
    if score is not None:
        for axis in axes:
            axis.axhline(score, label="random policy", **RANDOM_LINE)


def draw_curves(time, steps, curves: dict[str, list[Columns]]) -> None:
    """Draw the mean over seeds and their range.

    Args:
        time: axis of the score against time.
        steps: axis of the score against agent steps.
        curves: curves of the seeds by label of a line.
    """
    for number, (label, seeds) in enumerate(curves.items()):
        color = color_of(label, number, curves)
        style = _style_of(label, number)
        for axis, column, unit in ((time, "time_s", 60.0), (steps, "agent_steps", 1e6)):
            drawn = [curve for seed in seeds if len((curve := _settled(seed))[column]) > 1]
            if drawn:
                # The mean is taken only where all seeds have scores.
                start = max(curve[column][0] for curve in drawn)
                end = min(curve[column][-1] for curve in drawn)
                end = max(start, end)
                grid = np.union1d(
                    np.linspace(start, end, GRID), np.geomspace(max(start, 1e-3), max(end, 1e-3), GRID)
                )
                scores = np.array([np.interp(grid, curve[column], curve["rolling_score"]) for curve in drawn])
                axis.fill_between(
                    grid / unit, scores.min(axis=0), scores.max(axis=0), color=color, alpha=0.2, linewidth=0
                )
                axis.plot(grid / unit, scores.mean(axis=0), style, color=color, label=label)


def draw_runs(time, steps, curves: dict[str, list[Columns]]) -> None:
    """Draw a line for each run, with the arguments of `draw_curves`."""
    for number, (label, seeds) in enumerate(curves.items()):
        line = {
            "color": color_of(label, number, curves),
            "linestyle": _style_of(label, number),
            "linewidth": 0.9,
        }
        for curve in map(_settled, seeds):
            if len(curve["time_s"]) > 1:
                time.plot(curve["time_s"] / 60, curve["rolling_score"], label=label, **line)
                steps.plot(curve["agent_steps"] / 1e6, curve["rolling_score"], label=label, **line)


def _style_of(label: str, number: int) -> str:
    styles = {SYSTEMS[system]: look.line for system, look in LOOKS.items()}
    return styles.get(label, LINE_STYLES[number % len(LINE_STYLES)])


def color_of(label: str, number: int, labels: Iterable[str]) -> str:
    """Return the color of a line.

    A line that is the only one of its system has the color of the system. All others have colors that no such
    line has.

    Args:
        label: label of the line, which begins with its system if it has one, followed by a comma or nothing.
        number: place of the line in the picture, from 0.
        labels: labels of all lines in the picture.
    """
    systems = {SYSTEMS[system]: look.color for system, look in LOOKS.items()}
    counts = Counter(other.split(",")[0] for other in labels)
    taken = {first: color for first, color in systems.items() if counts[first] == 1}
    free = [color for color in COLORS if color not in taken.values()]
    return taken.get(label.split(",")[0], free[number % len(free)])


def _settled(curve: Columns) -> Columns:
    """Return the part of a curve whose rolling score is over ten or more episodes, or all if none is."""
    enough = curve["episodes"] >= 10
    return {name: values[enough] for name, values in curve.items()} if enough.any() else curve

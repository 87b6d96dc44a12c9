"""Pictures of policy lag and its effect on learning."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ga3c_tf.reproduce.drawing.canvas import COLORS, canvas, handles, legend_above, save
from ga3c_tf.reproduce.drawing.score_plots import Panel, color_of, draw_rows
from ga3c_tf.reproduce.runs.run import RecordedRun

SHOWN = (0.0, 1.5)
"""Lowest and highest share of the gain that is shown; shares outside this range are drawn at its edge."""
MARKERS = "os^DvP"


def lag_picture(rates: dict[str, dict[str, list[RecordedRun]]], random: float | None, stem: Path) -> None:
    """Draw learning curves against time and agent steps, a row for each learning rate, and the measured lag
    below. The runs are by learning rate in words, and by setting.
    """
    figure, axes = canvas(len(rates) + 1, 2, 1.0 + 1.35 * (len(rates) + 1))
    curves = {
        title: {name: [run.curve for run in runs] for name, runs in by_setting.items()}
        for title, by_setting in rates.items()
    }
    draw_rows(axes[:-1], [Panel(title, of_lines, random) for title, of_lines in curves.items()])
    for time, steps in axes[:-1]:
        steps.sharey(time)
        steps.tick_params(labelleft=False)
    boxes = figure.add_subplot(axes[-1, 0].get_gridspec()[-1, :])
    for axis in axes[-1]:
        axis.remove()
    settings = list(next(iter(rates.values())))
    for place, name in enumerate(settings):
        runs = [run for by_setting in rates.values() for run in by_setting.get(name, [])]
        _lag_box(boxes, place, runs, color_of(name, place, settings))
    boxes.set_yticks(range(len(settings)), settings)
    boxes.set_ylim(len(settings) - 0.5, -0.5)
    boxes.set_xscale("symlog", linthresh=1.0)
    boxes.xaxis.set_major_formatter("{x:g}")
    boxes.set_xlabel(
        "policy lag (updates): spread of windows' means,\n$\\diamond$ median of their 95th percentiles"
    )
    legend_above(figure, handles(axes[:-1].flat), 3)
    save(figure, stem)


def _lag_box(axis, place: int, runs: list[RecordedRun], color: str) -> None:
    """Draw the distribution of the lag of a setting over the windows of metrics.csv, without the first tenth.

    The box is from the first to the third quartile of the windows' means, with whiskers from the 5th to the
    95th percentile and a bar at the median. A diamond marks the median of the windows' 95th percentiles.
    """
    means, tails = (_late(runs, column) for column in ("policy_lag_mean", "policy_lag_p95"))
    if not len(means):
        return
    low, first, middle, third, high = np.percentile(means, [5, 25, 50, 75, 95])
    axis.hlines(place, low, high, color=color, linewidth=0.8)
    axis.hlines(place, first, third, color=color, linewidth=5, alpha=0.6)
    axis.plot(middle, place, "|", color="black", markersize=6)
    axis.plot(np.median(tails), place, "D", color=color, markersize=3)


def _late(runs: list[RecordedRun], column: str) -> np.ndarray:
    parts = [run.metrics[column][run.metrics["time_s"] > 0.1 * run.metrics["time_s"][-1]] for run in runs]
    values = np.concatenate([np.empty(0), *parts])
    return values[np.isfinite(values)]


def boundaries(
    points: dict[str, dict[tuple[int, float], list[tuple[int, float]]]], limit: float, stem: Path
) -> None:
    """Draw the share of the gain against learning rate times lag, a row for each optimizer.

    The first column has the lag in updates, the second one in states. Lines join the means over the seeds. If
    the lines of all batch sizes and learning rates coincide in a column, that kind of lag decides. The points
    of each run, lag in updates and share, are by optimizer and by batch size (states) and learning rate.
    Below the limit, learning counts as stopped.
    """
    figure, axes = canvas(len(points), 2, 0.9 + 1.5 * len(points), sharey=True)
    for row, (optimizer, by_setting) in zip(axes, points.items(), strict=True):
        for number, ((batch, rate), runs) in enumerate(sorted(by_setting.items())):
            lags, shares = np.array(runs).T
            distinct = np.unique(lags)
            means = [shares[lags == lag].mean() for lag in distinct]
            style = {"color": COLORS[number], "markersize": 2.5, "label": f"batch {batch}, rate {rate:g}"}
            for axis, unit in zip(row, (rate, rate * batch), strict=True):
                axis.plot(unit * lags, np.clip(shares, *SHOWN), MARKERS[number], alpha=0.5, **style)
                axis.plot(unit * distinct, np.clip(means, *SHOWN), color=COLORS[number], linewidth=0.8)
        row[0].set_ylabel(f"{optimizer}\nshare of the gain")
        for axis in row:
            axis.axhline(limit, color="black", linewidth=0.5)
            axis.set_xscale("log")
            axis.set_ylim(SHOWN[0] - 0.05, SHOWN[1] + 0.05)
    axes[-1, 0].set_xlabel("learning rate x lag (updates)")
    axes[-1, 1].set_xlabel("learning rate x lag (states)")
    legend_above(figure, handles(axes.flat), 2)
    save(figure, stem)


def shares_kept(shares: pd.DataFrame, stem: Path) -> None:
    """Draw the mean share of the gain that is left, as numbers on colors: corrections by lags."""
    figure, [[axis]] = canvas(1, 1, 0.8 + 0.22 * len(shares))
    numbers = shares.to_numpy(float)
    axis.imshow(np.clip(numbers, 0, 1), cmap="Blues", vmin=0, vmax=1.4, aspect="auto")
    for row, column in np.argwhere(np.isfinite(numbers)):
        axis.text(column, row, f"{100 * numbers[row, column]:.0f}", ha="center", va="center")
    axis.set_xticks(range(shares.shape[1]), shares.columns)
    axis.set_yticks(range(len(shares)), shares.index)
    axis.set_xlabel("policy lag (updates); percent of the gain without lag")
    save(figure, stem)

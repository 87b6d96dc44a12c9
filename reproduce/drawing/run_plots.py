"""Curves of run folders, drawn by `ga3c-tf plot`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.drawing.canvas import COLORS, legend_over, pyplot
from ga3c_tf.reproduce.drawing.score_plots import draw_curves
from ga3c_tf.runs.csv_rows import ADJUSTMENT_COLUMNS, EPISODE_COLUMNS, METRIC_COLUMNS, read_columns
from ga3c_tf.runs.curve import Columns, curve_of, read_curve
from ga3c_tf.runs.folder import read_config

MOST_POINTS = 500
Lines = dict[str, tuple[Any, str]]
"""Line style and legend text of each column of metrics.csv."""
LAG: Lines = {
    "policy_lag_mean": ("-", "mean"),
    "policy_lag_p95": (":", "95th percentile"),
    "version_spread": ("--", "spread in a segment"),
    "bootstrap_lag": ("-.", "bootstrap value"),
}
BATCHES: Lines = {
    "prediction_batch": ("-", "prediction batch (states)"),
    "training_batch": ("--", "training batch (states)"),
}
QUEUE: Lines = {"training_queue": (":", "training queue (segments, right)")}
DISTANCES: Lines = {
    "kl": ("-", "KL divergence (nats)"),
    "k3": ((0, (5, 1)), "KL divergence by K3 (nats)"),
    "total_variation": (":", "total variation"),
    "chi_squared": ("--", "chi squared"),
    "m2": ("-.", "second moment of log-ratios"),
}
SHARES: Lines = {
    "effective_sample_size": ("-", "effective sample size"),
    "clipped": ("--", "clipped ratios"),
    "floored": (":", "floored logarithms"),
    "masked": ("-.", "masked steps"),
}
PANELS: tuple[tuple[str, Lines], ...] = (
    ("PPS (predictions/s)", {"pps": ("-", "")}),
    ("TPS (updates/s)", {"tps": ("-", "")}),
    ("policy lag (updates)", LAG),
    ("mean batch (states)", BATCHES),
    ("policy lag as divergence", DISTANCES),
    ("share", SHARES),
)
"""Name of the vertical axis and lines of each panel against time, after the two of the score."""
WORKERS: Lines = {
    "agents": ("-", "agents"),
    "predictors": ("--", "predictors"),
    "trainers": (":", "trainers"),
}


def plot_runs(runs: list[Path], file: Path) -> None:
    """Draw score (against time and agent steps), PPS, TPS, policy lag, queues and divergence of `runs` into
    `file`.

    If a run was adjusted dynamically, another row of panels shows its numbers of workers, including those
    only tried, and the rate of each period.

    Raises:
        UserError: a folder is not a run folder or has no rows in metrics.csv yet, or `file` cannot be
            written.
    """
    for run in runs:
        read_config(run)  # refuses what is no run folder
    adjusted = any(len(_periods(run)["time_s"]) for run in runs)
    with pyplot().rc_context({"text.usetex": False}):  # a run may be called what is no TeX
        _plot(runs, file, adjusted)


def plot_over_seeds(runs: list[Path], file: Path) -> None:
    """Draw the rolling score of `runs` against time and agent steps: the mean over seeds and their range.

    Runs whose settings differ in the seed alone are a line, with the name of the first.

    Raises:
        UserError: as for `plot_runs`, or a run has fewer than two episodes.
    """
    by_settings: dict[str, list[Path]] = {}
    for run in runs:
        settings = read_config(run).replace(seed=0, run_dir=None).to_json()
        by_settings.setdefault(settings, []).append(run)
    lines = {}
    for first, *others in by_settings.values():
        name = f"{first} and {len(others)} more" if others else str(first)
        lines[name] = [_curve(run) for run in (first, *others)]
    with pyplot().rc_context({"text.usetex": False}):
        figure, axes = pyplot().subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
        try:
            draw_curves(axes, lines)
            for axis, name in zip(axes, ("time (minutes)", "agent steps (millions)"), strict=True):
                axis.set(xlabel=name, ylabel="score")
                axis.spines[["top", "right"]].set_visible(False)
            _add_legend(axes[0], {line.get_label(): line for line in axes[0].lines})
            _save(figure, file)
        finally:
            pyplot().close(figure)


def _curve(run: Path) -> Columns:
    """Return the learning curve of a run folder, or of the record of a run, which has no episodes."""
    curve = curve_of(run, read_config(run).rolling_episodes)
    curve = curve if len(curve["time_s"]) else read_curve(run)
    if len(curve["time_s"]) < 2:
        raise UserError(f"{run} has fewer than two episodes yet; leave it out")
    return curve


def _plot(runs: list[Path], file: Path, adjusted: bool) -> None:
    figure, axes = pyplot().subplots(4 + adjusted, 2, figsize=(9, 12 + 3 * adjusted), layout="constrained")
    queue = axes[2, 1].twinx()  # segments beside states, which may be a hundred times as many
    names: dict[str, Any] = {}
    try:
        for number, run in enumerate(runs):
            color = COLORS[number % len(COLORS)]
            alike = [other for other in runs if other.name == run.name]
            name = run.name if len(alike) == 1 else str(run)
            if not _draw(axes, queue, run, color):
                name = f"{name} (no episode yet)"
            names[name] = pyplot().Line2D([], [], color=color)
        _label(axes, queue)
        if len(runs) > 1:
            _add_legend(axes[0, 0], names)
        else:
            figure.suptitle(f"{read_config(runs[0]).env_id}, {runs[0].name}", parse_math=False)
        _save(figure, file)
    finally:
        pyplot().close(figure)


def _add_legend(axis, lines: dict[str, Any]) -> None:
    """Add a legend with names as they are, which are no TeX."""
    legend = axis.legend([*lines.values()], [""] * len(lines), frameon=False, fontsize="small")
    for text, name in zip(legend.get_texts(), lines, strict=True):
        # Set later: a label that begins with _ would be left out.
        text.set(text=name, parse_math=False)


def _save(figure, file: Path) -> None:
    """Write the picture.

    Raises:
        UserError: it cannot be written, or not in the format of the suffix.
    """
    if not file.suffix:
        raise UserError(f"{file} has no suffix: name a .png, .svg or .pdf")
    try:
        figure.savefig(file, dpi=150)
    except (OSError, ValueError) as error:
        raise UserError(f"cannot write {file}: {error}") from None


def _label(axes, queue) -> None:
    """Name the axes and add the legends of all panels but those of score and rates."""
    names = (
        "score",
        "score",
        *(name for name, _ in PANELS),
        ", ".join(WORKERS),
        "trained samples/s of a period",
    )
    for axis, name in zip(axes.flat, names, strict=False):
        axis.set(xlabel="time (minutes)", ylabel=name)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0, 1].set_xlabel("agent steps (millions)")
    queue.set_ylabel("training queue (segments)")
    queue.spines["top"].set_visible(False)
    for axis in (*axes[1:3].flat, queue, *axes[4:, 1:].flat):
        axis.set_ylim(bottom=0)
    axes[3, 1].set_ylim(-0.02, 1.02)
    for workers in axes[4:, 0]:
        workers.set_yscale("log", base=2)
        workers.yaxis.set_major_formatter("{x:g}")
    for axis in axes[2:].flat:  # before the first update, some have nothing to tell
        legend_over(axis, [axis, queue] if axis is axes[2, 1] else [axis], frameon=False, fontsize="small")


def _draw(axes, queue, run: Path, color: str) -> bool:
    """Draw a run in all panels; return whether it has a curve in the first.

    Every run labels its lines: the legends have each label once, and a run may lack a line that another has.
    """
    metrics = read_columns(run / "metrics.csv", METRIC_COLUMNS)
    if not len(metrics["time_s"]):
        raise UserError(f"{run} has no rows in metrics.csv yet")
    has_curve = _draw_scores(axes[0], run, color)
    minutes = metrics["time_s"] / 60
    panels = zip((*axes.flat[2:8], queue), (*(lines for _, lines in PANELS), QUEUE), strict=True)
    for axis, lines in panels:
        for name, (style, words) in lines.items():
            if np.isfinite(metrics[name]).any():
                _line(axis, minutes, metrics[name], color=color, linestyle=style, label=words)
    for workers, rates in axes[4:]:
        _draw_adjustment(workers, rates, metrics, _periods(run), color)
    return has_curve


def _draw_scores(axes, run: Path, color: str) -> bool:
    """Draw the score of each episode and its rolling mean; return whether there is a curve."""
    episodes = read_columns(run / "episodes.csv", EPISODE_COLUMNS)
    scores = episodes["score"]
    curve = read_curve(run)  # a record of a run has no episodes
    if len(scores):
        rolling = pd.Series(scores).rolling(read_config(run).rolling_episodes, min_periods=1).mean()
        curve = {**episodes, "rolling_score": rolling.to_numpy()}
    alpha = min(0.3, max(0.02, 1000 / max(1, len(scores))))
    points = {"color": color, "alpha": alpha, "markersize": 2, "rasterized": True}
    for axis, name, unit in zip(axes, ("time_s", "agent_steps"), (60, 1e6), strict=True):
        axis.plot(episodes[name] / unit, scores, ".", **points)
        _line(axis, curve[name] / unit, curve["rolling_score"], color=color)
    return len(curve["rolling_score"]) > 0


def _draw_adjustment(workers, rates, metrics, periods, color: str) -> None:
    """Draw the workers at each row of metrics.csv, and the rate of each period."""
    minutes = metrics["time_s"] / 60
    for name, (style, words) in WORKERS.items():
        workers.step(minutes, metrics[name], color=color, linestyle=style, linewidth=1, label=words)
    accepted = periods["accepted"] == 1
    for chosen, fill, label in ((accepted, color, "accepted"), (~accepted, "none", "rejected")):
        if chosen.any():
            mark: dict[str, Any] = {"color": color, "markerfacecolor": fill, "markersize": 4}
            points = periods["time_s"][chosen] / 60, periods["rate"][chosen]
            rates.plot(*points, "o", **mark, label=f"{label} setting")


def _periods(run: Path) -> Columns:
    """Return the columns of adjustment.csv."""
    return read_columns(run / "adjustment.csv", ADJUSTMENT_COLUMNS)


def _line(axis, x: np.ndarray, y: np.ndarray, **style) -> None:
    """Draw y against x. More than `MOST_POINTS` points are replaced by the means of groups of neighbors."""
    if len(x):
        width = -(-len(x) // MOST_POINTS)
        starts = np.arange(0, len(x), width)
        counts = np.diff(np.append(starts, len(x)))
        axis.plot(*(np.add.reduceat(values, starts) / counts for values in (x, y)), **style)

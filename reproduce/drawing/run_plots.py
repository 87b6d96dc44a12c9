"""Curves of run folders, drawn by `ga3c-tf plot`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.lines import Line2D

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.drawing.canvas import COLORS, handles
from ga3c_tf.runs.curve import read_curve
from ga3c_tf.runs.folder import read_config
from ga3c_tf.runs.log import ADJUSTMENT_COLUMNS, EPISODE_COLUMNS, METRIC_COLUMNS, read_columns

MOST_POINTS = 500
Lines = dict[str, tuple[str, str]]
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
DISTANCES: Lines = {"kl": ("-", "KL divergence (nats)"), "total_variation": (":", "total variation")}
SHARES: Lines = {
    "effective_sample_size": ("-", "effective sample size"),
    "clipped": ("--", "clipped ratios"),
    "floored": (":", "floored logarithms"),
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
    if not file.suffix:
        raise UserError(f"{file} has no suffix: name a .png, .svg or .pdf")
    for run in runs:
        read_config(run)  # refuses what is no run folder
    adjusted = any(len(_adjustment(run)["time_s"]) for run in runs)
    with matplotlib.rc_context({"text.usetex": False}):  # a run may be called what is no TeX
        _plot(runs, file, adjusted)


def _plot(runs: list[Path], file: Path, adjusted: bool) -> None:
    figure, axes = plt.subplots(4 + adjusted, 2, figsize=(9, 12 + 3 * adjusted), layout="constrained")
    queue = axes[2, 1].twinx()  # segments beside states, which may be a hundred times as many
    names: dict[str, Line2D] = {}
    try:
        for number, run in enumerate(runs):
            color = COLORS[number % len(COLORS)]
            drawn = _draw(axes, queue, run, color)
            if len(runs) > 1:
                names[run.name if drawn else f"{run.name} (no episode yet)"] = Line2D([], [], color=color)
        _label(axes, queue, adjusted)
        if names:
            legend = axes[0, 0].legend([*names.values()], [""] * len(names), frameon=False, fontsize="small")
            for text, name in zip(legend.get_texts(), names, strict=True):
                # Set later: a label that begins with _ would be left out.
                text.set(text=name, parse_math=False)
        else:
            figure.suptitle(f"{read_config(runs[0]).env_id}, {runs[0].name}", parse_math=False)
        _save(figure, file)
    finally:
        plt.close(figure)


def _save(figure: plt.Figure, file: Path) -> None:
    """Write the picture.

    Raises:
        UserError: it cannot be written, or not in the format of the suffix.
    """
    try:
        figure.savefig(file, dpi=150)
    except (OSError, ValueError) as error:
        raise UserError(f"cannot write {file}: {error}") from None


def _label(axes, queue, adjusted: bool) -> None:
    """Name the axes and add the legends of all panels but the first."""
    (time, steps), (pps, tps), (lag, batches), (distance, shares) = axes[:4]
    for axis in (time, steps):
        axis.set_ylabel("score")
    for axis in (time, pps, tps, lag, batches, distance, shares):
        axis.set_xlabel("time (minutes)")
    steps.set_xlabel("agent steps (millions)")
    pps.set_ylabel("PPS (predictions/s)")
    tps.set_ylabel("TPS (updates/s)")
    lag.set_ylabel("policy lag (updates)")
    batches.set_ylabel("mean batch (states)")
    queue.set_ylabel("training queue (segments)")
    distance.set_ylabel("policy lag as divergence")
    shares.set_ylabel("share")
    shares.set_ylim(-0.02, 1.02)
    for axis in (pps, tps, lag, batches, queue):
        axis.set_ylim(bottom=0)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    queue.spines["top"].set_visible(False)
    if adjusted:
        _label_adjustment(*axes[4])
    for axis in (lag, batches, distance, shares, *axes[4:].flat):
        labelled = handles([axis, queue] if axis is batches else [axis])
        if labelled:  # none before the first update
            place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 3}
            axis.legend(labelled.values(), labelled.keys(), frameon=False, fontsize="small", **place)


def _draw(axes, queue, run: Path, color: str) -> bool:
    """Draw a run in all panels; return whether it has a curve in the first.

    Every run labels its lines: the legends have each label once, and a run may lack a line that another has.
    """
    rolling = read_config(run).rolling_episodes
    episodes = read_columns(run / "episodes.csv", EPISODE_COLUMNS)
    metrics = read_columns(run / "metrics.csv", METRIC_COLUMNS)
    if not len(metrics["time_s"]):
        raise UserError(f"{run} has no rows in metrics.csv yet")
    (time, steps), (pps, tps), (lag, batches), (distance, shares) = axes[:4]
    alpha = min(0.3, max(0.02, 1000 / max(1, len(episodes["score"]))))
    points = {"color": color, "alpha": alpha, "markersize": 2, "rasterized": True}
    curve = read_curve(run)  # a record of a run has no episodes
    if len(episodes["score"]):
        curve = {**episodes, "rolling_score": _rolling_mean(episodes["score"], rolling)}
    for axis, name, unit in ((time, "time_s", 60), (steps, "agent_steps", 1e6)):
        axis.plot(episodes[name] / unit, episodes["score"], ".", **points)
        _line(axis, curve[name] / unit, curve["rolling_score"], color=color)
    minutes = metrics["time_s"] / 60
    _line(pps, minutes, metrics["pps"], color=color)
    _line(tps, minutes, metrics["tps"], color=color)
    panels = ((lag, LAG), (batches, BATCHES), (queue, QUEUE), (distance, DISTANCES), (shares, SHARES))
    for axis, lines in panels:
        for name, (style, words) in lines.items():
            if np.isfinite(metrics[name]).any():
                _line(axis, minutes, metrics[name], color=color, linestyle=style, label=words)
    if len(axes) > 4:
        workers, rates = axes[4]
        _draw_adjustment(workers, rates, metrics, _adjustment(run), color)
    return len(curve["rolling_score"]) > 0


def _draw_adjustment(workers, rates, metrics, periods, color: str) -> None:
    """Draw the workers at each row of metrics.csv, and the rate of each period."""
    for name, style in (("agents", "-"), ("predictors", "--"), ("trainers", ":")):
        workers.step(
            metrics["time_s"] / 60, metrics[name], color=color, linestyle=style, linewidth=1, label=name
        )
    accepted = periods["accepted"] == 1
    for chosen, fill, label in ((accepted, color, "accepted"), (~accepted, "none", "rejected")):
        if not chosen.any():
            continue
        minutes = periods["time_s"][chosen] / 60
        rate = periods["rate"][chosen]
        rates.plot(
            minutes, rate, "o", color=color, markerfacecolor=fill, markersize=4, label=f"{label} setting"
        )


def _label_adjustment(workers, rates) -> None:
    workers.set_yscale("log", base=2)
    workers.yaxis.set_major_formatter("{x:g}")
    workers.set_ylabel("agents, predictors, trainers")
    rates.set_ylabel("trained samples/s of a period")
    rates.set_ylim(bottom=0)
    for axis in (workers, rates):
        axis.set_xlabel("time (minutes)")


def _adjustment(run: Path) -> dict[str, np.ndarray]:
    """Return the columns of adjustment.csv that are drawn."""
    columns = read_columns(run / "adjustment.csv", ADJUSTMENT_COLUMNS)
    return {name: columns[name] for name in ("time_s", "rate", "accepted")}


def _line(axis, x: np.ndarray, y: np.ndarray, **style) -> None:
    """Draw y against x. More than `MOST_POINTS` points are replaced by the means of groups of neighbors."""
    if not len(x):
        return
    width = -(-len(x) // MOST_POINTS)
    starts = np.arange(0, len(x), width)
    axis.plot(
        *(np.add.reduceat(values, starts) / np.diff(np.append(starts, len(x))) for values in (x, y)), **style
    )


def _rolling_mean(values: np.ndarray, width: int) -> np.ndarray:
    """Return the mean of the last `width` values at each point, or of fewer at the start."""
    sums = np.concatenate([[0.0], values.cumsum()])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(0, ends - width)
    return (sums[ends] - sums[starts]) / (ends - starts)

"""Pictures of policy lag and its effect on learning."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ga3c_tf.reproduce.drawing.canvas import COLORS, canvas, handles, legend_above, save
from ga3c_tf.reproduce.drawing.score_plots import color_of, draw_curves, draw_random_policy
from ga3c_tf.reproduce.runs.run import RecordedRun

SHOWN = (0.0, 1.5)
"""Lowest and highest share of the gain that is shown; shares outside this range are drawn at its edge."""
MARKERS = ("o", "s", "^", "D", "v", "P")
OFFSET = 0.09
"""Distance between marks at one lag, so their bars do not overlap; 1 is the distance between two lags."""


def lag_picture(rates: dict[str, dict[str, list[RecordedRun]]], random: float | None, stem: Path) -> None:
    """Draw learning curves against time and agent steps, a row for each learning rate, and the measured lag
    below.

    The lag of a setting is drawn as its distribution over the windows of metrics.csv: a box from the first to
    the third quartile of the windows' means, with whiskers from the 5th to the 95th percentile and a bar at
    the median. A diamond marks the median of the windows' 95th percentiles.

    Args:
        rates: runs by learning rate in words, and by setting.
        random: score of the random policy; None if it is unknown.
        stem: path of the picture files, without the suffix.
    """
    figure, axes = canvas(len(rates) + 1, 2, 1.0 + 1.35 * (len(rates) + 1))
    for (time, steps), (title, by_setting) in zip(axes, rates.items(), strict=False):
        draw_curves(time, steps, {name: [run.curve for run in runs] for name, runs in by_setting.items()})
        draw_random_policy([time, steps], random)
        steps.sharey(time)
        steps.tick_params(labelleft=False)
        time.set_ylabel(f"{title}\nscore")
    axes[-2, 0].set_xlabel("time (minutes)")
    axes[-2, 1].set_xlabel("agent steps (millions)")
    boxes = figure.add_subplot(axes[-1, 0].get_gridspec()[-1, :])
    for axis in axes[-1]:
        axis.remove()
    # The last row shows the lag of each setting, over all rates together. A run's first tenth is left out.
    settings = next(iter(rates.values()))
    runs_of = {name: [run for curves in rates.values() for run in curves.get(name, [])] for name in settings}
    for place, (name, runs) in enumerate(runs_of.items()):
        rows = [(run, run.metrics["time_s"] > 0.1 * run.metrics["time_s"][-1]) for run in runs]
        means = np.concatenate([np.empty(0), *(run.metrics["policy_lag_mean"][late] for run, late in rows)])
        tails = np.concatenate([np.empty(0), *(run.metrics["policy_lag_p95"][late] for run, late in rows)])
        means = means[np.isfinite(means)]
        tails = tails[np.isfinite(tails)]
        if len(means):
            color = color_of(name, place, settings)
            low, first, middle, third, high = np.percentile(means, [5, 25, 50, 75, 95])
            boxes.plot([low, high], [place, place], color=color, linewidth=0.8)
            boxes.plot(
                [first, third], [place, place], color=color, linewidth=5, solid_capstyle="butt", alpha=0.6
            )
            boxes.plot(middle, place, "|", color="black", markersize=6)
            boxes.plot(np.median(tails), place, "D", color=color, markersize=3)
    boxes.set_yticks(range(len(settings)), list(settings))
    boxes.set_ylim(len(settings) - 0.5, -0.5)
    boxes.set_xscale("symlog", linthresh=1.0)
    boxes.margins(x=0.05)
    boxes.set_xlabel(
        "policy lag (updates): spread of windows' means,\n$\\diamond$ median of their 95th percentiles"
    )
    boxes.xaxis.set_major_formatter("{x:g}")
    legend_above(figure, handles(axes[:-1].flat), 3)
    save(figure, stem)


def scores_by_lag(lines: dict[str, dict[str, list[float]]], random: float | None, stem: Path) -> None:
    """Draw the mean score and the range of the seeds at each lag, with a different mark for each correction.

    Args:
        lines: scores of the seeds, by correction and by lag in words.
        random: score of the random policy; None if it is unknown.
        stem: path of the picture files, without the suffix.
    """
    figure, [[axis]] = canvas(1, 1, 2.6)
    settings = list(next(iter(lines.values())))
    for number, (name, by_setting) in enumerate(lines.items()):
        color = COLORS[number % len(COLORS)]
        measured = [
            (place, by_setting[setting]) for place, setting in enumerate(settings) if by_setting[setting]
        ]
        places = [place + OFFSET * (number - len(lines) / 2) for place, _ in measured]
        axis.plot(places, [np.mean(seeds) for _, seeds in measured], MARKERS[number], color=color, label=name)
        for place, (_, seeds) in zip(places, measured, strict=True):
            axis.vlines(place, min(seeds), max(seeds), color=color, linewidth=0.8)
    draw_random_policy([axis], random)
    axis.set_xticks(range(len(settings)), settings)
    scores = [score for by_setting in lines.values() for seeds in by_setting.values() for score in seeds]
    if min(scores, default=0.0) >= 0:
        axis.set_ylim(bottom=0)
    axis.set_ylabel("mean score (bars: range of seeds)")
    legend_above(figure, handles([axis]), 3)
    save(figure, stem)


def boundaries(
    points: dict[str, dict[tuple[int, float], list[tuple[int, float]]]], limit: float, stem: Path
) -> None:
    """Draw the share of the gain against learning rate times lag, a row for each optimizer.

    The first column has the lag in updates, the second one in states. Lines join the means over the seeds. If
    the lines of all batch sizes and learning rates coincide in a column, that kind of lag decides.

    Args:
        points: lag in updates and share of the gain of each run, by optimizer and by batch size (states) and
            learning rate.
        limit: share of the gain below which learning counts as stopped.
        stem: path of the picture files, without the suffix.
    """
    figure, axes = canvas(len(points), 2, 0.9 + 1.5 * len(points), sharey=True)
    for row, (optimizer, by_setting) in zip(axes, points.items(), strict=True):
        for number, ((batch, rate), runs) in enumerate(sorted(by_setting.items())):
            lags, shares = np.array(runs).T
            distinct = np.unique(lags)
            means = [shares[lags == lag].mean() for lag in distinct]
            style = {"color": COLORS[number], "markersize": 2.5, "label": f"batch {batch}, rate {rate:g}"}
            for axis, states in zip(row, (1, batch), strict=True):
                axis.plot(rate * lags * states, np.clip(shares, *SHOWN), MARKERS[number], alpha=0.5, **style)
                axis.plot(
                    rate * distinct * states, np.clip(means, *SHOWN), color=COLORS[number], linewidth=0.8
                )
        row[0].set_ylabel(f"{optimizer}\nshare of the gain")
        for axis in row:
            axis.axhline(limit, color="black", linewidth=0.5)
            axis.set_xscale("log")
            axis.set_ylim(SHOWN[0] - 0.05, SHOWN[1] + 0.05)
    axes[-1, 0].set_xlabel("learning rate x lag (updates)")
    axes[-1, 1].set_xlabel("learning rate x lag (states)")
    legend_above(figure, handles(axes.flat), 2)
    save(figure, stem)

"""Pictures of throughput: predictions and updates per second, queues, utilization and dynamic adjustment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ga3c_tf.reproduce.drawing.canvas import (
    COLORS,
    LOOKS,
    canvas,
    handles,
    legend_above,
    legend_over,
    log_scale,
    looks,
    marks,
    save,
)
from ga3c_tf.reproduce.runs.run import RecordedRun

Groups = Mapping[str, Mapping[str, list[float]]]
"""Values of the seeds, by name of a mark and by place on the axis."""
Settings = Mapping[Any, float]
"""Values by setting: N_A, N_P, N_T and what else tells settings apart."""


def speed_points(speeds: Groups, ratios: Groups, stem: Path) -> None:
    """Draw the mean PPS of each system and the range of the seeds on a log axis, and in a panel above the
    speed-ups GA3C / A3C by their source, ours and the paper's.
    """
    figure, [[ratio], [axis]] = canvas(2, 1, 3.0, sharex=True, height_ratios=(2, 3))
    shown = {name: look for name, look in looks().items() if name in speeds}
    colors, markers, _ = zip(*shown.values(), strict=True)
    marks(axis, {name: speeds[name] for name in shown}, colors, markers, 0.27, True)
    marks(ratio, ratios, [LOOKS["ga3c"].color] * 2, "oD", 0.2, True)
    ratio.axhline(1, color="#BBBBBB", linewidth=0.6, zorder=0)
    ratio.set_ylabel("GA3C / A3C")
    axis.set_ylabel("PPS (predictions/s), ours\n(lines: range of seeds)")
    for panel in (ratio, axis):
        panel.margins(y=0.3)
        log_scale(panel)
        legend_over(panel, [panel])
    save(figure, stem)


def normalized_tps(panels: Mapping[str, Settings], labelled: int, stem: Path) -> None:
    """Draw the TPS of every setting as a share of the best, by N_A, in panels by their titles.

    For each N_A, so many of the fastest settings are labelled.
    """
    figure, [axes] = canvas(1, max(1, len(panels)), 2.3, sharey=True)
    for axis, (title, tps) in zip(axes, panels.items(), strict=False):
        best = max(tps.values(), default=1.0) or 1.0
        agents = sorted({setting[0] for setting in tps})
        for place, number in enumerate(agents):
            alike = [setting for setting in tps if setting[0] == number]
            order = sorted(alike, key=lambda setting: -tps[setting])
            shares = [tps[setting] / best for setting in order]
            axis.plot([place] * len(order), shares, ".", color="#999999")
            axis.plot([place] * len(order[:labelled]), shares[:labelled], "o", color=COLORS[0])
            names = "\n".join(f"{setting[1]}/{setting[2]}" for setting in order[:labelled])
            axis.annotate(names, (place + 0.15, shares[0]), va="top", fontsize=6)
        axis.set_title(title)
        axis.set_xlim(-0.5, len(agents) - 0.2)
        axis.set_ylim(0, 1.05)
        axis.set_xticks(range(len(agents)), map(str, agents))
        axis.set_xlabel("agents, $N_A$")
    axes[0].set_ylabel("TPS / best TPS\n(named: $N_P$/$N_T$ of the fastest)")
    save(figure, stem)


def against_speed(rows: Mapping[str, Settings], quantities: Mapping[str, Settings], stem: Path) -> None:
    """Draw each quantity of each setting against its TPS, colored by N_A, with a panel for each quantity and
    a row for each title.
    """
    figure, axes = canvas(max(1, len(rows)), len(quantities), 0.4 + 1.5 * max(1, len(rows)), sharex="row")
    agents = sorted({setting[0] for speed in rows.values() for setting in speed})
    for row, (title, speed) in zip(axes, rows.items(), strict=False):
        for axis, (name, values) in zip(row, quantities.items(), strict=True):
            for number, count in enumerate(agents):
                settings = [setting for setting in speed if setting[0] == count and setting in values]
                points = [[of[setting] for setting in settings] for of in (speed, values)]
                axis.plot(
                    *points,
                    "os^Dv"[number % 5],
                    color=COLORS[number % len(COLORS)],
                    markerfacecolor="none",
                    clip_on=False,  # a queue can be full
                    label=f"$N_A$ = {count}",
                )
            axis.set_title(title)
            axis.set_ylabel(name)
            axis.set_xlabel("TPS (updates/s)")
            axis.margins(0.1)
            axis.set_ylim(bottom=0)
    legend_above(figure, handles(axes.flat), 4)
    save(figure, stem)


def adjustment_courses(runs: list[RecordedRun], stem: Path) -> None:
    """Draw the accepted numbers of workers and the TPS over time, a column per game, a line per seed."""
    games = list(dict.fromkeys(run.spec.game for run in runs)) or [""]
    figure, axes = canvas(2, len(games), 2.6, sharex=True)
    for run in runs:
        workers, rates = axes[:, games.index(run.spec.game)]
        _course(workers, rates, run)
    for (workers, rates), game in zip(axes.T, games, strict=True):
        workers.set_title(game.replace("_", " "))
        workers.set_yscale("log", base=2)
        workers.yaxis.set_major_formatter("{x:g}")
        rates.set_xlabel("time (minutes)")
        rates.set_ylim(bottom=0)
    axes[0, 0].set_ylabel("workers (accepted)")
    axes[1, 0].set_ylabel("TPS (updates/s)")
    legend_above(figure, handles(axes.flat), 5)
    save(figure, stem)


def _course(workers, rates, run: RecordedRun) -> None:
    """Draw one run: the numbers of workers until the next change, and the TPS with its mean over periods."""
    rows = run.adjustment
    metrics = run.metrics
    accepted = rows["accepted"] == 1
    ends = rows["time_s"][accepted]
    rates.plot(metrics["time_s"] / 60, metrics["tps"], color="#AAAAAA", linewidth=0.7, label="TPS")
    if not len(ends):
        return
    names = {"agents": "$N_A$", "predictors": "$N_P$", "trainers": "$N_T$"}
    until = np.append(ends, metrics["time_s"][-1]) / 60
    for (name, words), color, line in zip(names.items(), COLORS, ("-", "--", ":"), strict=False):
        counts = rows[name][accepted]
        style = {"where": "post", "color": color, "linestyle": line, "label": words}
        workers.step(until, np.append(counts, counts[-1]), **style)
    seconds = run.spec.config.adjustment_seconds
    times, updates = (np.insert(metrics[name], 0, 0.0) for name in ("time_s", "updates"))
    after, before = (np.interp(at, times, updates) for at in (ends, ends - seconds))
    rates.plot(ends / 60, (after - before) / seconds, ".", color=COLORS[0], label="its mean over a period")

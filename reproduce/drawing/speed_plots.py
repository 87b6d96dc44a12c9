"""Pictures of throughput: predictions and updates per second, queues, utilization and dynamic adjustment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator

from ga3c_tf.reproduce.drawing.canvas import (
    COLORS,
    LOOKS,
    canvas,
    handles,
    legend_above,
    save,
    short_number,
)
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import SYSTEMS


def speed_points(
    groups: Sequence[tuple[str, dict[str, list[float]], list[float], float | None]], stem: Path
) -> None:
    """Draw the mean PPS and the range of the seeds on a log axis, and the speed-ups in a panel above.

    Args:
        groups: for each network its name, the PPS of each seed by system, our speed-ups GA3C / A3C of the
            seeds, and the paper's speed-up or None.
        stem: path of the picture files, without the suffix.
    """
    figure, [[ratio], [axis]] = canvas(2, 1, 3.0, sharex=True, height_ratios=(2, 3))
    width = 0.27
    for number, (system, look) in enumerate(LOOKS.items()):
        for place, (_, speeds, _, _) in enumerate(groups):
            if speeds.get(system):
                x = place + (number - 1) * width
                mean = np.mean(speeds[system])
                most = max(speeds[system])
                # Above the mark.
                axis.vlines(x, min(speeds[system]), most, color="black", linewidth=0.8, zorder=3)
                axis.plot(x, mean, look.marker, color=look.color, label=SYSTEMS[system])
                label = short_number(float(f"{mean:.2g}"))
                aside: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": 5, "rotation": 90}
                axis.annotate(label, (x, most), (0, 3.5), textcoords="offset points", **aside)
    for place, (_, _, ratios, papers) in enumerate(groups):
        if ratios:
            _marked(ratio, place, ratios, "o", "ours, this machine")
        if papers is not None:
            _marked(ratio, place, [papers], "D", "paper, GPU (system I)", markerfacecolor="none")
    ratio.set_yscale("log")
    ratio.axhline(1, color="#BBBBBB", linewidth=0.6, zorder=0)
    ratio.margins(y=0.2)
    ratio.set_ylabel("GA3C / A3C")
    ratio.yaxis.set_major_formatter("{x:g}")
    ratio.minorticks_off()
    axis.set_yscale("log")
    axis.margins(y=0.3)
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axis.yaxis.set_major_formatter(lambda value, _: short_number(value))
    axis.minorticks_off()
    axis.set_ylabel("PPS (predictions/s), ours\n(lines: range of seeds)")
    axis.set_xlim(-0.6, len(groups) - 0.4)
    _name_networks(axis, [name for name, *_ in groups])
    for panel in (ratio, axis):
        labelled = handles([panel])
        if labelled:
            panel.legend(
                labelled.values(), labelled.keys(), loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3
            )
    save(figure, stem)


def _marked(axis, place: int, values: list[float], marker: str, label: str, **style: Any) -> None:
    """Draw a mark at the mean speed-up of GA3C, a line over the range, and the mean as text beside it."""
    mean = float(np.mean(values))
    axis.vlines(place, min(values), max(values), color=LOOKS["ga3c"].color)
    axis.plot(place, mean, marker, color=LOOKS["ga3c"].color, label=label, **style)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.2}  # hides the line at 1 behind the text
    axis.annotate(
        f"{mean:.2g}\u00d7", (place, mean), (5, 1), textcoords="offset points", fontsize=6, bbox=box
    )


def _name_networks(axis, names: list[str]) -> None:
    axis.set_xticks(range(len(names)), [name.replace("large stride", "large,\nstride") for name in names])


def utilization_lines(networks: list[str], shares: dict[str, list[list[float]]], stem: Path) -> None:
    """Draw the mean utilization with each network as a point, with the range over seeds.

    Args:
        networks: names of the networks, in order.
        shares: for each line, such as 'CPU utilization', and each network, the share of each seed, from 0 to
            1.
        stem: path of the picture files, without the suffix.
    """
    figure, [[axis]] = canvas(1, 1, 1.9)
    for number, (name, values) in enumerate(shares.items()):
        places = [place for place, seeds in enumerate(values) if seeds]
        if places:
            color = COLORS[number]
            means = [100 * np.mean(values[place]) for place in places]
            axis.plot(places, means, "os"[number] + "-", color=color, label=name)
            for place in places:
                axis.vlines(place, 100 * min(values[place]), 100 * max(values[place]), color=color)
    axis.set_ylim(0, 102)
    axis.set_xlim(-0.4, len(networks) - 0.6)
    axis.set_ylabel("busy (%)")
    _name_networks(axis, networks)
    legend_above(figure, handles([axis]), 2)
    save(figure, stem)


def normalized_tps(panels: Mapping[str, Mapping[Any, float]], labelled: int, stem: Path) -> None:
    """Draw the TPS of every setting as a share of the best, by N_A, and name the fastest settings of each
    N_A.

    Args:
        panels: TPS by setting, by title of the panel. A setting begins with N_A, N_P, N_T.
        labelled: number of settings that are named for each N_A.
        stem: path of the picture files, without the suffix.
    """
    figure, [axes] = canvas(1, max(1, len(panels)), 2.3)
    for axis, (title, tps) in zip(axes, panels.items(), strict=False):
        axis.set_title(title)
        _tps_panel(axis, tps, labelled)
    for axis in axes:
        axis.set_xlabel("agents, $N_A$")
    axes[0].set_ylabel("TPS / best TPS\n(named: $N_P$/$N_T$ of the fastest)")
    save(figure, stem)


def _tps_panel(axis, tps: Mapping[Any, float], labelled: int) -> None:
    best = max(tps.values(), default=1.0) or 1.0
    agents = sorted({setting[0] for setting in tps})
    top = 1.05
    for place, number in enumerate(agents):
        order = sorted(
            (setting for setting in tps if setting[0] == number), key=lambda setting: -tps[setting]
        )
        axis.plot([place] * len(order), [tps[setting] / best for setting in order], ".", color="#999999")
        heights = _apart([tps[setting] / best for setting in order[:labelled]], 0.07 * top)
        for setting, height in zip(order, heights, strict=False):
            axis.plot(place, tps[setting] / best, "o", color=COLORS[0], markersize=4)
            axis.annotate(
                f"{setting[1]}/{setting[2]}",
                (place, tps[setting] / best),
                (place + 0.2, height),
                va="center",
                fontsize=6,
                arrowprops={
                    "arrowstyle": "-",
                    "linewidth": 0.4,
                    "color": "#777777",
                    "shrinkA": 0,
                    "shrinkB": 2,
                },
            )
    axis.set_xlim(-0.5, len(agents) - 0.3)
    axis.set_ylim(0, top)
    axis.set_xticks(range(len(agents)), map(str, agents))


def _apart(heights: list[float], least: float) -> list[float]:
    """Return falling heights, moved down where needed so that neighbors are at least `least` apart."""
    moved: list[float] = []
    for height in heights:
        moved.append(min(height, moved[-1] - least) if moved else height)
    return moved


def against_speed(
    rows: Mapping[str, Mapping[Any, float]], quantities: Mapping[str, Mapping], stem: Path
) -> None:
    """Draw each quantity of each setting against its TPS, colored by N_A, with a panel for each quantity.

    Args:
        rows: TPS by setting, by title of a row of panels. A setting begins with N_A.
        quantities: values by setting, by name of the quantity.
        stem: path of the picture files, without the suffix.
    """
    figure, axes = canvas(max(1, len(rows)), len(quantities), 0.4 + 1.5 * max(1, len(rows)), sharex="row")
    agents = sorted({setting[0] for speed in rows.values() for setting in speed})
    for row, (title, speed) in zip(axes, rows.items(), strict=False):
        for axis, (name, values) in zip(row, quantities.items(), strict=True):
            for number, count in enumerate(agents):
                settings = [setting for setting in speed if setting[0] == count and setting in values]
                axis.plot(
                    [speed[setting] for setting in settings],
                    [values[setting] for setting in settings],
                    "os^Dv"[number % 5],
                    color=COLORS[number % len(COLORS)],
                    markersize=3,
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
    for column, game in enumerate(games):
        workers, rates = axes[:, column]
        for run in [run for run in runs if run.spec.game == game]:
            rows = run.adjustment
            metrics = run.metrics
            accepted = rows["accepted"] == 1
            names = (("agents", "$N_A$"), ("predictors", "$N_P$"), ("trainers", "$N_T$"))
            for number, (name, words) in enumerate(names):
                style: dict[str, Any] = {
                    "color": COLORS[number],
                    "linestyle": ("-", "--", ":")[number],
                    "label": words,
                }
                times = np.append(rows["time_s"][accepted], metrics["time_s"][-1:] if accepted.any() else [])
                counts = rows[name][accepted]
                workers.step(times / 60, np.append(counts, counts[-1:]), where="post", **style)
            rates.plot(metrics["time_s"] / 60, metrics["tps"], color="#AAAAAA", linewidth=0.7, label="TPS")
            if accepted.any():
                ends = rows["time_s"][accepted]
                seconds = run.spec.config.adjustment_seconds
                times, updates = (np.insert(metrics[name], 0, 0.0) for name in ("time_s", "updates"))
                after, before = (np.interp(at, times, updates) for at in (ends, ends - seconds))
                rates.plot(
                    ends / 60,
                    (after - before) / seconds,
                    ".",
                    color=COLORS[0],
                    label="its mean over a period",
                )
        workers.set_title(game.replace("_", " "))
        rates.set_xlabel("time (minutes)")
        rates.set_ylim(bottom=0)
        workers.set_yscale("log", base=2)
        workers.yaxis.set_major_formatter("{x:g}")
    axes[0, 0].set_ylabel("workers (accepted)")
    axes[1, 0].set_ylabel("TPS (updates/s)")
    legend_above(figure, handles(axes.flat), 5)
    save(figure, stem)

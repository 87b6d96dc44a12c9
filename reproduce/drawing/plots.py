"""The paper's figures at the width of a column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import LogLocator

from ga3c_tf.reproduce.measures.intervals import mean_interval
from ga3c_tf.reproduce.runs.run import Columns, Run

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito's
COLUMN = 3.3  # inches: the width of a column of the paper
FONT = 7
STYLE: dict[Any, Any] = {
    "font.size": FONT,
    "axes.titlesize": FONT,
    "axes.labelsize": FONT,
    "xtick.labelsize": FONT - 1,
    "ytick.labelsize": FONT - 1,
    "legend.fontsize": FONT - 1,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.0,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "legend.columnspacing": 1.0,
    "svg.hashsalt": "ga3c_tf",
    "svg.fonttype": "none",
}
MARKS = {  # of Table 3's methods: marker, colour
    "random": ("x", "#7F7F7F"),
    "human": ("^", "#7F7F7F"),
    "A3C (4 days, CPU)": ("s", COLOURS[4]),
    "GA3C (1 day, GPU)": ("D", COLOURS[1]),
}
SYSTEM_COLOURS = {"a3c": COLOURS[4], "a2c": COLOURS[2], "ga3c": COLOURS[0]}
SYSTEM_NAMES = {"a3c": "A3C", "a2c": "A2C", "ga3c": "GA3C"}
GRID = 150


def _canvas(rows: int, columns: int, height: float, **options):
    plt.rcdefaults()
    for name, value in STYLE.items():
        matplotlib.rcParams[name] = value
    return plt.subplots(rows, columns, figsize=(COLUMN, height), layout="constrained", squeeze=False, **options)


def _save(figure, stem: Path) -> None:
    """Write the picture as .svg and .png, the same bytes for the same picture."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(f"{stem}.svg", metadata={"Date": None, "Creator": None})
    figure.savefig(f"{stem}.png", dpi=200, metadata={"Software": None})
    plt.close(figure)


def _legend_above(figure, handles: dict, columns: int) -> None:
    if handles:
        figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=columns)


def _handles(axes) -> dict:
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    return found


def score_panels(panels: Sequence[tuple[str, dict, list[float], list[float], list[float]]], stem: Path) -> None:
    """One small panel a game.

    Args:
        panels: name, the paper's score by method (None where it has none), ours of the random policy and of each seed,
            and what the interval is of: seeds, or episodes of one.
        stem: of the files.
    """
    figure, axes = _canvas(3, 3, 3.9)
    for axis, (name, marks, random, ours, sample) in zip(axes.flat, panels, strict=True):
        for place, (method, value) in enumerate(marks.items()):
            if value is not None:
                marker, colour = MARKS[method]
                axis.plot(place, value, marker, color=colour, label=f"{method}, paper")
        if random:
            axis.plot(4, np.mean(random), "x", color=COLOURS[0], label="random, ours")
        known = [*random, *ours, *(value for value in marks.values() if value is not None)]
        if ours:
            if len(sample) > 1:
                low, high = mean_interval(sample)
                known.append(low)
                axis.vlines(5, low, high, color=COLOURS[0], linewidth=2, alpha=0.5)
            axis.plot([5] * len(ours), ours, "_", color=COLOURS[0], markersize=6, label="GA3C, ours (seeds; bar: 95 %)")
        axis.set_title(name)
        if min(known, default=0.0) > 0:
            axis.set_yscale("log")
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
            axis.minorticks_off()
        axis.set_xlim(-0.7, 5.7)
        axis.set_xticks([])
        axis.margins(y=0.15)
        if axis.get_yscale() == "linear":
            axis.yaxis.set_major_locator(plt.MaxNLocator(4))
        axis.yaxis.set_major_formatter(lambda value, _: _short(value))
    figure.supylabel("score (log axis where all are positive)", fontsize=FONT)
    _legend_above(figure, _handles(axes.flat), 2)
    _save(figure, stem)


def _short(value: float) -> str:
    """Such as '-20', '0.5' or '2.7k'."""
    return f"{value / 1000:.3g}k" if abs(value) >= 1000 else f"{value:.3g}"


def speed_bars(groups: Sequence[tuple[str, dict[str, list[float]], list[float], float | None]], stem: Path) -> None:
    """Bars of PPS on a log axis, and the speed-up above.

    Args:
        groups: network, PPS of each seed by system, our speed-ups GA3C / A3C, the paper's or None.
        stem: of the files.
    """
    figure, [[ratio], [axis]] = _canvas(2, 1, 3.0, sharex=True, height_ratios=(2, 3))
    width = 0.27
    for number, (system, colour) in enumerate(SYSTEM_COLOURS.items()):
        for place, (_, speeds, _, _) in enumerate(groups):
            if speeds[system]:
                x = place + (number - 1) * width
                mean = np.mean(speeds[system])
                axis.bar(x, mean, 0.9 * width, color=colour, label=SYSTEM_NAMES[system] if place == 0 else None)
                axis.vlines(x, min(speeds[system]), max(speeds[system]), color="black", linewidth=0.8)
                label = _short(float(f"{mean:.2g}"))
                aside: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": 5, "rotation": 90}
                axis.annotate(label, (x, mean), (0, 2), textcoords="offset points", **aside)
    for place, (_, _, ours, papers) in enumerate(groups):
        if ours:
            _marked(ratio, place, ours, "o", COLOURS[0], "ours, this machine")
        if papers is not None:
            _marked(ratio, place, [papers], "D", COLOURS[1], "paper, GPU (system I)")
    ratio.set_yscale("log")
    ratio.axhline(1, color="#BBBBBB", linewidth=0.6, zorder=0)
    ratio.margins(y=0.2)
    ratio.set_ylabel("GA3C / A3C")
    ratio.yaxis.set_major_formatter("{x:g}")
    ratio.minorticks_off()
    axis.set_yscale("log")
    axis.margins(y=0.3)
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axis.yaxis.set_major_formatter(lambda value, _: _short(value))
    axis.minorticks_off()
    axis.set_ylabel("PPS (predictions/s), ours")
    axis.set_xlim(-0.6, len(groups) - 0.4)
    _name_networks(axis, [name for name, *_ in groups])
    for each in (ratio, axis):
        handles = _handles([each])
        if handles:
            each.legend(handles.values(), handles.keys(), loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    _save(figure, stem)


def _marked(axis, place: int, values: list[float], marker: str, colour: str, label: str) -> None:
    """Draw a mark at the mean, and the number of times beside it."""
    mean = float(np.mean(values))
    axis.vlines(place, min(values), max(values), color=colour)
    axis.plot(place, mean, marker, color=colour, label=label)
    axis.annotate(f"{mean:.2g}\u00d7", (place, mean), (5, 1), textcoords="offset points", fontsize=6)


def _name_networks(axis, names: list[str]) -> None:
    axis.set_xticks(range(len(names)), [name.replace("large stride", "large,\nstride") for name in names])


def utilization_lines(networks: list[str], shares: dict[str, list[list[float]]], stem: Path) -> None:
    """Draw the share of each network as a point with the range over seeds.

    Args:
        networks: their names, in order.
        shares: by what is busy, for each network the share of each seed.
        stem: of the files.
    """
    figure, [[axis]] = _canvas(1, 1, 1.9)
    for number, (name, values) in enumerate(shares.items()):
        places = [place for place, seeds in enumerate(values) if seeds]
        if places:
            colour = COLOURS[number]
            means = [100 * np.mean(values[place]) for place in places]
            axis.plot(places, means, "os"[number] + "-", color=colour, label=name)
            for place in places:
                axis.vlines(place, 100 * min(values[place]), 100 * max(values[place]), color=colour)
    axis.set_ylim(0, 102)
    axis.set_xlim(-0.4, len(networks) - 0.6)
    axis.set_ylabel("busy (%)")
    _name_networks(axis, networks)
    _legend_above(figure, _handles([axis]), 2)
    _save(figure, stem)


def normalised_tps(tps: dict[tuple[int, int, int], float], labelled: int, stem: Path) -> None:
    """TPS of every setting as a share of the best, by N_A; the fastest few of each are named.

    Args:
        tps: by N_A, N_P, N_T.
        labelled: how many of each N_A are named.
        stem: of the files.
    """
    figure, [[axis]] = _canvas(1, 1, 2.3)
    best = max(tps.values(), default=1.0) or 1.0
    agents = sorted({setting[0] for setting in tps})
    bottom = math.floor(10 * min(tps.values(), default=0.0) / best - 0.5) / 10
    top = 1 + 0.05 * (1 - bottom)
    for place, number in enumerate(agents):
        order = sorted((each for each in tps if each[0] == number), key=lambda each: -tps[each])
        axis.plot([place] * len(order), [tps[each] / best for each in order], ".", color="#999999")
        heights = _apart([tps[each] / best for each in order[:labelled]], 0.07 * (top - bottom))
        for setting, height in zip(order, heights, strict=False):
            axis.plot(place, tps[setting] / best, "o", color=COLOURS[0])
            axis.annotate(
                f"{setting[1]}/{setting[2]}",
                (place, tps[setting] / best),
                (place + 0.2, height),
                va="center",
                fontsize=6,
                arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": "#777777", "shrinkA": 0, "shrinkB": 2},
            )
    axis.set_xlim(-0.5, len(agents) - 0.3)
    axis.set_ylim(bottom, top)
    axis.set_xticks(range(len(agents)), map(str, agents))
    axis.set_xlabel("agents, $N_A$ (named: $N_P$/$N_T$ of the fastest)")
    axis.set_ylabel("TPS / best TPS")
    _save(figure, stem)


def _apart(heights: list[float], least: float) -> list[float]:
    """Falling heights moved down until neighbours are at least so far apart."""
    moved: list[float] = []
    for height in heights:
        moved.append(min(height, moved[-1] - least) if moved else height)
    return moved


def against_speed(speed: dict, quantities: dict[str, dict], stem: Path) -> None:
    """Each quantity of each setting against its TPS, a panel for each, coloured by N_A.

    Args:
        speed: TPS by N_A, N_P, N_T.
        quantities: by what it is called, the values by setting.
        stem: of the files.
    """
    figure, [axes] = _canvas(1, 2, 1.9)
    agents = sorted({setting[0] for setting in speed})
    for axis, (name, values) in zip(axes, quantities.items(), strict=True):
        for number, count in enumerate(agents):
            settings = [each for each in speed if each[0] == count and each in values]
            axis.plot(
                [speed[each] for each in settings],
                [values[each] for each in settings],
                "os^Dv"[number % 5],
                color=COLOURS[number % len(COLOURS)],
                markersize=3,
                markerfacecolor="none",
                label=f"$N_A$ = {count}",
            )
        axis.set_xlabel("TPS (updates/s)")
        axis.set_ylabel(name)
        axis.margins(0.1)
        axis.set_ylim(bottom=0)
    _legend_above(figure, _handles(axes), 4)
    _save(figure, stem)


def adjustment_courses(runs: list[Run], stem: Path) -> None:
    """Draw the workers and the rate over time, a column for each game, a line for each seed."""
    games = list(dict.fromkeys(run.spec.game for run in runs)) or [""]
    figure, axes = _canvas(2, len(games), 2.6, sharex=True)
    for column, game in enumerate(games):
        workers, rates = axes[:, column]
        for run in [run for run in runs if run.spec.game == game]:
            rows = run.adjustment
            metrics = run.metrics
            kept = rows["accepted"] == 1
            names = (("agents", "$N_A$"), ("predictors", "$N_P$"), ("trainers", "$N_T$"))
            for number, (name, words) in enumerate(names):
                style: dict[str, Any] = {
                    "color": COLOURS[number],
                    "linestyle": ("-", "--", ":")[number],
                    "label": words,
                }
                times = np.append(rows["time_s"][kept], metrics["time_s"][-1:] if kept.any() else [])
                counts = rows[name][kept]
                workers.step(times / 60, np.append(counts, counts[-1:]), where="post", **style)
            rates.plot(metrics["time_s"] / 60, metrics["tps"], color="#AAAAAA", linewidth=0.7, label="TPS")
            if kept.any():
                ends = rows["time_s"][kept]
                seconds = run.spec.config.adjustment_seconds
                times, updates = (np.insert(metrics[name], 0, 0.0) for name in ("time_s", "updates"))
                after, before = (np.interp(at, times, updates) for at in (ends, ends - seconds))
                rates.plot(ends / 60, (after - before) / seconds, ".", color=COLOURS[0], label="its mean over a period")
        workers.set_title(game.replace("_", " "))
        rates.set_xlabel("time (minutes)")
        rates.set_ylim(bottom=0)
        workers.set_yscale("log", base=2)
        workers.yaxis.set_major_formatter("{x:g}")
    axes[0, 0].set_ylabel("workers (accepted)")
    axes[1, 0].set_ylabel("TPS (updates/s)")
    _legend_above(figure, _handles(axes.flat), 5)
    _save(figure, stem)


def score_curves(groups: dict[str, dict[str, list[Columns]]], stem: Path) -> None:
    """Score against time and against agent steps: the mean over seeds, and the range of them.

    Args:
        groups: the curves of runs by the title of a row of panels, and by what a line is called.
        stem: of the files.
    """
    figure, axes = _canvas(len(groups), 2, 0.6 + 1.4 * len(groups), sharey="row")
    for (time, steps), (title, curves) in zip(axes, groups.items(), strict=True):
        _draw_curves(time, steps, curves)
        time.set_ylabel(f"{title}\nscore" if title else "score")
    axes[-1, 0].set_xlabel("time (minutes)")
    axes[-1, 1].set_xlabel("agent steps (millions)")
    _legend_above(figure, _handles(axes.flat), 2)
    _save(figure, stem)


def lag_picture(rates: dict[str, dict[str, list[Run]]], stem: Path) -> None:
    """Curves against time and agent steps, a row for each learning rate, and below the policy lag as measured.

    The lag of a setting is drawn as the distribution of its windows: a box of the quartiles of the windows' means, with
    whiskers from the 5th to the 95th percentile, and a mark at the median of the windows' 95th percentiles.

    Args:
        rates: the runs by learning rate in words, and by setting.
        stem: of the files.
    """
    figure, axes = _canvas(len(rates) + 1, 2, 1.0 + 1.35 * (len(rates) + 1))
    for (time, steps), (title, by_setting) in zip(axes, rates.items(), strict=False):
        _draw_curves(time, steps, {name: [run.curve for run in runs] for name, runs in by_setting.items()})
        steps.sharey(time)
        steps.tick_params(labelleft=False)
        time.set_ylabel(f"{title}\nscore")
    axes[-2, 0].set_xlabel("time (minutes)")
    axes[-2, 1].set_xlabel("agent steps (millions)")
    boxes = figure.add_subplot(axes[-1, 0].get_gridspec()[-1, :])
    for axis in axes[-1]:
        axis.remove()
    # Below, the lag of each setting at both rates, without the first tenth of each run.
    settings = next(iter(rates.values()))
    runs_of = {name: [run for curves in rates.values() for run in curves.get(name, [])] for name in settings}
    for place, (name, runs) in enumerate(runs_of.items()):
        rows = [(run, run.metrics["time_s"] > 0.1 * run.metrics["time_s"][-1]) for run in runs]
        means = np.concatenate([np.empty(0), *(run.metrics["policy_lag_mean"][kept] for run, kept in rows)])
        tails = np.concatenate([np.empty(0), *(run.metrics["policy_lag_p95"][kept] for run, kept in rows)])
        means = means[np.isfinite(means)]
        tails = tails[np.isfinite(tails)]
        if len(means):
            colour = COLOURS[list(settings).index(name) % len(COLOURS)]
            low, first, middle, third, high = np.percentile(means, [5, 25, 50, 75, 95])
            boxes.plot([low, high], [place, place], color=colour, linewidth=0.8)
            boxes.plot([first, third], [place, place], color=colour, linewidth=5, solid_capstyle="butt", alpha=0.6)
            boxes.plot(middle, place, "|", color="black", markersize=6)
            boxes.plot(np.median(tails), place, "D", color=colour, markersize=3)
    boxes.set_yticks(range(len(settings)), list(settings))
    boxes.set_ylim(len(settings) - 0.5, -0.5)
    boxes.set_xscale("symlog", linthresh=1.0)
    boxes.margins(x=0.05)
    boxes.set_xlabel("policy lag (updates): spread of windows' means,\n$\\diamond$ median of their 95th percentiles")
    boxes.xaxis.set_major_formatter("{x:g}")
    _legend_above(figure, _handles(axes[:-1].flat), 3)
    _save(figure, stem)


def _draw_curves(time, steps, curves: dict[str, list[Columns]]) -> None:
    for number, (label, seeds) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        style = ("-", "--", "-.", ":")[number % 4]
        for axis, column, unit in ((time, "time_s", 60.0), (steps, "agent_steps", 1e6)):
            drawn = [curve for seed in seeds if len((curve := _settled(seed))[column]) > 1]
            if drawn:
                # Seeds are compared where all of them have scores.
                start = max(curve[column][0] for curve in drawn)
                end = min(curve[column][-1] for curve in drawn)
                grid = np.linspace(start, max(start, end), GRID)
                scores = np.array([np.interp(grid, curve[column], curve["rolling_score"]) for curve in drawn])
                axis.fill_between(
                    grid / unit, scores.min(axis=0), scores.max(axis=0), color=colour, alpha=0.2, linewidth=0
                )
                axis.plot(grid / unit, scores.mean(axis=0), style, color=colour, label=label)


def _settled(curve: Columns) -> Columns:
    """Return the part of a curve whose rolling score is over ten episodes at least, or all where there is none."""
    kept = curve["episodes"] >= 10
    return {name: values[kept] for name, values in curve.items()} if kept.any() else curve

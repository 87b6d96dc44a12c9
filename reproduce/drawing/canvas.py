"""Size, style, colors and legends that all pictures share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from ga3c_tf.errors import UserError
from ga3c_tf.host.libraries import drop_unusable_backend
from ga3c_tf.reproduce.runs.specs import SYSTEMS

# Palette of Okabe and Ito.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


class Look(NamedTuple):
    """How a training system is drawn, the same in all pictures."""

    color: str
    marker: str
    line: str


LOOKS = {
    "a3c": Look(COLORS[4], "s", "--"),
    "a2c": Look(COLORS[2], "^", "-."),
    "ga3c": Look(COLORS[0], "o", "-"),
}
"""The look of each training system, in the order in which marks stand side by side."""
NO_SYSTEM = "#7F7F7F"  # color of scores without training: the random policy and humans
RANDOM_LINE: Mapping[str, Any] = MappingProxyType({"color": NO_SYSTEM, "linewidth": 0.7, "linestyle": ":"})
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
FORMATS: dict[str, dict[str, Any]] = {
    "svg": {"metadata": {"Date": None, "Creator": None}},
    "png": {"metadata": {"Software": None}, "dpi": 200},
}


def pyplot() -> ModuleType:
    """Return pyplot, for pictures in files. It is imported here, because most commands draw nothing."""
    drop_unusable_backend()
    import matplotlib
    from matplotlib import pyplot

    matplotlib.use("agg")
    return pyplot


def looks() -> dict[str, Look]:
    """Return the looks by the systems' names."""
    return {SYSTEMS[system]: look for system, look in LOOKS.items()}


def canvas(rows: int, columns: int, height: float, **options):
    """Return a matplotlib figure as wide as a column of the paper, and its axes as an array [rows, columns].

    The height is in inches; `options` are further arguments of `pyplot.subplots`.
    """
    plt = pyplot()
    plt.rcdefaults()
    plt.rcParams.update(STYLE)
    return plt.subplots(
        rows, columns, figsize=(COLUMN, height), layout="constrained", squeeze=False, **options
    )


def save(figure, stem: Path) -> None:
    """Save the picture as .svg and .png, and close it. The same picture always gives the same bytes.

    Raises:
        UserError: a file cannot be written.
    """
    file = stem
    try:
        for suffix, options in FORMATS.items():
            file = Path(f"{stem}.{suffix}")
            file.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(file, **options)
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror or error}") from None
    finally:
        pyplot().close(figure)


def legend_above(figure, handles: dict, columns: int) -> None:
    """Put one legend above all axes."""
    if handles:
        figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=columns)


def legend_over(axis, axes: Iterable, **options) -> None:
    """Put a legend of the labels on these axes right above one axis; none without a label."""
    labelled = handles(axes)
    if labelled:
        place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 3}
        axis.legend(labelled.values(), labelled.keys(), **place, **options)


def handles(axes: Iterable) -> dict:
    """Return the legend handle of each label on these axes; the first one if several axes use the label."""
    by_label: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            by_label.setdefault(label, handle)
    return by_label


def marks(
    axis,
    groups: Mapping[str, Mapping[str, Sequence[float]]],
    colors: Sequence[str],
    markers: Sequence[str],
    apart: float = 0.0,
    named: bool = False,
) -> None:
    """Draw the mean of the seeds as a mark and their range as a line, by name of a mark and by place.

    Places are 1 apart, the marks of a place `apart`. A place without values has no mark. With `named`, each
    mean is written beside its mark.
    """
    places = list(dict.fromkeys(place for values in groups.values() for place in values))
    for number, (name, by_place) in enumerate(groups.items()):
        color = colors[number % len(colors)]
        for place, values in by_place.items():
            if not len(values):
                continue
            x = places.index(place) + apart * (number - (len(groups) - 1) / 2)
            mean = float(np.mean(values))
            axis.vlines(x, min(values), max(values), color=color, linewidth=0.8)
            axis.plot(x, mean, markers[number % len(markers)], color=color, label=name)
            if named:
                style: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": 5}
                axis.annotate(short_number(float(f"{mean:.2g}")), (x, max(values)), (0, 3), **style)
    axis.set_xticks(range(len(places)), [place.replace("large stride", "large,\nstride") for place in places])
    axis.set_xlim(-0.6, len(places) - 0.4)


def mark_picture(
    groups: Mapping[str, Mapping[str, Sequence[float]]],
    label: str,
    stem: Path,
    height: float,
    columns: int = 3,
    apart: float = 0.09,
    level: float | None = None,
    ends: tuple[float, float] | None = None,
) -> None:
    """Draw `marks` of groups, with a label of the axis, the ends of the axis, and the random policy's score,
    if these are known.
    """
    figure, [[axis]] = canvas(1, 1, height)
    marks(axis, groups, COLORS, "os^DvP", apart)
    draw_level([axis], level)
    axis.set_ylim(ends)
    axis.set_ylabel(label)
    legend_above(figure, handles([axis]), columns)
    save(figure, stem)


def draw_level(
    axes: Iterable, score: float | None, label: str = "random policy", line: Mapping[str, Any] = RANDOM_LINE
) -> None:
    """Draw a line at a score, if it is known, on each axis."""
    if score is not None:
        for axis in axes:
            axis.axhline(score, label=label, **line)


def few_ticks(axis, most: int) -> None:
    """Give the vertical axis at most so many ticks, and short numbers."""
    from matplotlib.ticker import MaxNLocator

    axis.yaxis.set_major_locator(MaxNLocator(most))
    axis.yaxis.set_major_formatter(short_number)


def log_scale(axis) -> None:
    """Make the vertical axis logarithmic, with a tick at 1 and 3 of each decade, and short numbers."""
    from matplotlib.ticker import LogLocator

    axis.set_yscale("log")
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axis.yaxis.set_major_formatter(short_number)
    axis.minorticks_off()


def short_number(value: float, _: Any = None) -> str:
    """Write a number for an axis, such as '-20', '0.5' or '2.7k'."""
    return f"{value / 1000:.3g}k" if abs(value) >= 1000 else f"{value:.3g}"

"""Numbers, tables and pages as Markdown."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2

from ga3c_tf.intervals import mean_interval
from ga3c_tf.reproduce.measures.verdicts import LEAST_SEEDS

SINGLE_PRECISION = 1e-7
TEMPLATES = Path(__file__).resolve().parents[1] / "pages" / "templates"
"""Folder with the text of the pages, as Jinja2 templates."""


def lines_of(template: str, **values: Any) -> list[str]:
    """Render a template of `TEMPLATES`, which can use `table`, `number` and `least_seeds`.

    Args:
        template: file name of the template.
        values: values of the template's variables.

    Returns:
        The lines, without empty lines at the start and the end; several empty lines in a row are reduced to one.
    """
    text = _environment().get_template(template).render(values)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n").split("\n")


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["number"] = number
    environment.globals["least_seeds"] = LEAST_SEEDS
    environment.globals["table"] = lambda header, rows: "\n".join(table(header, rows))
    return environment


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    cells = [list(header), ["---"] * len(header), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return [f"| {' | '.join(row)} |" for row in cells]


def number(value: float | None) -> str:
    """Format a number with three significant digits; '-' for None.

    From 1000 on, it is a whole number with grouped thousands. A number closer to 0 than `SINGLE_PRECISION` is 0.
    """
    if value is None:
        return "-"
    if abs(value) < SINGLE_PRECISION:
        return "0"
    rounded = float(f"{value:.3g}")
    return f"{value:,.0f}" if abs(rounded) >= 1000 else f"{value:.3g}"


def duration(seconds: float) -> str:
    """Format a duration, such as '40 s', '12 min', '3.5 h' or '2.1 days'."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


def mean_ci(values: Sequence[float], of: str = "seed", confidence: float = 0.95) -> str:
    """Format the mean, its interval if there are two or more values, and the number of values.

    Mean and interval have three significant digits.

    Args:
        values: the values; '-' is returned if there are none.
        of: what one value belongs to, such as 'seed'.
        confidence: confidence level of the interval.
    """
    if not values:
        return "-"
    count = f"{len(values)} {of}{'s' if len(values) > 1 else ''}"
    return f"{mean_and_interval(values, confidence)} ({count})"


def mean_and_interval(values: Sequence[float], confidence: float = 0.95) -> str:
    """Format the mean with three significant digits, and its interval if there are two or more values."""
    mean = _rounded(sum(values) / len(values))
    if len(values) == 1:
        return mean
    low, high = mean_interval(values, confidence)
    return f"{mean} [{_rounded(low)}, {_rounded(high)}]"


def _rounded(value: float) -> str:
    return number(float(f"{value:.3g}"))

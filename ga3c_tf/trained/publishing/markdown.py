"""Cards and pages in Markdown: numbers, tables, and Jinja2 templates that can use both."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2

SINGLE_PRECISION = 1e-7
TEMPLATES = Path(__file__).resolve().parent / "templates"
"""Folder with the text of the cards of published weights."""


def lines_of(template: str, folder: Path = TEMPLATES, **values: Any) -> list[str]:
    """Render a template, which can use `table` and `number`.

    Args:
        template: file name of the template.
        folder: folder of the template.
        values: values of the template's variables.

    Returns:
        The lines, without empty lines at the start and the end; several empty lines in a row are reduced to
        one.
    """
    text = _environment(folder).get_template(template).render(values)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n").split("\n")


@functools.cache
def _environment(folder: Path) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["number"] = number
    environment.globals["table"] = lambda header, rows: "\n".join(table(header, rows))
    return environment


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    cells = [
        list(header),
        ["---"] * len(header),
        *([cell.replace("|", "\\|") for cell in row] for row in rows),
    ]
    return [f"| {' | '.join(row)} |" for row in cells]


def number(value: float | None) -> str:
    """Format a number with three significant digits; '-' for None.

    From 1000 on, it is a whole number with grouped thousands. A number closer to 0 than `SINGLE_PRECISION` is
    0.
    """
    if value is None:
        return "-"
    if abs(value) < SINGLE_PRECISION:
        return "0"
    rounded = float(f"{value:.3g}")
    return f"{value:,.0f}" if abs(rounded) >= 1000 else f"{value:.3g}"

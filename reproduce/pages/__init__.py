"""The pages of a results folder; their text is in the templates in the folder beside this file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS
from ga3c_tf.trained.publishing import markdown

TEMPLATES = Path(__file__).resolve().parent / "templates"


def lines_of(template: str, **values: Any) -> list[str]:
    """Return the lines of one of `TEMPLATES`, which can also use `least_seeds`; see `markdown.lines_of`."""
    return markdown.lines_of(template, TEMPLATES, least_seeds=LEAST_SEEDS, **values)

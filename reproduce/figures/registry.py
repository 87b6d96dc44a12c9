"""All tables and figures by the name that `--figure` takes."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence

from ga3c_tf.errors import UserError, did_you_mean
from ga3c_tf.reproduce import figures
from ga3c_tf.reproduce.figures.figure import Figure


def _found() -> list[Figure]:
    """Return the figure of each module in the folders beside this one, in the order of the results page."""
    names = [module.name for module in pkgutil.walk_packages(figures.__path__, f"{figures.__name__}.")]
    modules = [importlib.import_module(name) for name in names if name != __name__]
    return sorted((module.FIGURE for module in modules if hasattr(module, "FIGURE")), key=lambda figure: figure.place)


FIGURES: dict[str, Figure] = {figure.name: figure for figure in _found()}


def figure_called(name: str) -> Figure:
    """Return the figure of this name.

    Raises:
        UserError: there is none; close names are given.
    """
    if name not in FIGURES:
        hint = did_you_mean(name, [*FIGURES]) or f"; there are {', '.join(FIGURES)}"
        raise UserError(f"unknown figure {name!r}{hint}")
    return FIGURES[name]


def figures_with(budget: str, games: Sequence[str] = ()) -> list[Figure]:
    """Return the figures that have this budget and can be made of these games, in the order of the results page."""
    return [figure for figure in FIGURES.values() if figure.takes_games(budget, games)]

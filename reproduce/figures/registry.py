"""All tables and figures, by their names in `--figure`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence

from ga3c_tf.errors import UserError, did_you_mean
from ga3c_tf.reproduce import figures
from ga3c_tf.reproduce.figures.figure import WORDS, Figure, all_words


def _figures() -> dict[str, Figure]:
    """Return a figure of each class in the modules of this package, in the order of their words.

    Raises:
        UserError: a figure has no words, or words have no figure.
    """
    for module in pkgutil.walk_packages(figures.__path__, f"{figures.__name__}."):
        if module.name != __name__:
            importlib.import_module(module.name)
    by_name = {kind.name: kind for kind in _kinds(Figure)}
    for name in by_name.keys() ^ all_words().keys():
        raise UserError(f"{WORDS} and the classes of figures differ: {name} is in one of them only")
    return {name: by_name[name]() for name in all_words()}


def _kinds(base: type[Figure]) -> list[type[Figure]]:
    """Return the classes of all figures."""
    return [kind for derived in base.__subclasses__() for kind in (derived, *_kinds(derived))]


FIGURES = _figures()


def figure_called(name: str) -> Figure:
    """Return the figure with this name.

    Raises:
        UserError: there is no such figure; the message gives close names, or all names.
    """
    if name not in FIGURES:
        hint = did_you_mean(name, [*FIGURES]) or f"; there are {', '.join(FIGURES)}"
        raise UserError(f"unknown figure {name!r}{hint}")
    return FIGURES[name]


def figures_with(budget: str, games: Sequence[str] = ()) -> list[Figure]:
    """Return the figures that can be made for these games at this budget, in the order of the results page.

    Args:
        budget: name of the budget.
        games: names of the games; empty for the default games of each figure.
    """
    return [figure for figure in FIGURES.values() if figure.takes_games(budget, games)]

"""Numbers and names of the results in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ga3c_tf.trained.intervals import mean_interval, student_interval
from ga3c_tf.trained.publishing.markdown import number, table

__all__ = ["counted", "duration", "game_title", "geometric_mean", "mean_ci", "number", "table", "with_ends"]
TITLES = {"cartpole": "CartPole", "ms_pacman": "Ms. Pac-Man", "qbert": "Q*bert", "up_n_down": "Up'n Down"}


def game_title(game: str) -> str:
    """Return the name of a game for readers, such as 'CartPole', 'MinAtar Breakout' or 'Name This Game'."""
    if game != game.lower():  # a Gymnasium id
        return game
    return TITLES.get(game, game.replace("_", " ").title().replace("Minatar", "MinAtar"))


def duration(seconds: float) -> str:
    """Format a duration, such as '40 s', '12 min', '3.5 h' or '2.1 days'."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


def counted(count: int, of: str) -> str:
    """Return a number of things, such as '1 seed' or '24 pairs'."""
    return f"{count} {of}{'' if count == 1 else 's'}"


def mean_ci(values: Sequence[float], of: str = "seed") -> str:
    """Format the mean with three significant digits, its interval if there are two or more values, and the
    number of values, each of a seed or something else.
    """
    if not len(values):
        return "-"
    return f"{with_ends(sum(values) / len(values), *mean_interval(values))} ({counted(len(values), of)})"


def geometric_mean(values: Sequence[float]) -> str:
    """Format the geometric mean of positive values and its interval, which is that of the logarithms."""
    if not len(values):
        return "-"
    logarithms = np.log(values)
    return with_ends(*np.exp([logarithms.mean(), *student_interval(logarithms)]))


def with_ends(mean: float, low: float, high: float) -> str:
    """Format a mean and its interval, if there is one, with three significant digits."""
    mean, low, high = (float(f"{value:.3g}") for value in (mean, low, high))
    return number(mean) if np.isnan(low) else f"{number(mean)} [{number(low)}, {number(high)}]"

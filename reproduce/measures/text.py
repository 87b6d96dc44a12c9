"""Numbers and names of the results in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ga3c_tf.trained.intervals import mean_interval, student_interval
from ga3c_tf.trained.publishing.markdown import number, table

__all__ = ["duration", "game_title", "geometric_mean", "mean_and_interval", "mean_ci", "number", "table"]
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


def mean_ci(values: Sequence[float], of: str = "seed") -> str:
    """Format the mean, its interval, and the number of values, each of a seed or something else."""
    count = f"{len(values)} {of}{'s' if len(values) > 1 else ''}"
    return f"{mean_and_interval(values)} ({count})" if len(values) else "-"


def mean_and_interval(values: Sequence[float]) -> str:
    """Format the mean with three significant digits, and its interval if there are two or more values."""
    return _interval(sum(values) / len(values), *mean_interval(values))


def geometric_mean(values: Sequence[float]) -> str:
    """Format the geometric mean of positive values and its interval, which is that of the logarithms."""
    if not len(values):
        return "-"
    logarithms = np.log(values)
    return _interval(*np.exp([logarithms.mean(), *student_interval(logarithms)]))


def _interval(mean: float, low: float, high: float) -> str:
    mean, low, high = (float(f"{value:.3g}") for value in (mean, low, high))
    return number(mean) if np.isnan(low) else f"{number(mean)} [{number(low)}, {number(high)}]"

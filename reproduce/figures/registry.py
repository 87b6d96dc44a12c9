"""All tables and figures by the name that `--figure` takes."""

from __future__ import annotations

from ga3c_tf.config import did_you_mean
from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures import (
    adjustment,
    environments,
    learning_curves,
    policy_lag,
    pps,
    queues,
    scores,
    speed,
    tps,
    utilization,
)
from ga3c_tf.reproduce.figures.figure import Figure

MODULES = (scores, pps, adjustment, tps, queues, speed, learning_curves, policy_lag, utilization, environments)
FIGURES: dict[str, Figure] = {module.FIGURE.name: module.FIGURE for module in MODULES}
ALL = "all"


def figures_called(name: str) -> list[Figure]:
    """Return the figure of this name, or all of them.

    Raises:
        UserError: there is none; close names are given.
    """
    if name == ALL:
        return list(FIGURES.values())
    if name not in FIGURES:
        hint = did_you_mean(name, [*FIGURES, ALL]) or f"; there are {', '.join(FIGURES)} and {ALL}"
        raise UserError(f"unknown figure {name!r}{hint}")
    return [FIGURES[name]]

"""Kinds of policy lag on CartPole: constant or random, and from old batches or from many updates on one.

A language model's trainer has both: it collects with older weights, and makes several updates on a batch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ga3c_tf.reproduce.drawing import canvas
from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.lag.tolerated_lag import (
    AGENTS,
    BATCH,
    FIRST_SEED,
    STEPS,
    lagged_spec,
)
from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.figures.metrics import KL, LAG, OF_LAGGED_RUNS, SAMPLE_SIZE, SCORE, lag_measures
from ga3c_tf.reproduce.figures.normalized import random_score
from ga3c_tf.reproduce.figures.tables import Table, mean_of, means_of
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS, Effect, paired
from ga3c_tf.reproduce.measures.verdicts import differs

CONSTANT = "constant"
RANDOM = ("uniform", "geometric")
LAGS = (16, 64)
CORRECTIONS = ("none", "ppo", "v-trace")
TOTAL = 16
"""Mean lag of the settings whose lag comes from different places."""
UPDATES = 2 * TOTAL + 1
"""Updates on a round whose mean lag is `TOTAL`: they lag by 0 to 32 updates."""
WITHIN = {"within": (UPDATES, 0), "half": (11, 1)}
"""Updates on a round, and rounds that it waits. 11 updates lag by 5 on average, and by 11 for each round."""
SMOKE: dict[str, Any] = {"system": "a2c", "correction": "none", "lag": 1}
SHUFFLED = ("none", "ppo")
"""Corrections that take minibatches of shuffled steps."""


class KindsOfLagFigure(Figure):
    """Two-sided questions about differences of the score, of runs of one seed."""

    name = "kinds-of-lag"
    by_game = True
    games = {"smoke": ("cartpole",), "quick": ("cartpole",)}
    only = tuple(STEPS)
    counts = {"quick": LEAST_SEEDS}
    first_seed = FIRST_SEED
    looks = (LEAST_SEEDS, 2 * LEAST_SEEDS)
    main = (SCORE, "points")
    smoke = (
        {**SMOKE, "called": ("none", "1", CONSTANT)},
        {**SMOKE, "lag_distribution": "uniform", "called": ("none", "1", "uniform")},
    )
    labels = {"correction": str, "lag": int, "kind": str}
    measured = (*OF_LAGGED_RUNS, lag_measures(LAG, KL, SAMPLE_SIZE))
    words = {"updates": UPDATES}
    tables = (
        Table(
            ("lag", "kind"),
            {name: mean_of(SCORE, correction=name) for name in CORRECTIONS},
            "mean score of the run",
        ),
        Table(
            ("lag", "kind"),
            means_of(LAG, KL, SAMPLE_SIZE),
            "lag and divergence without a correction",
            {"correction": "none"},
        ),
    )

    def planned(self, budget, game, seed):
        runs = []
        for correction in CORRECTIONS:
            for lag in LAGS:
                runs.append(lagged_spec(game, seed, correction, lag).called(correction, str(lag), CONSTANT))
                for kind in RANDOM:
                    spec = lagged_spec(game, seed, correction, lag, lag_distribution=kind)
                    runs.append(spec.called(correction, str(lag), kind))
        for correction in SHUFFLED:
            for kind, (updates, rounds) in WITHIN.items():
                more = {"num_agents": updates * AGENTS, "minibatch_size": BATCH}
                spec = lagged_spec(game, seed, correction, rounds, **more)
                runs.append(spec.called(correction, str(TOTAL), kind))
        return runs

    def claims(self, table):
        within = table.select(correction=SHUFFLED, lag=TOTAL)
        claims = [self.claim("within", differs(_difference(within, "within")), [table.missing])]
        for kind in RANDOM:
            claims.append(self.claim(kind, differs(_difference(table, kind)), [table.missing], kind=kind))
        return claims

    def plot(self, table, stem):
        mark_scores(table, "kind", stem)


def mark_scores(table: Measurements, dimension: str, stem: Path) -> None:
    """Draw the scores with each correction and lag, with a mark for each value of a dimension."""
    marks = {
        name: {
            f"{correction}, {lag}": cell.numbers(SCORE)
            for (correction, lag), cell in part.parts("correction", "lag")
        }
        for name, part in table.parts(dimension)
    }
    label = "mean score (bars: range of seeds)"
    canvas.mark_picture(marks, label, stem, 2.6, level=random_score(table))


def _difference(table: Measurements, kind: str) -> Effect:
    """Return the mean score with a kind of lag minus that with a constant one, seed by seed."""
    groups = (table.select(kind=kind), table.select(kind=CONSTANT))
    return paired(*(group.series(SCORE) for group in groups))

"""Table 2 of IMPALA inside GA3C: corrections of policy lag, at fixed lags in A2C and at the lag that GA3C
has.

A2C trains on the batch of K updates ago, with everything else equal, so that each correction meets a known
lag. Without lag, all corrections have the same gradient, so A2C without lag is run without a correction only.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from ga3c_tf.reproduce.drawing import canvas
from ga3c_tf.reproduce.figures import metrics
from ga3c_tf.reproduce.figures.figure import Added, Figure
from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.figures.metrics import SCORE
from ga3c_tf.reproduce.figures.normalized import random_score
from ga3c_tf.reproduce.figures.plans import learning_spec
from ga3c_tf.reproduce.figures.tables import Cell, Table, mean_of, means_of
from ga3c_tf.reproduce.measures.aggregates import probability_of_improvement
from ga3c_tf.reproduce.measures.estimates import Effect, paired
from ga3c_tf.reproduce.measures.text import number
from ga3c_tf.reproduce.measures.verdicts import RUNS_MISSING, UNPLANNED_LOOK, Claim, Guard, above, between
from ga3c_tf.reproduce.runs.specs import run_spec

CORRECTIONS = ("none", "epsilon", "clipped-is", "one-step", "v-trace", "ppo")
LAGS = (1, 16, 256)
WITHOUT_LAG = "lag 0"
AS_IT_RUNS = "GA3C"
SETTINGS = (WITHOUT_LAG, *(f"lag {lag}" for lag in LAGS), AS_IT_RUNS)
STEPS = 400_000
RATE = 4e-3
CLIP_RATIO = 0.2
BATCH = 160
JUDGED = ("lag 16", "lag 256", AS_IT_RUNS)
"""Settings at which corrections are judged, because there is enough lag to correct."""
PAIRS = (
    ("epsilon", "none"),
    ("clipped-is", "epsilon"),
    ("one-step", "epsilon"),
    ("v-trace", "epsilon"),
    ("ppo", "epsilon"),
    ("v-trace", "one-step"),
)
"""Pairs of corrections that are judged: whether the first scores more than the second."""
PLANNED_SEEDS = 5
CONFIDENCE = 0.9998
"""Confidence of the interval of each of `PAIRS`, for `PLANNED_SEEDS`; with fewer it would be wrong too often.

A bootstrap of five seeds is too narrow: this interval is wrong in 0.1 % of cases.
"""
MEASURES = (
    *(metrics.LAG, metrics.LAG_STATES, metrics.SPREAD, metrics.BOOTSTRAP),
    *(metrics.KL, metrics.TOTAL_VARIATION, metrics.SAMPLE_SIZE),
)
MOST_LOST = 0.5
"""Training counts as failed if it loses more than this share of the gain without lag."""
GAIN = 1.0
"""A run counts as having learned if it scores more than this many points above its first score."""


def lost(table: Measurements) -> Effect:
    """Return the share of A2C's gain without lag that GA3C loses without a correction."""
    asynchronous, synchronous = (
        pd.Series(
            {row.facts["seed"]: metrics.gain(row) for row in table.select(correction="none", lag=lag).rows}
        )
        for lag in (AS_IT_RUNS, WITHOUT_LAG)
    )
    shares = (1 - asynchronous / synchronous[synchronous > GAIN]).dropna()
    return paired(shares, limit=MOST_LOST).looked(2 if table.has_added else 1)


def clipped_at(lag: str) -> Cell:
    """Return a cell with the share of ratios that a correction clips at a lag, or of logarithms it floors."""

    def cell(part: Measurements) -> str:
        selected = part.select(lag=lag)
        values = [*selected.numbers(metrics.CLIPPED), *selected.numbers(metrics.FLOORED)]
        return number(sum(values) / len(values)) if values else "-"

    return cell


class CorrectionsFigure(Figure):
    """All corrections on the same five seeds; the last claim has seeds added, as it was undecided."""

    name = "corrections"
    games = {"smoke": ("cartpole",), "quick": ("minatar_breakout",)}
    counts = {"quick": PLANNED_SEEDS}
    added = (
        Added(
            ("minatar_breakout",),
            range(6, 12),
            lambda spec: spec.label in (("none", WITHOUT_LAG), ("none", AS_IT_RUNS)),
        ),
    )
    smoke = (
        {"system": "a2c", "correction": "epsilon", "lag": 1, "called": ("epsilon", "lag 1")},
        {"correction": "v-trace", "called": ("v-trace", AS_IT_RUNS)},
    )
    labels = {"correction": str, "lag": str}
    measured = (
        *metrics.OF_LAGGED_RUNS,
        metrics.lag_measures(*MEASURES, metrics.CLIPPED, metrics.FLOORED),
    )
    main = (SCORE, "points")
    by_game = True
    tables = (
        Table(
            ("correction",),
            {lag: mean_of(SCORE, lag=lag) for lag in SETTINGS},
            "mean score of the run",
            {"added": False},
        ),
        Table(
            ("lag",),
            means_of(*MEASURES, metrics.END),
            "lag and divergence without a correction",
            {"correction": "none", "added": False},
        ),
        Table(
            ("correction",),
            {lag: clipped_at(lag) for lag in SETTINGS[1:]},
            "share of the importance ratios that are clipped (epsilon: of the logarithms at its floor)",
            {"correction": CORRECTIONS[1:], "added": False},
        ),
    )
    words = {"judged": JUDGED, "confidence": CONFIDENCE, "steps": STEPS, "rate": RATE}

    def planned(self, budget, game, seed):
        usual: dict[str, Any] = {"num_agents": 32, "learning_rate": RATE, "log_seconds": 10.0}
        without = run_spec(game, seed, "a2c", **usual, correction="none", steps=STEPS)
        runs = [without.called("none", WITHOUT_LAG)]
        for name in CORRECTIONS:
            clipped = {"clip_ratio": CLIP_RATIO} if name == "ppo" else {}
            settings: dict[str, Any] = {**usual, "correction": name, **clipped}
            for lag in LAGS:
                # The steps of the first rounds come on top, because no batch is old enough to train on yet.
                steps = STEPS + lag * BATCH
                spec = run_spec(game, seed, "a2c", **settings, lag=lag, steps=steps)
                runs.append(spec.called(name, f"lag {lag}"))
            runs.append(learning_spec(game, seed, **settings, steps=STEPS).called(name, AS_IT_RUNS))
        return runs

    def claims(self, table):
        planned = table.select(added=False)
        return [
            *(self._improvement(planned, first, second) for first, second in PAIRS),
            self.claim("off-policy", above(lost(table)), [table.missing]),
        ]

    def _improvement(self, table: Measurements, first: str, second: str) -> Claim:
        """Return the claim that a run with the first correction probably scores more, over `JUDGED`."""
        scores = [
            [table.select(correction=name, lag=lag).numbers(SCORE) for lag in JUDGED]
            for name in (first, second)
        ]
        test = between(probability_of_improvement(scores[0], scores[1], CONFIDENCE))
        missing = Guard(RUNS_MISSING, not all(map(len, scores[0] + scores[1])))
        fewest = min(map(len, scores[0] + scores[1]))
        guards = [missing, table.missing, Guard(UNPLANNED_LOOK, fewest < PLANNED_SEEDS)]
        return self.claim(f"{first}-{second}", test, guards, first=first, second=second)

    def plot(self, table, stem):
        lines = {
            name: {lag: part.select(lag=lag).numbers(SCORE) for lag in SETTINGS}
            for name, part in table.select(added=False).parts("correction")
        }
        label = "mean score (bars: range of seeds)"
        canvas.mark_picture(lines, label, stem, 2.6, level=random_score(table))

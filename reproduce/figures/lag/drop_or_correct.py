"""Whether GA3C learns more in the same time if it drops stale segments, corrects them, or both.

Dropped segments cost the time of their steps and spare that of their updates, so only equal time is fair.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.measurements import Measure
from ga3c_tf.reproduce.figures.metrics import LAG, lag_measures
from ga3c_tf.reproduce.figures.plans import workers
from ga3c_tf.reproduce.figures.tables import Table, means_of
from ga3c_tf.reproduce.measures.curves import mean_score
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS
from ga3c_tf.reproduce.measures.verdicts import differs
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import run_spec

RATE = 4e-3
MINIMA = (0, 20)
"""Minimum training batches: the authors', whose lag was about 60 updates on seed 101, and one of about 9."""
MOST = 8
"""Updates after which a segment is dropped."""
DROPPED = {"max_policy_lag": MOST}
WAYS: dict[str, dict[str, Any]] = {
    "neither": {"correction": "none"},
    "dropped": {"correction": "none", **DROPPED},
    "corrected": {"correction": "v-trace"},
    "both": {"correction": "v-trace", **DROPPED},
}
"""What is done about stale segments, with its settings."""
MINUTES = {"cartpole": 1.0, "minatar_breakout": 4.0}
FIRST_SEED = 61
"""First of the seeds that no run had used."""
SCORE = "mean score over equal time"
SHARE = "share of steps dropped"
STEPS = "agent steps"


def share_dropped(run: RecordedRun) -> float:
    """Return the share of a run's agent steps that were dropped. A resumed run counts its drops anew."""
    counts = run.metrics["dropped_steps"]
    ends_of_sessions = np.diff(counts, append=-1) < 0
    return float(counts[ends_of_sessions].sum()) / run.agent_steps


def _measures(run: RecordedRun) -> list[Measure]:
    protocol = f"mean of {run.spec.config.rolling_episodes} episodes of training, over time"
    return [
        Measure(SCORE, mean_score(run.curve, "time_s"), "points", protocol, "no episode ended"),
        Measure(SHARE, share_dropped(run), "share", "of the agent steps of the run"),
        Measure(STEPS, float(run.agent_steps), "steps", "of the run"),
    ]


class DropOrCorrectFigure(Figure):
    """Pairs of runs of one seed on one machine, whose speed must not have changed between them."""

    name = "drop-or-correct"
    games = {"smoke": ("cartpole",), "quick": tuple(MINUTES)}
    only = tuple(MINUTES)
    counts = {"quick": LEAST_SEEDS}
    first_seed = FIRST_SEED
    looks = (LEAST_SEEDS, 2 * LEAST_SEEDS)
    smoke = tuple({**WAYS[way], "called": ("minimum 20", way)} for way in ("neither", "dropped"))
    labels = {"batches": str, "way": str}
    measured = (_measures, lag_measures(LAG))
    main = (SCORE, "points")
    by_game = True
    lines = "way"
    panels = "batches"
    tables = (Table(("batches", "way"), means_of(SCORE, STEPS, SHARE, LAG)),)
    words = {"minutes": MINUTES, "rate": RATE, "most": MOST}

    def planned(self, budget, game, seed):
        usual: dict[str, Any] = {**workers(32), "learning_rate": RATE, "log_seconds": 5.0}
        runs = []
        for minimum, way in product(MINIMA, WAYS):
            settings = {**usual, **WAYS[way], "min_training_batch": minimum, "minutes": MINUTES[game]}
            runs.append(run_spec(game, seed, **settings).called(f"minimum {minimum}", way))
        return runs

    def claims(self, table):
        claims = []
        for batches, part in table.parts("batches"):
            pairs = part.pairs(SCORE, {"way": "corrected"}, {"way": "dropped"})
            test = differs(pairs.difference())
            claims.append(self.claim(batches.replace(" ", "-"), test, part.timed(pairs), batches=batches))
        return claims

"""Where policy lag comes from, on CartPole: rounds of long ago, or many updates on one round.

Both sides have the same agents, agent steps, updates, states per update, and lags: uniform from 0 to twice
their mean. Advantages are of one step (lambda 0), so that the length of a segment does not enter them.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from ga3c_tf.config import Config
from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.lag.kinds_of_lag import mark_scores
from ga3c_tf.reproduce.figures.lag.tolerated_lag import (
    AGENTS,
    BATCH,
    CLIP_RATIO,
    RATE,
    STEPS,
    little_learned,
)
from ga3c_tf.reproduce.figures.measurements import Measure
from ga3c_tf.reproduce.figures.metrics import (
    END,
    KL,
    LAG,
    SAMPLE_SIZE,
    SCORE,
    final_score,
    first_score,
    lag_measures,
    score_of_run,
)
from ga3c_tf.reproduce.figures.tables import Table, means_of
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS, paired
from ga3c_tf.reproduce.measures.verdicts import differs
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec, run_spec

T_MAX = BATCH // AGENTS
COLLECTED = "rounds of long ago"
REUSED = "updates on one round"
LAGS = (16, 64)
CORRECTIONS: dict[str, dict[str, Any]] = {"none": {}, "ppo": {"clip_ratio": CLIP_RATIO}}
"""Corrections that take minibatches of shuffled steps, and their settings."""
FIRST_SEED = 51
"""First of the seeds that no run had used. Lambda was chosen on seed 101."""


def longest(lag: int) -> int:
    """Return the updates after which every step of a mean lag is trained on."""
    return 2 * lag + 1


def mean_lag(config: Config) -> int:
    """Return the mean lag, in updates, that the settings of a run make."""
    return config.lag or (config.t_max // T_MAX - 1) // 2


def sourced_spec(game: str, seed: int, correction: str, lag: int, source: str) -> RunSpec:
    """Return a run of A2C whose lag has a mean and a source."""
    settings: dict[str, Any] = {
        "num_agents": AGENTS,
        "learning_rate": RATE,
        "log_seconds": 10.0,
        "advantage": "gae",
        "gae_lambda": 0.0,
        **CORRECTIONS[correction],
    }
    if lag and source == COLLECTED:
        settings |= {"lag": lag, "lag_distribution": "uniform"}
    if lag and source == REUSED:
        settings |= {"t_max": T_MAX * longest(lag), "minibatch_size": BATCH}
    steps = STEPS[game] + longest(lag) * BATCH
    spec = run_spec(game, seed, "a2c", **settings, correction=correction, steps=steps)
    return spec.called(correction, str(lag), source)


def score_after_longest(run: RecordedRun) -> list[Measure]:
    """Return the mean score without the first steps, of which one source trains on fewer than the other."""
    after = longest(mean_lag(run.spec.config)) * BATCH
    return score_of_run(run, "over the agent steps after those of the longest lag", after)


class SourcesOfLagFigure(Figure):
    """A two-sided question for each mean lag, by differences of runs of one seed."""

    name = "sources-of-lag"
    by_game = True
    games = {"smoke": ("cartpole",), "quick": ("cartpole",)}
    only = tuple(STEPS)
    counts = {"quick": LEAST_SEEDS}
    first_seed = FIRST_SEED
    looks = (LEAST_SEEDS, 2 * LEAST_SEEDS)
    main = (SCORE, "points")
    smoke = (
        {"system": "a2c", "correction": "none", "lag": 1, "called": ("none", "1", COLLECTED)},
        {"system": "a2c", "correction": "none", "minibatch_size": 10, "called": ("none", "1", REUSED)},
    )
    labels = {"correction": str, "lag": int, "source": str}
    measured = (score_after_longest, final_score, first_score, lag_measures(LAG, KL, SAMPLE_SIZE))
    tables = (Table(("correction", "lag", "source"), means_of(SCORE, END, LAG, KL, SAMPLE_SIZE)),)

    def planned(self, budget, game, seed):
        runs = [sourced_spec(game, seed, "none", 0, COLLECTED)]
        for setting in product(CORRECTIONS, LAGS, (COLLECTED, REUSED)):
            runs.append(sourced_spec(game, seed, *setting))
        return runs

    def claims(self, table):
        guards = [table.missing, little_learned(table)]
        claims = []
        for lag in LAGS:
            sources = (table.select(lag=lag, source=source) for source in (REUSED, COLLECTED))
            difference = paired(*(part.series(SCORE, least=len(CORRECTIONS)) for part in sources))
            claims.append(self.claim(f"lag-{lag}", differs(difference), guards, lag=lag))
        return claims

    def plot(self, table, stem):
        mark_scores(table, "source", stem)

"""How much policy lag learning tolerates with each correction, as in Table 3 of AReaL (arXiv 2505.24298).

A2C trains on the batch of K updates ago, with everything else equal. Without lag all corrections but
IMPACT have the same gradient, so A2C without lag is run without a correction only.

The share of the gain that is left at a lag decides: the gain of a run is its mean score minus its first
score, and the gain without lag is the mean over the seeds.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from ga3c_tf.config.corrections import CLIPPED, parts_of
from ga3c_tf.reproduce.drawing import lag_plots
from ga3c_tf.reproduce.figures import metrics
from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.lag import lag_boundary
from ga3c_tf.reproduce.figures.measurements import Measure, Measurements
from ga3c_tf.reproduce.figures.metrics import END, SCORE, gain
from ga3c_tf.reproduce.figures.tables import Table, mean_of, means_of
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS, paired
from ga3c_tf.reproduce.measures.text import mean_ci, number
from ga3c_tf.reproduce.measures.verdicts import TOO_SHORT, Guard, above
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec, run_spec
from ga3c_tf.trained.intervals import student_interval

CORRECTIONS = (
    "none",
    "epsilon",
    "clipped-is",
    "one-step",
    "v-trace",
    "ppo",
    "decoupled-ppo",
    "m2po",
    "icepop",
    "dppo-tv",
    "deepseek-v3.2",
    "vcpo",
    "impact",
)
LAGS = (1, 4, 16, 64, 256)
OCTAVES = math.log2(LAGS[-1] / LAGS[0])
STEPS = {"cartpole": 200_000, "minatar_breakout": 300_000, "minatar_space_invaders": 300_000}
AGENTS = 32
BATCH = 160
RATE = 4e-3
CLIP_RATIO = 0.2
FIRST_SEED = 41
"""First of the seeds that no run had used. Steps and learning rate were chosen on seeds from 101 on."""
KEPT = 0.5
"""A lag is tolerated if this share of the gain without lag is left."""
GAIN = {"cartpole": 50.0}
"""Points that a game must gain without lag, on average, before anything is judged; 1 for other games."""
PAIRS = (
    ("v-trace", "none"),
    ("ppo", "none"),
    ("icepop", "none"),
    ("decoupled-ppo", "ppo"),
    ("m2po", "ppo"),
    ("vcpo", "clipped-is"),
    ("impact", "v-trace"),
)
"""Pairs of corrections that are judged: whether more of the gain is left with the first."""
CHI_SQUARED = "chi squared"
M2 = "second moment of log-ratios"
MASKED = "share of states masked"
MOVED = {CHI_SQUARED: ("chi_squared", "share"), M2: ("m2", "share"), MASKED: ("masked", "share")}
"""Column of metrics.csv and unit of the measures that `lag_measures` does not have."""


def lagged_spec(game: str, seed: int, correction: str, lag: int, **settings: Any) -> RunSpec:
    """Return a run of A2C with a correction, which trains on the batches of so many rounds ago.

    The steps of the first rounds come on top, because no batch is old enough to train on yet.
    """
    usual: dict[str, Any] = {"num_agents": AGENTS, "learning_rate": RATE, "log_seconds": 10.0}
    if set(parts_of(correction)) & set(CLIPPED):
        usual["clip_ratio"] = CLIP_RATIO
    if lag:
        usual["lag"] = lag
    chosen = {**usual, **settings}
    steps = STEPS[game] + lag * chosen["num_agents"] * BATCH // AGENTS
    return run_spec(game, seed, "a2c", **chosen, correction=correction, steps=steps)


def little_learned(table: Measurements) -> Guard:
    """Whether too little is learned without lag to say what lag costs."""
    gains = [gain(row) for row in table.select(lag=0).rows if row.run.ended]
    return Guard(TOO_SHORT, not gains or not np.mean(gains) >= least_gain(table))


def least_gain(table: Measurements) -> float:
    """Return the points that must be gained without lag."""
    return GAIN.get(table.game, 1.0)


def shares(table: Measurements, correction: str) -> pd.DataFrame:
    """Return the share of the gain without lag that is left, by seed with all lags (rows) and lag."""
    rows = [*table.select(lag=0).rows, *table.select(correction=correction, lag=LAGS).rows]
    gains = pd.Series({row.key(("seed", "lag")): gain(row) for row in rows if row.run.ended}, dtype=float)
    every = gains.reindex(pd.MultiIndex.from_product([table.names("seed"), (0, *LAGS)])).unstack()
    left = lag_boundary.shares(every.to_numpy(), least_gain(table))
    return pd.DataFrame(left, every.index, every.columns).dropna()


def mean_share(share: pd.DataFrame) -> pd.Series:
    """Return the mean share of the gain over the logarithm of the lag, by seed."""
    return pd.Series(lag_boundary.area(share.to_numpy(), LAGS) / OCTAVES, share.index)


def tolerated(share: pd.DataFrame) -> np.ndarray:
    """Return the base-2 logarithm of the lag that is tolerated, by seed: from 0 (a lag of 1) to that of 256.

    It is the length of the logarithm of the lag over which at least `KEPT` is left, with straight lines
    between the lags: where the share falls, the place at which it passes `KEPT`.
    """
    fine = np.linspace(0, OCTAVES, 1601)
    rows = [np.interp(fine, np.log2(LAGS), row) >= KEPT for row in share[list(LAGS)].to_numpy()]
    return OCTAVES * np.array([row.mean() for row in rows])


def tolerated_lag(part: Measurements) -> str:
    """Return a cell with the geometric mean of the tolerated lag and its interval, in updates."""
    powers = tolerated(_shares_of(part))
    if not len(powers):
        return "-"
    middle = number(2 ** float(powers.mean()))
    if len(powers) < LEAST_SEEDS:
        return middle
    ends = np.clip(student_interval(powers), 0.0, OCTAVES)
    low, high = map(number, np.exp2(ends).tolist())
    return f"{middle} [{low}, {high}]"


def share_kept(part: Measurements) -> str:
    """Return a cell with the mean share of the gain that is left, over the logarithm of the lag."""
    return mean_ci(mean_share(_shares_of(part)).tolist())


def _shares_of(part: Measurements) -> pd.DataFrame:
    """Return `shares` of the correction of a part; the runs without lag are in the rest of the table."""
    table = FIGURE.table(part.results).select(game=part.game)
    return shares(table, part.rows[0].facts["correction"])


def _moved(run: RecordedRun) -> list[Measure]:
    """Return how far the policy has moved, by the measures that `lag_measures` does not have."""
    steady = run.steady(0.1 * 3600 * run.hours)
    rows = "mean over the rows of metrics.csv after the first tenth"
    return [
        Measure(name, steady[column], unit, rows, "not measured") for name, (column, unit) in MOVED.items()
    ]


MEASURED = (*metrics.OF_LAGGED_RUNS, _moved)


class ToleratedLagFigure(Figure):
    """All corrections on the same seeds at the same lags, judged after three seeds and again after six."""

    name = "tolerated-lag"
    games = {"smoke": ("cartpole",), "quick": tuple(STEPS)}
    only = tuple(STEPS)
    counts = {"quick": LEAST_SEEDS}
    first_seed = FIRST_SEED
    looks = (LEAST_SEEDS, 2 * LEAST_SEEDS)
    main = (SCORE, "points")
    scores = (SCORE, END)
    by_game = True
    smoke = (
        {"system": "a2c", "correction": "none", "called": ("none", "0")},
        {"system": "a2c", "correction": "none", "lag": 1, "called": ("none", "1")},
    )
    labels = {"correction": str, "lag": int}
    measured = MEASURED
    words = {
        "steps": STEPS,
        "rate": RATE,
        "kept": KEPT,
        "first": LAGS[0],
        "last": LAGS[-1],
        "clip": CLIP_RATIO,
    }
    tables = (
        Table(
            ("correction",),
            {
                "tolerated lag": tolerated_lag,
                "share of the gain": share_kept,
                **{f"lag {lag}": mean_of(SCORE, lag=lag) for lag in (0, *LAGS)},
            },
            "tolerated lag (updates), share of the gain over all lags, and mean score at each lag",
        ),
        Table(
            ("lag",),
            means_of(metrics.KL, metrics.TOTAL_VARIATION, metrics.SAMPLE_SIZE, CHI_SQUARED, M2, END),
            "divergence without a correction",
            {"correction": "none"},
        ),
    )

    def planned(self, budget, game, seed):
        runs = [lagged_spec(game, seed, "none", 0).called("none", "0")]
        for lag, correction in product(LAGS, CORRECTIONS):
            runs.append(lagged_spec(game, seed, correction, lag).called(correction, str(lag)))
        return runs

    def claims(self, table):
        guards = [table.missing, little_learned(table)]
        return [
            self.claim(
                f"{first}-{second}",
                above(paired(mean_share(shares(table, first)), mean_share(shares(table, second)))),
                guards,
                first=first,
                second=second,
            )
            for first, second in PAIRS
        ]

    def plot(self, table, stem):
        means = {name: shares(table, name).mean() for name in table.names("correction")}
        lag_plots.shares_kept(pd.DataFrame(means, LAGS).T, stem)


FIGURE = ToleratedLagFigure()

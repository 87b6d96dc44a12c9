"""How much policy lag learning tolerates with each correction, as in Table 3 of AReaL (arXiv 2505.24298).

A2C trains on the batch of K updates ago, with everything else equal. Without lag all corrections but
IMPACT have the same gradient, so A2C without lag is run without a correction only.

The share of the gain that is left at a lag decides: the gain of a run is its mean score minus its first
score, and the gain without lag is the mean over the seeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from ga3c_tf.config.corrections import CLIPPED, parts_of
from ga3c_tf.reproduce.drawing import lag_plots
from ga3c_tf.reproduce.figures import metrics
from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.lag import lag_boundary
from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.figures.metrics import END, SCORE, gain
from ga3c_tf.reproduce.figures.tables import Table, mean_of, means_of
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS, jackknifed, paired
from ga3c_tf.reproduce.measures.text import number
from ga3c_tf.reproduce.measures.verdicts import TOO_SHORT, Guard, above
from ga3c_tf.reproduce.runs.specs import RunSpec, run_spec

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
DIVERGENCES = (
    metrics.KL,
    metrics.TOTAL_VARIATION,
    metrics.SAMPLE_SIZE,
    metrics.CHI_SQUARED,
    metrics.M2,
)


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


def gains(table: Measurements, correction: str) -> pd.DataFrame:
    """Return the gain of each run by seed with all lags (rows) and lag."""
    rows = [*table.select(lag=0).rows, *table.select(correction=correction, lag=LAGS).rows]
    of_run = pd.Series({row.key(("seed", "lag")): gain(row) for row in rows if row.run.ended}, dtype=float)
    every = pd.MultiIndex.from_product([table.names("seed"), (0, *LAGS)])
    return of_run.reindex(every).unstack().dropna()


def mean_shares(table: Measurements, correction: str) -> pd.Series:
    """Return the mean share of the gain without lag over the logarithm of the lag, by seed."""
    gain = gains(table, correction)
    share = lag_boundary.shares(gain.to_numpy(), least_gain(table))
    return pd.Series(lag_boundary.area(share, LAGS) / OCTAVES, gain.index).dropna()


def tolerated(gain: np.ndarray, least: float) -> float:
    """Return the base-2 logarithm of the lag that is tolerated: from 0 (a lag of 1) to that of 256.

    It is the length of the logarithm of the lag over which at least `KEPT` is left, with straight lines
    between the lags: where the share falls, the place at which it passes `KEPT`. It is a mean over the seeds.

    Args:
        gain: gains [seed, lag].
        least: gain without lag below which nothing was learned, and the result is not-a-number.
    """
    share = lag_boundary.shares(gain, least)
    if np.isnan(share).any():
        return math.nan
    fine = np.linspace(0, OCTAVES, 1601)
    return OCTAVES * float(np.mean([np.interp(fine, np.log2(LAGS), row[1:]) >= KEPT for row in share]))


def tolerated_lag(part: Measurements) -> str:
    """Return a cell with the geometric mean of the tolerated lag and its interval, in updates."""
    gain, least = _gains_of(part)
    middle, *ends = jackknifed(gain, lambda of_seeds: tolerated(of_seeds, least))
    if math.isnan(middle):
        return "-"
    text = number(2**middle) if middle < OCTAVES else f"{LAGS[-1]} or more"
    if len(gain) < LEAST_SEEDS or math.isnan(ends[0]):
        return text
    low, high = map(number, np.exp2(np.clip(ends, 0.0, OCTAVES)).tolist())
    return f"{text} [{low}, {high}]"


def share_kept(part: Measurements) -> str:
    """Return a cell with the mean share of the gain that is left, over the logarithm of the lag."""
    gain, least = _gains_of(part)

    def mean_share(of_seeds: np.ndarray) -> float:
        return float(lag_boundary.area(lag_boundary.shares(of_seeds, least), LAGS).mean()) / OCTAVES

    return lag_boundary.share_cell(gain, mean_share)


def _gains_of(part: Measurements) -> tuple[np.ndarray, float]:
    """Return the gains [seed, lag] of the correction of a part, and the least gain without lag."""
    table = part.of_game
    return gains(table, part.rows[0].facts["correction"]).to_numpy(), least_gain(table)


class ToleratedLagFigure(Figure):
    """All corrections on the same seeds at the same lags, judged after three seeds and again after six."""

    name = "tolerated-lag"
    games = {"smoke": ("cartpole",), "quick": tuple(STEPS)}
    only = tuple(STEPS)
    counts = {"quick": LEAST_SEEDS}
    first_seed = FIRST_SEED
    looks: Sequence[int] = (LEAST_SEEDS, 2 * LEAST_SEEDS)
    main = (SCORE, "points")
    scores: Sequence[str] = (SCORE, END)
    by_game = True
    smoke = (
        {"system": "a2c", "correction": "none", "called": ("none", "0")},
        {"system": "a2c", "correction": "none", "lag": 1, "called": ("none", "1")},
    )
    labels = {"correction": str, "lag": int}
    measured: Sequence[Any] = (*metrics.OF_LAGGED_RUNS, metrics.lag_measures(*DIVERGENCES))
    words = {
        "steps": STEPS,
        "rate": RATE,
        "kept": KEPT,
        "first": LAGS[0],
        "last": LAGS[-1],
        "clip": CLIP_RATIO,
    }
    tables: Sequence[Table] = (
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
            means_of(*DIVERGENCES, END),
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
                above(paired(mean_shares(table, first), mean_shares(table, second))),
                guards,
                first=first,
                second=second,
            )
            for first, second in PAIRS
        ]

    def plot(self, table, stem):
        means = {}
        for name in table.names("correction"):
            share = lag_boundary.shares(gains(table, name).to_numpy(), least_gain(table))
            means[name] = pd.DataFrame(share[:, 1:]).mean().to_numpy()
        lag_plots.shares_kept(pd.DataFrame(means, LAGS).T, stem)

"""How much policy lag learning tolerates, by learning rate and batch size, for two optimizers.

The predictions were committed before the runs. With the authors' optimizer, whose steps grow with the summed
gradient, the tolerated lag is such that the learning rate times the lag in states is constant. With an
adaptive optimizer, whose steps do not depend on the size of the gradient, the learning rate times the lag in
updates is constant. So a batch of a quarter of the size tolerates four times the lag in updates with the
first optimizer, and the same lag with the second. A quarter of the learning rate tolerates four times the lag
with both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from ga3c_tf.reproduce.drawing import lag_plots
from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.figures.metrics import SCORE, first_score, gain, score_from_first_update
from ga3c_tf.reproduce.figures.tables import Cell, Table
from ga3c_tf.reproduce.measures import verdicts
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS, Effect, jackknife, jackknifed, paired
from ga3c_tf.reproduce.measures.text import counted, with_ends
from ga3c_tf.reproduce.measures.verdicts import Claim, Guard, above, all_of
from ga3c_tf.reproduce.runs.specs import run_spec

T_MAX = 5
STEPS = 200_000
LAGS = (0, 4, 16, 64, 256, 1024)
AGENTS = (4, 16)
RATES = (4e-3, 1.6e-2)
AUTHORS = "authors' (sum, epsilon 0.1)"
ADAPTIVE = "adaptive (mean, epsilon 1e-5)"
SETTINGS: dict[str, dict[str, Any]] = {
    AUTHORS: {},
    ADAPTIVE: {"loss_reduction": "mean", "rmsprop_epsilon": 1e-5},
}
SEEDS = 5
"""Number of seeds after which the claims were judged for the first time."""
MORE_SEEDS = {"minatar_breakout": 10}
"""The game that got more seeds at `quick`, because the three shifts were undecided. Only these use them."""
GAIN = 1.0
"""Points above the first score that a cell must gain without lag to count as having learned."""
HALFWAY = 1.0
"""Halfway between a shift of 0 (the same lag) and 2 (four times the lag)."""
LEAST_DROP = 0.2
"""Lag matters if the largest lag costs at least this share of the gain more than the smallest above 0."""
DELAY = 16
"""Lag in batches at which BA3C's claim is judged: the first of `LAGS` above ten."""
KEPT = 0.5
"""Learning counts as stopped if it gains less than this share of the gain without lag."""
LEAST_ROWS = 3
"""Number of rows of the table that must have learned without lag before a claim about all is supported."""
ROW = ("optimizer", "rate", "agents")
"""The dimensions of a setting whose runs differ in lag and seed only."""


def gains(table: Measurements) -> np.ndarray:
    """Return the gain of each run: [optimizer, rate, agents, seed, lag], not-a-number where there is none."""
    axes = [*(table.names(name) for name in (*ROW, "seed")), LAGS]
    values = pd.Series({row.key((*ROW, "seed", "lag")): gain(row) for row in table.rows})
    every = values.reindex(pd.MultiIndex.from_product(axes))  # without the lags of smoke runs
    return every.to_numpy(float).reshape([len(axis) for axis in axes])


def shares(gain: np.ndarray, least: float = GAIN) -> np.ndarray:
    """Return gains [..., seed, lag] as shares of the gain without lag, which is averaged over the seeds.

    Seeds without all lags are left out, as not-a-number, and settings whose gain without lag is below
    `least`.
    """
    whole = np.where(np.isfinite(gain).all(axis=-1, keepdims=True), gain, np.nan)
    without = np.ma.masked_invalid(whole[..., :1]).mean(axis=-2, keepdims=True).filled(np.nan)
    return whole / np.where(without >= least, without, np.nan)


def area(share: np.ndarray, lags: Sequence[int] = LAGS[1:]) -> np.ndarray:
    """Return the area under the curve of shares [..., lag] over the base-2 logarithm of the lags above 0."""
    return np.trapezoid(share[..., 1:], np.log2(lags), axis=-1)


def shift(gain: np.ndarray, compared: int) -> float:
    """Return how many times more lag the cells with the smaller value tolerate, as a base-2 logarithm.

    If two curves of the same shape are shifted by x, the areas under them differ by about x times their mean
    drop. This is exact if the curves are straight at both ends of the range.

    Args:
        gain: gains with one optimizer, [rate, agents, seed, lag].
        compared: axis by which the cells are divided into two groups: 0 or 1.

    Returns:
        The shift; not-a-number if a setting did not learn, or if lag costs less than `LEAST_DROP` of the
        gain.
    """
    share = shares(gain)
    drop = (share[..., 1] - share[..., -1]).mean()
    small, large = np.moveaxis(area(share), compared, 0).mean(axis=(1, 2))
    return float((small - large) / drop) if drop >= LEAST_DROP else math.nan


def contrast(gain: np.ndarray, compared: int) -> Effect:
    """Compare the mean `shift` of the optimizers with `HALFWAY` by Student's t test of `jackknife` values: it
    is relative to the gain without lag and to the drop, which all seeds share.

    Args:
        gain: gains, [optimizer, rate, agents, seed, lag]; seeds without all cells are left out.
        compared: as in `shift`.

    Returns:
        The shift; its effect is not-a-number if that of an optimizer is.
    """
    whole = gain[..., np.isfinite(gain).all(axis=(0, 1, 2, 4)), :]
    if whole.shape[3] < 2:
        return Effect(limit=HALFWAY)

    def mean_shift(part: np.ndarray) -> float:
        return float(np.mean([shift(of_optimizer, compared) for of_optimizer in part]))

    pseudo = jackknife(whole, mean_shift, axis=3)
    if pseudo.isna().any():
        return Effect(n=len(pseudo), limit=HALFWAY, note="a setting did not learn, or lag costs too little")
    return paired(pseudo, limit=HALFWAY)


def at_delay(gain: np.ndarray) -> list[Effect]:
    """Return the gain at `DELAY` minus `KEPT` of the gain without lag, for each setting that learned."""
    learned = np.isfinite(shares(gain)[..., 0])
    settings = product(*map(range, learned.shape[:3]))
    groups = [gain[setting][learned[setting]].T for setting in settings if learned[setting].any()]
    place = LAGS.index(DELAY)
    left = [group[place].mean() / group[0].mean() for group in groups]
    note = f"{min(left):.2f} to {max(left):.2f} of the gain is left" if left else ""
    return [paired(pd.Series(group[place] - KEPT * group[0]), note=note) for group in groups]


def at_lag(lag: int) -> Cell:
    """Return a cell with the mean gain at a lag."""

    def cell(part: Measurements) -> str:
        values = [gain(row) for row in part.select(lag=lag).rows]
        finite = np.array(values)[np.isfinite(values)]
        return f"{finite.mean():.2f}" if len(finite) else "-"

    return cell


def left(part: Measurements) -> str:
    """Return a cell with the mean share of the gain that is left, over the logarithm of the lag."""
    gain = gains(part)[0, 0, 0]  # of one row of the table

    def mean_share(of_seeds: np.ndarray) -> float:
        return float(area(shares(of_seeds)).mean()) / math.log2(LAGS[-1] / LAGS[1])

    return share_cell(gain[np.isfinite(gain).all(axis=-1)], mean_share)


def share_cell(gain: np.ndarray, share: Callable[[np.ndarray], float]) -> str:
    """Return a cell with a share of the gains [seed, lag] and its interval, by `jackknifed`."""
    middle, *ends = jackknifed(gain, share)
    return "-" if math.isnan(middle) else f"{with_ends(middle, *ends)} ({counted(len(gain), 'seed')})"


class LagBoundaryFigure(Figure):
    """The predictions about the three shifts, and BA3C's claim."""

    name = "lag-boundary"
    games = {"smoke": ("cartpole",), "quick": ("minatar_breakout",)}
    smoke = tuple(
        {"system": "a2c", "num_agents": agents, "lag": 1, "called": (AUTHORS, "0.001", str(agents), "1")}
        for agents in (2, 4)
    )
    labels = {"optimizer": str, "rate": float, "agents": int, "lag": int}
    measured = (score_from_first_update, first_score)
    main = (SCORE, "points")
    by_game = True
    tables = (
        Table(ROW, {**{f"lag {lag}": at_lag(lag) for lag in LAGS}, "share of the gain that is left": left}),
    )
    words = {
        "steps": STEPS,
        "first": LAGS[1],
        "last": LAGS[-1],
        "halfway": HALFWAY,
        "gain": GAIN,
        "least_rows": LEAST_ROWS,
        "first_seeds": SEEDS,
    }

    def seeds(self, budget, game):
        return 1 if budget == "smoke" else MORE_SEEDS.get(game, SEEDS)

    def planned(self, budget, game, seed):
        return [
            run_spec(
                game,
                seed,
                "a2c",
                **SETTINGS[optimizer],
                num_agents=agents,
                learning_rate=rate,
                lag=lag,
                steps=STEPS + lag * agents * T_MAX,  # in the first rounds, no batch is old enough
                log_seconds=10.0,
            ).called(optimizer, f"{rate:g}", str(agents), str(lag))
            for optimizer, rate, agents, lag in product(SETTINGS, RATES, AGENTS, LAGS)
        ]

    def claims(self, table):
        gain = gains(table)
        looks = 2 if table.game in MORE_SEEDS and len(table.names("seed")) > SEEDS else 1
        shifts = {
            "states": contrast(gain[:1], 1),
            "updates": contrast(gain[1:], 1),
            "rate": contrast(gain, 0),
        }
        claims = []
        for key, shift in shifts.items():
            too_short = Guard(verdicts.TOO_SHORT, bool(shift.note))
            test = above(shift.looked(looks), below=key == "updates")
            claims.append(self.claim(key, test, [table.missing, too_short]))
        return [*claims, self._ten_batches(table.select(seed=tuple(table.names("seed")[:SEEDS])))]

    def _ten_batches(self, table: Measurements) -> Claim:
        """Return the claim that all rows of the table gain less than a share of the gain without lag."""
        rows = at_delay(gains(table))
        test = all_of([above(row, below=True) for row in rows], below=True)
        guards = [
            table.missing,
            Guard(verdicts.TOO_SHORT, not rows),
            Guard(verdicts.FEW_SEEDS, min((row.n for row in rows), default=0) < LEAST_SEEDS),
            Guard(verdicts.TOO_SHORT, len(rows) < LEAST_ROWS, (verdicts.HOLDS,)),
        ]
        return self.claim("ten-batches", test, guards)

    def plot(self, table, stem):
        share = shares(gains(table))
        names = [table.names(name) for name in ROW]
        points: dict[str, dict] = {name: {} for name in SETTINGS}
        for place in product(*map(range, share.shape[:3])):
            optimizer, rate, agents = (of_name[index] for of_name, index in zip(names, place, strict=True))
            rows = share[place][np.isfinite(share[place]).all(axis=-1)]
            if len(rows):
                points[optimizer][T_MAX * agents, rate] = [
                    (lag, value) for row in rows for lag, value in zip(LAGS[1:], row[1:], strict=True)
                ]
        lag_plots.boundaries(points, KEPT, stem)

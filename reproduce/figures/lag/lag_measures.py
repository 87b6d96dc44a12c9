"""Which measure of policy lag tells how much score is lost, on the runs of `tolerated-lag`.

Seeds 41 to 43 had been looked at. The predictions are fitted to them, and the KL divergence was chosen on
them: at equal lags its rank correlation with the loss is among the largest (0.41), and so is that of K3 and
of chi squared. The lag in updates predicted the loss better than all of these. New seeds judge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ga3c_tf.reproduce.drawing import canvas
from ga3c_tf.reproduce.figures.lag.tolerated_lag import FIRST_SEED, LAGS, ToleratedLagFigure, little_learned
from ga3c_tf.reproduce.figures.measurements import Measure, Measurements
from ga3c_tf.reproduce.figures.metrics import (
    CHI_SQUARED,
    COLUMNS,
    K3,
    KL,
    M2,
    SAMPLE_SIZE,
    SCORE,
    TOTAL_VARIATION,
    first_score,
    score_from_first_update,
)
from ga3c_tf.reproduce.figures.tables import Cell, Table
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS, paired
from ga3c_tf.reproduce.measures.text import mean_ci
from ga3c_tf.reproduce.measures.verdicts import above
from ga3c_tf.reproduce.runs.run import RecordedRun

MEASURES = (KL, K3, M2, CHI_SQUARED, TOTAL_VARIATION, SAMPLE_SIZE)
JUDGED = {
    "kl": (KL, "KL divergence is larger"),
    "sample-size": (SAMPLE_SIZE, "effective sample size is smaller"),
}
LAG = "lag"
NOTHING = "no measure"
FITTED = range(FIRST_SEED, FIRST_SEED + LEAST_SEEDS)
"""Seeds whose runs fit the predictions; all others judge."""


def moved(run: RecordedRun) -> list[Measure]:
    """Return how far the policy has moved by each measure, as a mean over the updates of the run.

    Most runs have one to three rows of metrics.csv, so each row counts with its updates.
    """
    updates = np.diff(run.metrics["updates"], prepend=0.0)
    measures = []
    for name in MEASURES:
        column, unit = COLUMNS[name]
        values = run.metrics[column]
        counts = np.isfinite(values) & (updates > 0)
        mean = float(np.average(values[counts], weights=updates[counts])) if counts.any() else math.nan
        measures.append(Measure(name, mean, unit, "mean over the updates of the run", "not measured"))
    return measures


def runs_of(table: Measurements) -> pd.DataFrame:
    """Return seed, lag, score and measures of each run that has them: a run that diverged has no measures.

    The effective sample size is negative here, so that every measure grows as the policy moves.
    """
    columns = ["seed", LAG, SCORE, *MEASURES]
    rows = [{**row.facts, **row.values} for row in table.rows if row.run.ended]
    runs = pd.DataFrame(rows, columns=columns).dropna()
    runs[SAMPLE_SIZE] = -runs[SAMPLE_SIZE]
    return runs.assign(**{NOTHING: 0.0})


def rank_correlations(runs: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return Spearman's rank correlation of each measure with the loss of score among the runs with lag.

    Args:
        runs: from `runs_of`.
        by: groups in which runs are ranked. The score without lag, which all runs of a seed share, cancels.

    Returns:
        The mean over the groups of a seed, [seed, measure].
    """
    of_groups = {}
    for key, part in runs[runs[LAG] > 0].groupby(list(by)):
        if len(part) > 2:
            of_groups[key] = part[list(MEASURES)].rank().corrwith(-part[SCORE].rank())
    table = pd.DataFrame(of_groups, list(MEASURES), dtype=float).T
    return table.groupby([key[0] for key in of_groups]).mean()


def at_equal_lag(runs: pd.DataFrame) -> pd.DataFrame:
    """Return `rank_correlations` among the runs of a seed and lag, which tell corrections apart."""
    return rank_correlations(runs, ["seed", LAG])


def errors(runs: pd.DataFrame, measure: str) -> pd.Series:
    """Return how wrong the predicted loss of score is, as mean absolute error in points by new seed.

    The loss is relative to the run without lag of the seed. Its prediction is the function of the measure
    that never falls and has the least squared error on the seeds `FITTED`: isotonic regression.

    Args:
        runs: from `runs_of`.
        measure: one of `MEASURES`, `LAG` or `NOTHING`.
    """
    from scipy.optimize import isotonic_regression  # takes a second, which other commands spare

    without = runs[runs[LAG] == 0].set_index("seed")[SCORE]
    lagged = runs[runs[LAG] > 0]
    loss = lagged["seed"].map(without) - lagged[SCORE]
    is_fitted = lagged["seed"].isin(FITTED)
    points = loss[is_fitted].groupby(lagged[measure]).agg(["mean", "size"]).dropna()
    if points.empty:
        return pd.Series(dtype=float)
    heights = isotonic_regression(points["mean"], weights=points["size"]).x
    predicted = np.interp(lagged[measure], points.index, heights)
    return (loss - predicted).abs()[~is_fitted].groupby(lagged["seed"]).mean().dropna()


def correlation_of(measure: str, by: Sequence[str]) -> Cell:
    """Return a cell with the mean of `rank_correlations` of a measure and its interval."""
    return lambda part: mean_ci(rank_correlations(runs_of(part), by)[measure].tolist())


def error_of(measure: str) -> Cell:
    """Return a cell with the mean of `errors` of a measure and its interval."""
    return lambda part: mean_ci(errors(runs_of(part), measure).tolist())


class LagMeasuresFigure(ToleratedLagFigure):
    """Rank correlations and predictions on seeds that nobody had looked at; one look."""

    name = "lag-measures"
    games = {"smoke": ("cartpole",), "quick": ("cartpole",)}
    counts = {"quick": 2 * LEAST_SEEDS}
    looks = ()
    measured = (score_from_first_update, first_score, moved)
    words = {"fitted": list(FITTED)}
    tables = (
        Table(
            ("game",),
            {measure: correlation_of(measure, ["seed"]) for measure in MEASURES},
            "rank correlation of each measure with the loss of score, all seeds and lags",
        ),
        Table(
            (LAG,),
            {measure: correlation_of(measure, ["seed", LAG]) for measure in MEASURES},
            "the same among runs of one lag",
            {LAG: LAGS},
        ),
        Table(
            ("game",),
            {measure: error_of(measure) for measure in (NOTHING, LAG, *MEASURES)},
            "error of the predicted loss of score on new seeds, in points",
        ),
    )

    def claims(self, table):
        guards = [table.missing, little_learned(table)]
        runs = runs_of(table)
        correlations = at_equal_lag(runs[~runs["seed"].isin(FITTED)])
        claims = []
        for key, (measure, what) in JUDGED.items():
            test = above(paired(correlations[measure]))
            claims.append(self.claim(f"{key}-at-equal-lag", test, guards, what=what))
        better = above(paired(errors(runs, KL), errors(runs, LAG)))
        return [*claims, self.claim("lag-than-kl", better, guards)]

    def plot(self, table, stem):
        by_lag = {lag: at_equal_lag(runs_of(part)) for lag, part in table.select(lag=LAGS).parts(LAG)}
        lines = {
            measure: {f"lag {lag}": values[measure].tolist() for lag, values in by_lag.items()}
            for measure in MEASURES
        }
        label = "rank correlation with the loss\n(bars: range of seeds)"
        canvas.mark_picture(lines, label, stem, 2.6)

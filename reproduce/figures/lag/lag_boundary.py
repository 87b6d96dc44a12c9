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
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ga3c_tf.reproduce.figures.figure import Cell, Figure, Measure, Table, smoke_spec
from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.figures.training import SCORE, START, first_score, score_of_run
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS, Effect, paired
from ga3c_tf.reproduce.measures.text import mean_ci
from ga3c_tf.reproduce.measures.verdicts import (
    FAILS,
    FEW_SEEDS,
    HOLDS,
    INCONCLUSIVE,
    NO_DIFFERENCE,
    TOO_SHORT,
    Above,
    Claim,
    Guard,
    Verdict,
)
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec, run_spec
from ga3c_tf.trained.intervals import mean_interval

T_MAX = 5
STEPS = 200_000
LAGS = (0, 4, 16, 64, 256, 1024)
AGENTS = (4, 16)
RATES = (4e-3, 1.6e-2)
OCTAVES = math.log2(LAGS[-1] / LAGS[1])
AUTHORS = "authors' (sum, epsilon 0.1)"
ADAPTIVE = "adaptive (mean, epsilon 1e-5)"
SETTINGS: dict[str, dict[str, Any]] = {
    AUTHORS: {},
    ADAPTIVE: {"loss_reduction": "mean", "rmsprop_epsilon": 1e-5},
}
EXTENDED = "minatar_breakout"
"""The game that got more seeds, because the three shifts were undecided."""
SEEDS = 5
"""Number of seeds after which the claims were judged for the first time."""
MORE_SEEDS = 10
"""Number of seeds of `EXTENDED` at `quick`, which the three shifts use."""
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
CONFIDENCE = 0.99
"""Confidence of the claim about `DELAY`.

Its error of 1 % is within the quarter of 5 % that Holm's method leaves for this claim.
"""
ROW = ["optimizer", "rate", "agents"]
"""The dimensions of a setting whose runs differ in lag and seed only."""
CELL = [*ROW, "seed"]


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return a run for each optimizer, learning rate, batch size and lag."""
    if budget == "smoke":
        return [
            smoke_spec(game, seed, "a2c", num_agents=agents, lag=1).called(AUTHORS, "0.001", str(agents), "1")
            for agents in (2, 4)
        ]
    return [
        run_spec(
            game,
            seed,
            "a2c",
            **settings,
            num_agents=agents,
            learning_rate=rate,
            lag=lag,
            steps=STEPS + lag * agents * T_MAX,  # in the first rounds, no batch is old enough
            log_seconds=10.0,
        ).called(optimizer, f"{rate:g}", str(agents), str(lag))
        for optimizer, settings in SETTINGS.items()
        for rate in RATES
        for agents in AGENTS
        for lag in LAGS
    ]


def seeds(budget: str, game: str) -> int:
    """Return the default number of seeds."""
    return {"smoke": 1, "quick": MORE_SEEDS if game == EXTENDED else SEEDS}[budget]


def dimensions(spec: RunSpec) -> dict[str, object]:
    """Return the optimizer, the learning rate, the number of agents and the lag in updates."""
    optimizer, rate, agents, lag = spec.label
    return {"optimizer": optimizer, "rate": float(rate), "agents": int(agents), "lag": int(lag)}


def measures(run: RecordedRun) -> list[Measure]:
    """Return the mean score from the first update on, and the score at the start."""
    config = run.spec.config
    before = config.lag * config.num_agents * T_MAX
    return [score_of_run(run, "over the agent steps from the first update", before), first_score(run)]


def gains(table: Measurements) -> pd.DataFrame:
    """Return the gain of each run, its mean score minus its first, or 0 if it diverged.

    Returns:
        A row for each optimizer, rate, number of agents and seed, a column for each lag.
    """
    key = [*CELL, "lag"]
    gain = table.series(SCORE, key) - table.series(START, key)
    diverged = table.facts[[run.diverged for run in table.runs]].set_index(key).index
    gain = pd.concat([gain.drop(diverged, errors="ignore"), pd.Series(0.0, diverged)])
    gain.index = pd.MultiIndex.from_tuples(gain.index, names=key)
    return gain.unstack("lag").reindex(columns=LAGS)


def shares(gain: pd.DataFrame) -> pd.DataFrame:
    """Return the gains as shares of the gain without lag, which is averaged over the seeds.

    Cells without all lags are left out, and settings whose gain without lag is below `GAIN`.
    """
    whole = gain.dropna()
    without = whole.groupby(ROW)[0].transform("mean")
    learned = without >= GAIN
    return whole[learned].div(without[learned], axis=0)


def area(share: pd.DataFrame) -> pd.Series:
    """Return the area under the curve of the share of the gain over the base-2 logarithm of the lag."""
    values = np.trapezoid(share[list(LAGS[1:])].to_numpy(), np.log2(LAGS[1:]), axis=1)
    return pd.Series(values, share.index)


def shift(gain: pd.DataFrame, optimizer: str, compared: str) -> float:
    """Return how many times more lag the cells with the smaller value tolerate, as a base-2 logarithm.

    If two curves of the same shape are shifted by x, the areas under them differ by about x times their mean
    drop. This is exact if the curves are straight at both ends of the range.

    Args:
        gain: gains, as `gains` returns them.
        optimizer: optimizer whose cells are compared.
        compared: dimension by which the cells are divided into two groups.

    Returns:
        The shift; not-a-number if a setting did not learn, or if lag costs less than `LEAST_DROP` of the
        gain.
    """
    share = shares(gain[gain.index.get_level_values("optimizer") == optimizer])
    drop = float((share[LAGS[1]] - share[LAGS[-1]]).mean())
    if share.groupby(ROW).ngroups < len(RATES) * len(AGENTS) or drop < LEAST_DROP:
        return math.nan
    small, large = area(share).groupby(compared).mean()  # in the order of the values
    return float((small - large) / drop)


def contrast(gain: pd.DataFrame, optimizers: Sequence[str], compared: str) -> Effect:
    """Compare `shift` with `HALFWAY` by the jackknife: Student's t test of pseudo-values that leave out one
    seed each.

    A shift is measured relative to the gain without lag and to the drop, which all seeds share. The
    pseudo-values also include the scatter of these two. Seeds without all cells are left out.

    Returns:
        The mean shift of the optimizers; its effect is not-a-number if a shift is unknown.
    """
    cells = gain[gain.index.get_level_values("optimizer").isin(optimizers)].dropna()
    counts = cells.groupby("seed").size()
    whole = counts[counts == len(optimizers) * len(RATES) * len(AGENTS)].index
    if len(whole) < 2:
        return Effect(limit=HALFWAY)

    def mean_shift(seeds: pd.Index) -> float:
        part = cells[cells.index.get_level_values("seed").isin(seeds)]
        return float(np.mean([shift(part, optimizer, compared) for optimizer in optimizers]))

    of_all = len(whole) * mean_shift(whole)
    pseudo = pd.Series([of_all - (len(whole) - 1) * mean_shift(whole.drop(seed)) for seed in whole])
    if pseudo.isna().any():
        return Effect(n=len(whole), limit=HALFWAY, note="a setting did not learn, or lag costs too little")
    return paired(pseudo, limit=HALFWAY)


class Stopped(NamedTuple):
    """Whether all rows of the table gain less than a share of the gain without lag: none, if any is above.

    Attributes:
        rows: points gained at the lag minus that share of those without lag, with simultaneous intervals.
    """

    rows: Sequence[Effect]

    @property
    def p_values(self) -> list[float]:
        return [math.nan]  # judged by intervals, it keeps its place in the family

    def judged(self, corrected: Sequence[float], level: float) -> Verdict:
        if not self.rows:
            return Verdict(INCONCLUSIVE, TOO_SHORT, Effect(note="no setting learned"))
        most = max(self.rows, key=lambda row: row.effect)
        if min(row.n for row in self.rows) < LEAST_SEEDS:
            return Verdict(INCONCLUSIVE, FEW_SEEDS, most)
        if any(row.low > 0 for row in self.rows):
            return Verdict(FAILS, "", most)
        if not all(row.high < 0 for row in self.rows):
            return Verdict(INCONCLUSIVE, NO_DIFFERENCE, most)
        if len(self.rows) < LEAST_ROWS:
            return Verdict(INCONCLUSIVE, TOO_SHORT, most)
        return Verdict(HOLDS, "", most)


def at_delay(gain: pd.DataFrame) -> list[Effect]:
    """Return what is gained at `DELAY` beyond `KEPT` of the gain without lag, for each setting that learned.

    The intervals are simultaneous, by Bonferroni's method.
    """
    learned = gain.loc[shares(gain).index]
    groups = [group for _, group in learned.groupby(ROW, sort=False)]
    left = [group[DELAY].mean() / group[0].mean() for group in groups]
    confidence = 1 - (1 - CONFIDENCE) / max(1, len(groups))
    rows = []
    for group in groups:
        beyond = (group[DELAY] - KEPT * group[0]).tolist()
        note = f"{min(left):.2f} to {max(left):.2f} of the gain is left"
        rows.append(
            Effect(float(np.mean(beyond)), *mean_interval(beyond, confidence), n=len(beyond), note=note)
        )
    return rows


def claims(table: Measurements) -> list[Claim]:
    """Return the predictions about the three shifts, and BA3C's claim.

    If seeds were added to the shifts, only the first `SEEDS` count for BA3C's claim, which had been decided.
    """
    gain = gains(table)
    again = table.game == EXTENDED and table.facts["seed"].nunique() > SEEDS
    first = table.select(seed=tuple(range(1, SEEDS + 1))) if again else table
    small, large = (T_MAX * agents for agents in AGENTS)
    shifts = {
        "states": contrast(gain, [AUTHORS], "agents"),
        "updates": contrast(gain, [ADAPTIVE], "agents"),
        "rate": contrast(gain, [AUTHORS, ADAPTIVE], "rate"),
    }
    texts = {
        "states": f"{AUTHORS}: a batch of {small} states tolerates more than twice the lag in updates of a "
        f"batch of {large} (four times, if the lag in states decides)",
        "updates": f"{ADAPTIVE}: a batch of {small} states tolerates less than twice the lag in updates of a "
        f"batch of {large} (as much, if the lag in updates decides)",
        "rate": "a quarter of the learning rate tolerates more than twice the lag, on average over the two "
        "optimizers",
    }
    rule = (
        f"relative to the gain without lag, at a lag of {DELAY}, over the rows of the table that learned; "
        f"supported if all rows are below {KEPT:.0%}, not supported if any is above, by simultaneous "
        f"{100 * CONFIDENCE:g} % intervals"
    )
    return [
        *(
            Claim(
                name,
                texts[name],
                Above(estimate.looked(2) if again else estimate, below=name == "updates"),
                [table.missing, Guard(TOO_SHORT, bool(estimate.note))],
            )
            for name, estimate in shifts.items()
        ),
        Claim(
            "ten-batches",
            "more than ten batches of delay stop learning (BA3C, arXiv 1705.06936)",
            Stopped(at_delay(gains(first))),
            [first.missing],
            rule,
        ),
    ]


def at_lag(lag: int) -> Cell:
    """Return a cell with the mean gain at a lag."""

    def cell(part: Measurements) -> str:
        values = gains(part)[lag].dropna()
        return f"{values.mean():.2f} ({len(values)})" if len(values) else "-"

    return cell


def left(part: Measurements) -> str:
    """Return a cell with the mean share of the gain that is left, over the logarithm of the lag."""
    return mean_ci(list(area(shares(gains(part))) / OCTAVES))


def plot(table: Measurements, stem: Path) -> None:
    """Draw the share of the gain against learning rate times lag, in updates and in states."""
    from ga3c_tf.reproduce.drawing import lag_plots

    share = shares(gains(table))
    points: dict[str, dict[tuple[int, float], list[tuple[int, float]]]] = {name: {} for name in SETTINGS}
    for (optimizer, rate, agents), group in share.groupby(ROW):
        points[optimizer][T_MAX * agents, rate] = [
            (lag, value) for _, row in group.iterrows() for lag, value in row.items() if lag
        ]
    lag_plots.boundaries(points, KEPT, stem)


FIGURE = Figure(
    name="lag-boundary",
    place=15,
    paper="not in the paper",
    shows="the policy lag that learning tolerates, by learning rate, batch size and optimizer",
    headline="is the tolerance to policy lag determined by the lag in states or in updates?",
    games={"smoke": ("cartpole",), "quick": ("minatar_breakout",)},
    seeds=seeds,
    specs=specs,
    dimensions=dimensions,
    measures=measures,
    main=(SCORE, "points"),
    claims=claims,
    tables=[
        Table(
            ROW,
            {**{f"lag {lag}": at_lag(lag) for lag in LAGS}, "share of the gain that is left": left},
        )
    ],
    plot=plot,
    by_game=True,
    words={
        "steps": STEPS,
        "first": LAGS[1],
        "last": LAGS[-1],
        "halfway": HALFWAY,
        "gain": GAIN,
        "least_rows": LEAST_ROWS,
        "first_seeds": SEEDS,
    },
)

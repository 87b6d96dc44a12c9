"""How much policy lag learning bears, by learning rate and batch size, for two optimizers.

The prediction, committed before the runs: with the authors' optimizer, whose steps grow with the summed gradient,
learning fails where the learning rate times the lag in states is too large; with an adaptive optimizer, whose steps
do not depend on the size of the gradient, where the rate times the lag in updates is. Batches of two sizes tell the two
apart: in states, four times the batch bears a quarter of the lag in updates; in updates, it bears as much.
"""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from ga3c_tf.reproduce.figures.figure import Figure, Measure, Results, seeds_by_budget, smoke_spec
from ga3c_tf.reproduce.measures.curves import score_at_end
from ga3c_tf.reproduce.measures.intervals import mean_interval
from ga3c_tf.reproduce.measures.text import lines_of, mean_ci, number
from ga3c_tf.reproduce.measures.verdicts import (
    FAILS,
    FEW_SEEDS,
    HOLDS,
    LEAST_SEEDS,
    NO_DIFFERENCE,
    Finding,
    holds_if,
)
from ga3c_tf.reproduce.runs.run import Run
from ga3c_tf.reproduce.runs.specs import RunSpec, run_spec

LAGS = (0, 1, 4, 16, 64, 256)
AGENTS = (16, 64)
"""A2C's batch has `t_max` states of each: 80 and 320."""
STEPS = 600_000
AUTHORS = "authors' (sum, epsilon 0.1)"
ADAPTIVE = "adaptive (mean, epsilon 1e-5)"
SETTINGS: dict[str, dict[str, Any]] = {AUTHORS: {}, ADAPTIVE: {"loss_reduction": "mean", "rmsprop_epsilon": 1e-5}}
RATES = {AUTHORS: (1e-3, 2e-3, 4e-3), ADAPTIVE: (5e-4, 1e-3, 2e-3)}
SCORE = "score at the end"
KEPT = 0.5
"""Learning bears a lag at which it still has this share of the score that it has without."""
STATES = math.log2(AGENTS[1] / AGENTS[0])
"""Base-2 logarithm of how much more lag in updates the small batch bears, if lag in states decides; 0 if in updates."""


class Cell(NamedTuple):
    """The runs that differ in their lag only."""

    optimizer: str
    rate: float
    agents: int
    seed: int


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return each lag with each optimizer, learning rate and batch size."""
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
            steps=STEPS,
            log_seconds=10.0,
        ).called(optimizer, f"{rate:g}", str(agents), str(lag))
        for optimizer, settings in SETTINGS.items()
        for rate in RATES[optimizer]
        for agents in AGENTS
        for lag in LAGS
    ]


def measures(run: Run) -> list[Measure]:
    """Return what has been learned at the end."""
    protocol = f"mean of {run.spec.config.rolling_episodes} episodes of training, over the last tenth of the steps"
    return [Measure(SCORE, score_at_end(run.curve), "points", protocol, "no episode ended")]


def scores(results: Results) -> dict[Cell, dict[int, float]]:
    """Return the scores by cell and lag; a run that diverged scores 0."""
    found: dict[Cell, dict[int, float]] = {}
    for run in results.runs:
        value = 0.0 if run.diverged else results.value(run, SCORE)
        if value is not None:
            optimizer, rate, agents, lag = run.spec.label
            cell = Cell(optimizer, float(rate), int(agents), run.spec.seed)
            found.setdefault(cell, {})[int(lag)] = value
    return found


def lag_borne(by_lag: dict[int, float]) -> float:
    """Return the lag at which the score falls to `KEPT` of that without lag.

    It is found between two lags that were run, on a logarithmic scale; between 0 and 1 on a linear one.

    Args:
        by_lag: scores, one of each lag of `LAGS`.

    Returns:
        Updates; not-a-number where even the largest lag is borne.
    """
    limit = KEPT * by_lag[0]
    for before, after in pairwise(sorted(by_lag)):
        if by_lag[before] >= limit > by_lag[after]:
            share = (by_lag[before] - limit) / (by_lag[before] - by_lag[after])
            return float(before * (after / before) ** share) if before else share
    return math.nan


def ratios(found: dict[Cell, dict[int, float]], optimizer: str) -> dict[tuple[float, int], float]:
    """Return by learning rate and seed the base-2 logarithm of the lag borne by small batches over that by large."""
    few, many = AGENTS
    result = {}
    for cell, small in found.items():
        large = found.get(cell._replace(agents=many), {})
        if cell.optimizer == optimizer and cell.agents == few and len(small) == len(large) == len(LAGS):
            ratio = math.log2(lag_borne(small) / lag_borne(large))
            if math.isfinite(ratio):
                result[cell.rate, cell.seed] = ratio
    return result


def finding(found: dict[Cell, dict[int, float]], optimizer: str) -> Finding:
    """Judge which of the two the lag that is borne follows, states or updates, against the prediction.

    The values of one seed are averaged over learning rates first, so that seeds count, not runs.
    """
    by_seed: dict[int, list[float]] = {}
    for (_, seed), ratio in ratios(found, optimizer).items():
        by_seed.setdefault(seed, []).append(ratio)
    means = [sum(each) / len(each) for each in by_seed.values()]
    because = f"{mean_ci(means)}" if means else "no seed has it for both batches"
    if len(means) < LEAST_SEEDS:
        return Finding(FEW_SEEDS, because)
    low, high = mean_interval(means)
    predicted, other = (STATES, 0.0) if optimizer == AUTHORS else (0.0, STATES)
    mean = sum(means) / len(means)
    nearer = abs(mean - predicted) < abs(mean - other)
    if low <= (other if nearer else predicted) <= high:
        return Finding(NO_DIFFERENCE, because)
    return Finding(holds_if(nearer), because)


def ten_batches(found: dict[Cell, dict[int, float]]) -> Finding:
    """Judge whether more than ten batches of delay stop learning, by the share of the score kept at a lag of 16.

    It holds where the interval of the share is below a tenth, and not where it is above a half.
    """
    cells = [
        by_lag
        for cell, by_lag in found.items()
        if cell[:3] == (AUTHORS, RATES[AUTHORS][0], AGENTS[0]) and {0, 16} <= set(by_lag)
    ]
    shares = [by_lag[16] / by_lag[0] for by_lag in cells]
    if len(shares) < LEAST_SEEDS:
        return Finding(FEW_SEEDS, mean_ci(shares))
    low, high = mean_interval(shares)
    verdict = HOLDS if high < 0.1 else FAILS if low > 0.5 else NO_DIFFERENCE
    return Finding(verdict, mean_ci(shares))


def section(results: Results) -> list[str]:
    """Return the score at each lag, the lag that is borne, and the findings."""
    found = scores(results)
    rows = []
    for optimizer, rates in RATES.items():
        for rate in rates:
            for agents in AGENTS:
                cells = [by_lag for cell, by_lag in found.items() if cell[:3] == (optimizer, rate, agents)]
                known = [mean_ci([each[lag] for each in cells if lag in each]).split(" [")[0] for lag in LAGS]
                borne = [lag_borne(each) for each in cells if len(each) == len(LAGS)]
                middle = [each for each in borne if math.isfinite(each)]
                rows.append([optimizer, number(rate), f"{5 * agents}", *known, mean_ci(middle)])
    return lines_of(
        "lag-boundary.md",
        lags=[f"lag {lag}" for lag in LAGS],
        rows=rows,
        findings={optimizer: finding(found, optimizer) for optimizer in SETTINGS},
        ten_batches=ten_batches(found),
        slowest=f"{RATES[AUTHORS][0]:g}",
        kept=f"{KEPT:.0%}",
        steps=f"{STEPS:,}",
        states=number(STATES),
    )


def plot(results: Results, stem: Path) -> None:
    """Draw the share of the score that is kept, against rate times lag in updates and in states."""
    from ga3c_tf.reproduce.drawing import lag_plots

    found = scores(results)
    points: dict[str, dict[int, list[tuple[float, int, float]]]] = {}
    for cell, by_lag in found.items():
        if by_lag.get(0):
            of_batch = points.setdefault(cell.optimizer, {}).setdefault(5 * cell.agents, [])
            of_batch += [(cell.rate, lag, by_lag[lag] / by_lag[0]) for lag in by_lag if lag]
    lag_plots.boundaries(points, KEPT, stem)


FIGURE = Figure(
    name="lag-boundary",
    place=14,
    paper="not in the paper",
    shows="the policy lag that learning bears, by learning rate, batch size and optimizer",
    games={"smoke": ("cartpole",), "quick": ("minatar_breakout",)},
    seeds=seeds_by_budget(quick=3),
    specs=specs,
    measures=measures,
    main=(SCORE, "points"),
    section=section,
    plot=plot,
    by_game=True,
)

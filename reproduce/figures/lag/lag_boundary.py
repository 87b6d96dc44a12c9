"""How much policy lag learning tolerates, by learning rate and batch size, for two optimizers.

The prediction, committed before the runs: with the authors' optimizer, whose steps grow with the summed gradient,
learning tolerates a lag such that the learning rate times the lag in states is constant. With an adaptive optimizer,
whose steps do not depend on the size of the gradient, the rate times the lag in updates is constant. Two contrasts test
it: batches of four times the size tolerate a quarter of the lag in updates with the first and as much with the second;
a quarter of the rate tolerates four times the lag with both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from ga3c_tf.reproduce.figures.figure import Figure, Measure, Results, seeds_by_budget, smoke_spec
from ga3c_tf.reproduce.measures.curves import mean_score, score_at_start
from ga3c_tf.reproduce.measures.intervals import mean_interval
from ga3c_tf.reproduce.measures.text import lines_of, mean_ci, number
from ga3c_tf.reproduce.measures.verdicts import (
    FAILS,
    FEW_SEEDS,
    HOLDS,
    INCONCLUSIVE,
    LEAST_SEEDS,
    NO_DIFFERENCE,
    RUNS_MISSING,
    Finding,
)
from ga3c_tf.reproduce.runs.run import Run
from ga3c_tf.reproduce.runs.specs import RunSpec, run_spec

LAGS = (0, 4, 16, 64, 256, 1024)
AGENTS = (4, 16)
T_MAX = 5
STEPS = 200_000
AUTHORS = "authors' (sum, epsilon 0.1)"
ADAPTIVE = "adaptive (mean, epsilon 1e-5)"
SETTINGS: dict[str, dict[str, Any]] = {AUTHORS: {}, ADAPTIVE: {"loss_reduction": "mean", "rmsprop_epsilon": 1e-5}}
RATES = {AUTHORS: (4e-3, 1.6e-2), ADAPTIVE: (4e-3, 1.6e-2)}
SCORE = "mean score of the run"
START = "score at the start"
KEPT = 0.5
"""Learning tolerates a lag at which it still gains this share of what it gains without."""
GAIN = 1.0
"""Points above the first score: a cell that gains less without lag did not learn."""
BY_BATCH = {AUTHORS: math.log2(AGENTS[1] / AGENTS[0]), ADAPTIVE: 0.0}
"""Predicted base-2 logarithm of the lag in updates that the small batch tolerates over that of the large one."""
BY_RATE = {name: math.log2(rates[-1] / rates[0]) for name, rates in RATES.items()}
"""The same of the small rate over the large one."""
MARGIN = 1.0
"""Half of what tells the two predictions apart."""
CONFIDENCE = 0.99
"""Of the interval of each of the five findings, so that all together are wrong in at most 5 % of repetitions."""
MOST_CENSORED = 1 / 3
OUT_OF_RANGE = f"{INCONCLUSIVE}: the lags do not reach far enough"
DELAY = 16
"""Batches, which are more than ten."""


class Cell(NamedTuple):
    """The runs that differ in their lag only."""

    optimizer: str
    rate: float
    agents: int
    seed: int


class Tolerated(NamedTuple):
    """The lag at which half of what is learned is lost, and whether it lies beyond the lags that were run."""

    lag: float
    censored: bool


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
            steps=STEPS + lag * agents * T_MAX,  # in the first rounds nothing is trained on yet
            log_seconds=10.0,
        ).called(optimizer, f"{rate:g}", str(agents), str(lag))
        for optimizer, settings in SETTINGS.items()
        for rate in RATES[optimizer]
        for agents in AGENTS
        for lag in LAGS
    ]


def measures(run: Run) -> list[Measure]:
    """Return what has been learned, and the score before."""
    config = run.spec.config
    protocol = f"mean of {config.rolling_episodes} episodes of training"
    score = mean_score(run.curve, low=config.lag * config.num_agents * T_MAX)
    start = score_at_start(run.curve, config.rolling_episodes)
    return [
        Measure(SCORE, score, "points", f"{protocol}, over the agent steps from the first update", "no episode ended"),
        Measure(START, start, "points", f"{protocol}, of the first", "fewer episodes ended"),
    ]


def gains(results: Results) -> dict[Cell, dict[int, float]]:
    """Return by cell and lag how far the mean score of a run is above its first score; 0 for one that diverged."""
    found: dict[Cell, dict[int, float]] = {}
    for run in results.runs:
        score, start = results.value(run, SCORE), results.value(run, START)
        gain = score - start if score is not None and start is not None else None
        if run.diverged:
            gain = 0.0
        if gain is not None:
            optimizer, rate, agents, lag = run.spec.label
            found.setdefault(Cell(optimizer, float(rate), int(agents), run.spec.seed), {})[int(lag)] = gain
    return found


def shares(found: dict[Cell, dict[int, float]]) -> dict[Cell, dict[int, float]]:
    """Return the gains as shares of what is gained without lag, on average over the seeds.

    Cells that are not complete are left out, and those in which little is learned without lag.
    """
    whole = {cell: by_lag for cell, by_lag in found.items() if len(by_lag) == len(LAGS)}
    result = {}
    for cell, by_lag in whole.items():
        alike = [each[0] for other, each in whole.items() if other[:3] == cell[:3]]
        without = sum(alike) / len(alike)
        if without >= GAIN:
            result[cell] = {lag: gain / without for lag, gain in by_lag.items()}
    return result


def tolerated_lag(by_lag: dict[int, float]) -> Tolerated:
    """Return the lag at which the share of what is learned falls to `KEPT`.

    The shares are first made to fall with the lag, by isotonic regression, and then interpolated on a logarithmic
    scale. Beyond the lags above 0 that were run, the nearest of them stands.

    Args:
        by_lag: the share at each lag.
    """
    lags = sorted(lag for lag in by_lag if lag)
    falling = isotonic_regression([by_lag[lag] for lag in sorted(by_lag)], increasing=False).x[-len(lags) :].tolist()
    if falling[0] < KEPT:
        return Tolerated(float(lags[0]), True)
    for (before, high), (after, low) in pairwise(zip(lags, falling, strict=True)):
        if low < KEPT:
            return Tolerated(float(before * (after / before) ** ((high - KEPT) / (high - low))), False)
    return Tolerated(float(lags[-1]), True)


def contrast(
    found: dict[Cell, dict[int, float]], optimizer: str, partner: Callable[[Cell], Cell | None], predicted: float
) -> Finding:
    """Judge how many times more lag one half of the cells tolerates than the other.

    Args:
        found: of `shares`.
        optimizer: whose cells are compared.
        partner: the cell that one is compared with, None for one that is a partner itself.
        predicted: base-2 logarithm of the ratio.
    """
    by_seed: dict[int, list[float]] = {}
    censored = pairs = 0
    for cell, by_lag in found.items():
        other = partner(cell)
        if cell.optimizer == optimizer and other in found:
            ours, theirs = tolerated_lag(by_lag), tolerated_lag(found[other])
            pairs += 1
            censored += ours.censored or theirs.censored
            if not (ours.censored and theirs.censored):
                by_seed.setdefault(cell.seed, []).append(math.log2(ours.lag / theirs.lag))
    means = [sum(each) / len(each) for each in by_seed.values()]
    described = mean_ci(means, confidence=CONFIDENCE)
    because = f"{described}, predicted {predicted:g}; {censored} of {pairs} pairs out of range"
    if pairs and censored > MOST_CENSORED * pairs:
        return Finding(OUT_OF_RANGE, because)
    if len(means) < LEAST_SEEDS:
        return Finding(FEW_SEEDS, because)
    low, high = mean_interval(means, CONFIDENCE)
    if predicted - MARGIN < low and high < predicted + MARGIN:
        return Finding(HOLDS, because)
    apart = high < predicted - MARGIN or low > predicted + MARGIN
    return Finding(FAILS if apart else NO_DIFFERENCE, because)


def findings(results: Results) -> dict[str, dict[str, Finding]]:
    """Judge both contrasts of each optimizer."""
    found = shares(gains(results))
    judged = {
        optimizer: {
            "batch": contrast(found, optimizer, partial(_partner, "agents", AGENTS), BY_BATCH[optimizer]),
            "rate": contrast(found, optimizer, partial(_partner, "rate", RATES[optimizer]), BY_RATE[optimizer]),
        }
        for optimizer in SETTINGS
    }
    if not results.ended:
        return {
            optimizer: {name: Finding(RUNS_MISSING, each.because) for name, each in both.items()}
            for optimizer, both in judged.items()
        }
    return judged


def _partner(name: str, values: tuple[float, float], cell: Cell) -> Cell | None:
    """Return the cell with the larger of two values of a field, for one that has the smaller."""
    small, large = values
    changed: dict[str, Any] = {name: large}
    return cell._replace(**changed) if getattr(cell, name) == small else None


def ten_batches(results: Results) -> Finding:
    """Judge whether more than ten batches of delay stop learning, whatever the settings.

    It is not supported if in any cell the gain at a lag of `DELAY` is surely more than the share `KEPT` of the gain
    without lag, and supported if in all it is surely less. The intervals of the cells hold together, by Bonferroni.
    """
    found = gains(results)
    by_cell: dict[tuple, list[tuple[float, float]]] = {}
    for cell in shares(found):
        by_cell.setdefault(cell[:3], []).append((found[cell][DELAY], found[cell][0]))
    because = ", ".join(f"{np.mean(each, 0)[0] / np.mean(each, 0)[1]:.2f}" for each in by_cell.values())
    if not results.ended or not by_cell:
        return Finding(RUNS_MISSING, because)
    confidence = 1 - (1 - CONFIDENCE) / len(by_cell)
    kept = [[delayed - KEPT * without for delayed, without in each] for each in by_cell.values()]
    intervals = [mean_interval(each, confidence) for each in kept]
    if any(low > 0 for low, _ in intervals):
        return Finding(FAILS, because)
    if all(high < 0 for _, high in intervals):
        return Finding(HOLDS, because)
    return Finding(NO_DIFFERENCE, because)


def section(results: Results) -> list[str]:
    """Return the share learned at each lag, the lag that is tolerated, and the findings."""
    found = gains(results)
    parts = shares(found)
    rows = []
    for optimizer, rates in RATES.items():
        for rate in rates:
            for agents in AGENTS:
                alike = (optimizer, rate, agents)
                cells = [by_lag for cell, by_lag in found.items() if cell[:3] == alike]
                known = [_mean([each[lag] for each in cells if lag in each]) for lag in LAGS]
                tolerated = [tolerated_lag(by_lag) for cell, by_lag in parts.items() if cell[:3] == alike]
                rows.append([optimizer, number(rate), str(T_MAX * agents), *known, _tolerated(tolerated)])
    return lines_of(
        "lag-boundary.md",
        lags=[f"lag {lag}" for lag in LAGS],
        rows=rows,
        findings=findings(results),
        ten_batches=ten_batches(results),
        kept=f"{KEPT:.0%}",
        steps=f"{STEPS:,}",
        margin=number(MARGIN),
        confidence=f"{100 * CONFIDENCE:g}",
        gain=number(GAIN),
        delay=DELAY,
    )


def _mean(values: list[float]) -> str:
    return f"{sum(values) / len(values):.2f} ({len(values)})" if values else "-"


def _tolerated(found: list[Tolerated]) -> str:
    """Write the middle of the lags tolerated, with how many of the seeds are out of range."""
    if not found:
        return "-"
    beyond = sum(each.censored for each in found)
    middle = sorted(each.lag for each in found)[len(found) // 2]
    return number(middle) + (f" ({beyond} of {len(found)} out of range)" if beyond else "")


def plot(results: Results, stem: Path) -> None:
    """Draw the share that is learned, against rate times lag in updates and in states."""
    from ga3c_tf.reproduce.drawing import lag_plots

    points: dict[str, dict[tuple[int, float], list[tuple[int, float]]]] = {name: {} for name in SETTINGS}
    for cell, by_lag in shares(gains(results)).items():
        of_cell = points[cell.optimizer].setdefault((T_MAX * cell.agents, cell.rate), [])
        of_cell += [(lag, share) for lag, share in by_lag.items() if lag]
    lag_plots.boundaries(points, KEPT, stem)


FIGURE = Figure(
    name="lag-boundary",
    place=15,
    paper="not in the paper",
    shows="the policy lag that learning tolerates, by learning rate, batch size and optimizer",
    claim="does the lag in states or in updates decide?",
    games={"smoke": ("cartpole",), "quick": ("minatar_breakout",)},
    seeds=seeds_by_budget(quick=5),
    specs=specs,
    measures=measures,
    main=(SCORE, "points"),
    section=section,
    plot=plot,
    by_game=True,
)

"""How much policy lag learning tolerates, by learning rate and batch size, for two optimizers.

The prediction, committed before the runs: with the authors' optimizer, whose steps grow with the summed gradient,
learning tolerates a lag such that the learning rate times the lag in states is constant. With an adaptive optimizer,
whose steps do not depend on the size of the gradient, the rate times the lag in updates is constant. So a batch of a
quarter of the size tolerates four times the lag in updates with the first, and as much with the second; a quarter of
the rate tolerates four times the lag with both.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ga3c_tf.reproduce.figures.figure import Figure, Measure, Results, seeds_by_budget, smoke_spec
from ga3c_tf.reproduce.measures.curves import mean_score, score_at_start
from ga3c_tf.reproduce.measures.effects import NOTHING, Effect, described, effect_verdict, holm, paired_effect
from ga3c_tf.reproduce.measures.intervals import mean_interval
from ga3c_tf.reproduce.measures.text import lines_of, mean_ci, number
from ga3c_tf.reproduce.measures.verdicts import (
    FAILS,
    FEW_SEEDS,
    HOLDS,
    LEAST_SEEDS,
    NO_DIFFERENCE,
    RUNS_MISSING,
    TOO_SHORT,
    Finding,
)
from ga3c_tf.reproduce.runs.run import Run
from ga3c_tf.reproduce.runs.specs import RunSpec, run_spec

LAGS = (0, 4, 16, 64, 256, 1024)
AGENTS = (4, 16)
T_MAX = 5
STEPS = 200_000
OCTAVES = math.log2(LAGS[-1] / LAGS[1])
AUTHORS = "authors' (sum, epsilon 0.1)"
ADAPTIVE = "adaptive (mean, epsilon 1e-5)"
SETTINGS: dict[str, dict[str, Any]] = {AUTHORS: {}, ADAPTIVE: {"loss_reduction": "mean", "rmsprop_epsilon": 1e-5}}
RATES = (4e-3, 1.6e-2)
SCORE = "mean score of the run"
START = "score at the start"
GAIN = 1.0
"""Points above the first score: a cell that gains less without lag did not learn."""
HALFWAY = 1.0
"""Halfway between a shift of 0 (as much lag) and 2 (four times the lag)."""
LEAST_DROP = 0.2
"""Share of the gain that the largest lag costs more than the smallest, at least, where lag matters at all."""
DELAY = 16
"""In batches: the first lag of `LAGS` above ten."""
KEPT = 0.5
"""Learning has stopped where it gains less than this share of what it gains without lag."""
CONFIDENCE = 0.99
"""Of the finding about `DELAY`: its error of 1 % is within the fourth of 5 % that Holm's method leaves for it."""


class Question(NamedTuple):
    """Which cells are compared, and the shift that was predicted."""

    optimizers: tuple[str, ...]
    compared: str  # field of `Cell`: the cells with its smaller value are compared with those with the larger
    predicted: float  # base-2 logarithm of how many times the lag in updates the smaller tolerates


QUESTIONS = {
    "states": Question((AUTHORS,), "agents", 2.0),
    "updates": Question((ADAPTIVE,), "agents", 0.0),
    "rate": Question((AUTHORS, ADAPTIVE), "rate", 2.0),
}


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
            steps=STEPS + lag * agents * T_MAX,  # in the first rounds nothing is trained on yet
            log_seconds=10.0,
        ).called(optimizer, f"{rate:g}", str(agents), str(lag))
        for optimizer, settings in SETTINGS.items()
        for rate in RATES
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


def area(by_lag: dict[int, float]) -> float:
    """Return the area under the share of the gain against the base-2 logarithm of the lag, from the first lag above 0.

    Args:
        by_lag: the share at each lag.
    """
    lags = [lag for lag in sorted(by_lag) if lag]
    return float(np.trapezoid([by_lag[lag] for lag in lags], np.log2(lags)))


def shift(found: dict[Cell, dict[int, float]], optimizer: str, compared: str) -> float:
    """Return the base-2 logarithm of how much more lag the cells with the smaller value tolerate.

    If curves of the same shape are shifted by x, the areas under them differ by about x times their mean drop. This is
    exact where they are straight at both ends of the range.

    Args:
        found: of `gains`.
        optimizer: whose cells are compared.
        compared: the field of `Cell` by which they are divided.

    Returns:
        The shift; not-a-number where a setting did not learn, or where lag costs less than `LEAST_DROP` of the gain.
    """
    parts = {cell: by_lag for cell, by_lag in shares(found).items() if cell.optimizer == optimizer}
    drops = [by_lag[LAGS[1]] - by_lag[LAGS[-1]] for by_lag in parts.values()]
    if len({cell[:3] for cell in parts}) < len(RATES) * len(AGENTS) or np.mean(drops) < LEAST_DROP:
        return math.nan
    areas: dict[float, list[float]] = {}
    for cell, by_lag in parts.items():
        areas.setdefault(getattr(cell, compared), []).append(area(by_lag))
    small, large = (np.mean(areas[value]) for value in sorted(areas))
    return float((small - large) / np.mean(drops))


def contrast(found: dict[Cell, dict[int, float]], question: Question) -> Effect | None:
    """Compare `shift` with `HALFWAY` by the jackknife: Student's t test of the pseudo-values that leave out one seed.

    All seeds share the gain without lag and the drop that a shift is measured by. The pseudo-values include the scatter
    of these too.

    Returns:
        The effect, on average over the optimizers; None where a shift is not known.
    """
    whole = complete(found, question.optimizers)
    seeds = {cell.seed for cell in whole}
    if len(seeds) < 2:
        return NOTHING

    def mean_shift(seeds: set[int]) -> float:
        part = {cell: by_lag for cell, by_lag in whole.items() if cell.seed in seeds}
        return float(np.mean([shift(part, optimizer, question.compared) for optimizer in question.optimizers]))

    of_all = len(seeds) * mean_shift(seeds)
    pseudo = {seed: of_all - (len(seeds) - 1) * mean_shift(seeds - {seed}) for seed in seeds}
    if any(math.isnan(value) for value in pseudo.values()):
        return None
    return paired_effect(pseudo, dict.fromkeys(pseudo, 0.0), HALFWAY)


def complete(found: dict[Cell, dict[int, float]], optimizers: tuple[str, ...]) -> dict[Cell, dict[int, float]]:
    """Return the cells of these optimizers, of the seeds that have all of them at all lags."""
    whole = {
        cell: by_lag for cell, by_lag in found.items() if cell.optimizer in optimizers and len(by_lag) == len(LAGS)
    }
    counts = Counter(cell.seed for cell in whole)
    return {
        cell: by_lag
        for cell, by_lag in whole.items()
        if counts[cell.seed] == len(optimizers) * len(RATES) * len(AGENTS)
    }


def judged(found: dict[Cell, dict[int, float]]) -> dict[str, Finding]:
    """Judge the three shifts, with p values corrected for all four findings of the figure.

    Args:
        found: of `gains`.
    """
    effects = {name: contrast(found, question) for name, question in QUESTIONS.items()}
    chances = [effect.chance if effect else math.nan for effect in effects.values()]
    corrected = holm([*chances, math.nan])[:-1]  # the fourth finding is judged by intervals and keeps its place
    return {
        name: _finding(effect, chance, QUESTIONS[name].predicted)
        for (name, effect), chance in zip(effects.items(), corrected, strict=True)
    }


def _finding(effect: Effect | None, chance: float, predicted: float) -> Finding:
    """Judge whether an effect is surely on the side of `HALFWAY` that was predicted."""
    if effect is None:
        return Finding(TOO_SHORT, f"a setting did not learn, or lag costs less than {LEAST_DROP:.0%} of the gain")
    verdict = effect_verdict(effect, chance)
    if predicted < HALFWAY:
        verdict = {HOLDS: FAILS, FAILS: HOLDS}.get(verdict, verdict)
    return Finding(verdict, f"{described(effect, chance)}, predicted {predicted:g}")


def findings(results: Results) -> dict[str, Finding]:
    """Judge the three shifts, once all runs have ended."""
    found = judged(gains(results))
    if results.ended:
        return found
    return {name: Finding(RUNS_MISSING, finding.because) for name, finding in found.items()}


def ten_batches(results: Results) -> Finding:
    """Judge whether more than ten batches of delay stop learning, whatever the settings.

    It is not supported if in any cell the gain at a lag of `DELAY` is surely more than the share `KEPT` of the gain
    without lag, and supported if in all it is surely less. The intervals of the cells hold together, by Bonferroni.
    """
    found = gains(results)
    by_cell: dict[tuple, list[tuple[float, float]]] = {}
    for cell in shares(found):
        by_cell.setdefault(cell[:3], []).append((found[cell][DELAY], found[cell][0]))
    if not by_cell:
        return Finding(RUNS_MISSING, "no setting has all runs")
    means = [np.mean(each, 0) for each in by_cell.values()]
    left = [delayed / without for delayed, without in means]
    because = f"{min(left):.2f} to {max(left):.2f} of the gain is left"
    if not results.ended:
        return Finding(RUNS_MISSING, because)
    if min(map(len, by_cell.values())) < LEAST_SEEDS:
        return Finding(FEW_SEEDS, because)
    confidence = 1 - (1 - CONFIDENCE) / len(by_cell)
    kept = [[delayed - KEPT * without for delayed, without in each] for each in by_cell.values()]
    intervals = [mean_interval(each, confidence) for each in kept]
    if any(low > 0 for low, _ in intervals):
        return Finding(FAILS, because)
    if all(high < 0 for _, high in intervals):
        return Finding(HOLDS, because)
    return Finding(NO_DIFFERENCE, because)


def section(results: Results) -> list[str]:
    """Return the gain at each lag, the share that is left on average, and the findings."""
    found = gains(results)
    parts = shares(found)
    rows = []
    for optimizer in SETTINGS:
        for rate in RATES:
            for agents in AGENTS:
                alike = (optimizer, rate, agents)
                cells = [by_lag for cell, by_lag in found.items() if cell[:3] == alike]
                known = [_mean([each[lag] for each in cells if lag in each]) for lag in LAGS]
                left = [area(by_lag) / OCTAVES for cell, by_lag in parts.items() if cell[:3] == alike]
                rows.append([optimizer, number(rate), str(T_MAX * agents), *known, mean_ci(left)])
    return lines_of(
        "lag-boundary.md",
        lags=[f"lag {lag}" for lag in LAGS],
        rows=rows,
        findings=findings(results),
        ten_batches=ten_batches(results),
        kept=f"{KEPT:.0%}",
        steps=f"{STEPS:,}",
        first=LAGS[1],
        last=f"{LAGS[-1]:,}",
        authors=AUTHORS,
        adaptive=ADAPTIVE,
        small=T_MAX * AGENTS[0],
        large=T_MAX * AGENTS[1],
        halfway=number(HALFWAY),
        confidence=f"{100 * CONFIDENCE:g}",
        gain=number(GAIN),
        delay=DELAY,
    )


def _mean(values: list[float]) -> str:
    return f"{sum(values) / len(values):.2f} ({len(values)})" if values else "-"


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

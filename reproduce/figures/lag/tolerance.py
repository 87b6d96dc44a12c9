"""How much policy lag different settings tolerate, and the prediction that `lag-boundary` tests.

The prediction was committed before the runs. With the authors' optimizer, whose steps grow with the summed
gradient, the tolerated lag is such that the learning rate times the lag in states is constant. With an
adaptive optimizer, whose steps do not depend on the size of the gradient, the learning rate times the lag in
updates is constant. So a batch of a quarter of the size tolerates four times the lag in updates with the
first optimizer, and the same lag with the second. A quarter of the learning rate tolerates four times the lag
with both.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from ga3c_tf.reproduce.measures.effects import NOTHING, Effect, judged_again, paired_effect
from ga3c_tf.reproduce.measures.judging import finding_of, holm, open_level
from ga3c_tf.reproduce.measures.verdicts import FAILS, HOLDS, TOO_SHORT, Finding
from ga3c_tf.reproduce.measures.wording import described

LAGS = (0, 4, 16, 64, 256, 1024)
AGENTS = (4, 16)
OCTAVES = math.log2(LAGS[-1] / LAGS[1])
AUTHORS = "authors' (sum, epsilon 0.1)"
ADAPTIVE = "adaptive (mean, epsilon 1e-5)"
RATES = (4e-3, 1.6e-2)
GAIN = 1.0
"""Points above the first score that a cell must gain without lag to count as having learned."""
HALFWAY = 1.0
"""Halfway between a shift of 0 (the same lag) and 2 (four times the lag)."""
LEAST_DROP = 0.2
"""Lag matters if the largest lag costs at least this share of the gain more than the smallest above 0."""


class Question(NamedTuple):
    """Which cells are compared, and the predicted shift."""

    optimizers: tuple[str, ...]
    # Field of `Cell`: cells with its smaller value are compared with cells with its larger value.
    compared: str
    # Base-2 logarithm of the tolerated lag (updates) with the smaller value relative to the larger.
    predicted: float


QUESTIONS = {
    "states": Question((AUTHORS,), "agents", 2.0),
    "updates": Question((ADAPTIVE,), "agents", 0.0),
    "rate": Question((AUTHORS, ADAPTIVE), "rate", 2.0),
}


class Cell(NamedTuple):
    """Settings and seed of a group of runs that differ in their lag only."""

    optimizer: str
    rate: float
    agents: int
    seed: int


def shares(gains: dict[Cell, dict[int, float]]) -> dict[Cell, dict[int, float]]:
    """Return the gains as shares of the gain without lag, which is averaged over the seeds.

    Cells without all lags are left out, and settings whose gain without lag is below `GAIN`.

    Args:
        gains: gains by cell and lag, from `lag_boundary.gains`.
    """
    whole = {cell: by_lag for cell, by_lag in gains.items() if len(by_lag) == len(LAGS)}
    result = {}
    for cell, by_lag in whole.items():
        alike = [other_gains[0] for other, other_gains in whole.items() if other[:3] == cell[:3]]
        without = sum(alike) / len(alike)
        if without >= GAIN:
            result[cell] = {lag: gain / without for lag, gain in by_lag.items()}
    return result


def area(by_lag: dict[int, float]) -> float:
    """Return the area under the curve of the share of the gain over the base-2 logarithm of the lag.

    Args:
        by_lag: share of the gain at each lag; a lag of 0 is left out.
    """
    lags = [lag for lag in sorted(by_lag) if lag]
    return float(np.trapezoid([by_lag[lag] for lag in lags], np.log2(lags)))


def shift(gains: dict[Cell, dict[int, float]], optimizer: str, compared: str) -> float:
    """Return how many times more lag the cells with the smaller value tolerate, as a base-2 logarithm.

    If two curves of the same shape are shifted by x, the areas under them differ by about x times their mean
    drop. This is exact if the curves are straight at both ends of the range.

    Args:
        gains: gains by cell and lag, from `lag_boundary.gains`.
        optimizer: optimizer whose cells are compared.
        compared: field of `Cell` by which the cells are divided into two groups.

    Returns:
        The shift; not-a-number if a setting did not learn, or if lag costs less than `LEAST_DROP` of the
        gain.
    """
    parts = {cell: by_lag for cell, by_lag in shares(gains).items() if cell.optimizer == optimizer}
    drops = [by_lag[LAGS[1]] - by_lag[LAGS[-1]] for by_lag in parts.values()]
    if len({cell[:3] for cell in parts}) < len(RATES) * len(AGENTS) or np.mean(drops) < LEAST_DROP:
        return math.nan
    areas: dict[float, list[float]] = {}
    for cell, by_lag in parts.items():
        areas.setdefault(getattr(cell, compared), []).append(area(by_lag))
    small, large = (np.mean(areas[value]) for value in sorted(areas))
    return float((small - large) / np.mean(drops))


def contrast(gains: dict[Cell, dict[int, float]], question: Question) -> Effect | None:
    """Compare `shift` with `HALFWAY` by the jackknife: Student's t test of pseudo-values that leave out one
    seed each.

    A shift is measured relative to the gain without lag and to the drop, which all seeds share. The
    pseudo-values also include the scatter of these two.

    Returns:
        The effect, averaged over the optimizers; `NOTHING` with fewer than two seeds; None if a shift is
        unknown.
    """
    whole = complete(gains, question.optimizers)
    seeds = {cell.seed for cell in whole}
    if len(seeds) < 2:
        return NOTHING

    def mean_shift(seeds: set[int]) -> float:
        part = {cell: by_lag for cell, by_lag in whole.items() if cell.seed in seeds}
        return float(
            np.mean([shift(part, optimizer, question.compared) for optimizer in question.optimizers])
        )

    of_all = len(seeds) * mean_shift(seeds)
    pseudo = {seed: of_all - (len(seeds) - 1) * mean_shift(seeds - {seed}) for seed in seeds}
    if any(math.isnan(value) for value in pseudo.values()):
        return None
    return paired_effect(pseudo, dict.fromkeys(pseudo, 0.0), HALFWAY)


def complete(
    gains: dict[Cell, dict[int, float]], optimizers: tuple[str, ...]
) -> dict[Cell, dict[int, float]]:
    """Return the cells of these optimizers, for the seeds that have all of these cells at all lags."""
    whole = {
        cell: by_lag
        for cell, by_lag in gains.items()
        if cell.optimizer in optimizers and len(by_lag) == len(LAGS)
    }
    counts = Counter(cell.seed for cell in whole)
    return {
        cell: by_lag
        for cell, by_lag in whole.items()
        if counts[cell.seed] == len(optimizers) * len(RATES) * len(AGENTS)
    }


def judged(gains: dict[Cell, dict[int, float]], again: bool = False) -> dict[str, Finding]:
    """Judge the three shifts of `QUESTIONS`, with p values corrected for all four findings of the figure.

    Args:
        gains: gains by cell and lag, from `lag_boundary.gains`.
        again: whether seeds were added after a first judgement.
    """
    effects = {name: contrast(gains, question) for name, question in QUESTIONS.items()}
    if again:
        effects = {name: effect and judged_again(effect) for name, effect in effects.items()}
    chances = [effect.chance if effect else math.nan for effect in effects.values()]
    corrected = holm([*chances, math.nan])  # the fourth finding is judged by intervals and keeps its place
    level = open_level(corrected)
    return {
        name: _finding(effect, chance, level, QUESTIONS[name].predicted)
        for (name, effect), chance in zip(effects.items(), corrected[:-1], strict=True)
    }


def _finding(effect: Effect | None, chance: float, level: float, predicted: float) -> Finding:
    """Judge whether an effect is significantly on the predicted side of `HALFWAY`."""
    if effect is None:
        return Finding(
            TOO_SHORT, f"a setting did not learn, or lag costs less than {LEAST_DROP:.0%} of the gain"
        )
    finding = finding_of(effect, chance, level, f"{described(effect, chance)}, predicted {predicted:g}")
    if predicted < HALFWAY:
        finding = finding._replace(verdict={HOLDS: FAILS, FAILS: HOLDS}.get(finding.verdict, finding.verdict))
    return finding

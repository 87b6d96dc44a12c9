"""Figure 3: model updates per second for combinations of agents, predictors and trainers."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from ga3c_tf.reproduce.drawing import speed_plots
from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.measurements import Measure, Measurements, speed_changed
from ga3c_tf.reproduce.figures.plans import speed_spec, workers
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS, Effect, pooled
from ga3c_tf.reproduce.measures.verdicts import (
    DECIDED,
    MARGIN,
    NOT_TRIED,
    SPEED_CHANGED,
    Guard,
    Test,
    above,
    all_above,
)
from ga3c_tf.reproduce.runs.comparable import measured_alike
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import workers_of

SETTING = ("agents", "predictors", "trainers", "scheduling")
"""The dimensions that are varied."""
VARIED: dict[str, tuple[tuple, ...]] = {
    "quick": ((8, 16, 32, 64), (1, 2, 4, 8), (1, 2, 4), ("plain", "tuned")),
    "gpu": ((32, 128), (2,), (1, 2, 4), ("plain",)),
    "paper": ((16, 32, 64, 128), (1, 2, 4, 8, 16), (1, 2, 4, 8, 16), ("plain",)),
}
"""Values of each dimension by budget."""
LENGTHS: dict[str, dict[str, Any]] = {
    "quick": {"minutes": 0.75, "log_seconds": 2.5},
    "gpu": {"minutes": 0.3, "log_seconds": 3.0},
    "paper": {"minutes": 17.0, "log_seconds": 5.0},
}
WARM_UP_S: dict[float | None, float] = {0.75: 15.0, 0.3: 9.0, 17.0: 60.0}
"""Seconds of the warm-up by minutes of a run."""
PLOTTED = 3
"""Number of settings that the paper plots for each number of agents."""
PAPERS_GAP = 0.14
PAPERS_PREDICTORS = 4


def steady(run: RecordedRun) -> dict[str, float]:
    """Return the rates of a run after its warm-up."""
    return run.steady(WARM_UP_S.get(run.spec.config.minutes, 0.0))


def fastest(table: Measurements, **where) -> pd.Series:
    """Return the TPS of the settings that the paper would plot: the fastest three, by setting."""
    speeds = table.select(**where).series("tps", SETTING)
    return speeds.sort_values(ascending=False, kind="stable")[:PLOTTED]


def best_settings(part: Measurements) -> str:
    """Return a cell with the TPS of the fastest settings, and their predictors and trainers."""
    return ", ".join(f"{tps:.1f} ({setting[1]}/{setting[2]})" for setting, tps in fastest(part).items())


def _gap(table: Measurements) -> tuple[Effect, list[RecordedRun]]:
    """Compare the slowest number of agents with the fastest one, by the fastest settings of each.

    The settings of each scheduling are compared by the logarithms of their TPS, and the differences are
    averaged over the schedulings. The runs that are compared are returned too.
    """
    best = [
        [np.log(fastest(part, scheduling=scheduling)) for scheduling in table.names("scheduling")]
        for _, part in table.parts("agents")
    ]
    whole = [groups for groups in best if all(map(len, groups))]
    if not whole:
        return Effect(ratio=True), []
    whole.sort(key=lambda groups: np.mean([group.mean() for group in groups]))
    slow = whole[0]
    fast = whole[-1]
    estimate = pooled(list(zip(slow, fast, strict=True)), math.log(1 - PAPERS_GAP), of="setting")
    n = sum(map(len, slow)) if estimate.n >= LEAST_SEEDS else estimate.n
    settings = {setting for group in (*slow, *fast) for setting in group.index}
    compared = [row.run for row in table.rows if row.key(SETTING) in settings]
    return replace(estimate, n=n, ratio=True), compared


def _measures(run: RecordedRun) -> list[Measure]:
    rates = steady(run)
    protocol = f"over the last {rates['seconds']:.0f} s, minimum batch {run.spec.config.min_training_batch}"
    units = {"tps": "updates/s", "pps": "predictions/s"}
    return [Measure(metric, rates[metric], unit, protocol) for metric, unit in units.items()]


class TpsFigure(Figure):
    """Two numbers of workers are compared by the ratio of the TPS of runs that differ in nothing else."""

    name = "tps"
    games = {"smoke": ("cartpole",), "quick": ("pong",), "paper": ("pong",)}
    counts = {"gpu": 1, "paper": 1}
    smoke = ({}, workers(8))
    measured = (_measures,)
    main = ("tps", "updates/s")
    by_game = True
    rows = ("scheduling", "agents")
    columns = {"TPS of the fastest (predictors/trainers)": best_settings}

    def planned(self, budget, game, seed):
        return [
            speed_spec(game, seed, **workers(*numbers), scheduling=scheduling, **LENGTHS[budget])
            for *numbers, scheduling in product(*VARIED[budget])
        ]

    def dimensions(self, spec):
        return dict(zip(SETTING, (*workers_of(spec.config), spec.config.scheduling), strict=True))

    def claims(self, table):
        *fewer, most = sorted(table.names("agents"))
        more = sorted(number for number in table.names("predictors") if number > PAPERS_PREDICTORS)
        agents, agents_guard = _ratios(table, "agents", most, fewer)
        predictors, guard = _ratios(table, "predictors", PAPERS_PREDICTORS, more, 1 / (1 + MARGIN))
        gap, compared = _gap(table)
        changed = Guard(SPEED_CHANGED, bool(compared) and not measured_alike(compared), DECIDED)
        where = "" if all(run.on_gpu for run in table.finished) else "without a GPU, "
        tests: dict[str, tuple[Test, list[Guard]]] = {
            "most-agents": (all_above(agents, MARGIN), [agents_guard]),
            "few-predictors": (all_above(predictors), [Guard(NOT_TRIED, not more), guard]),
            "close-together": (above(gap), [table.several_machines, changed]),
        }
        return [
            self.claim(key, test, [table.missing, *guards], where=where)
            for key, (test, guards) in tests.items()
        ]

    def plot(self, table, stem):
        panels = {
            f"{scheduling} scheduling": part.series("tps", SETTING).to_dict()
            for scheduling, part in table.parts("scheduling")
        }
        speed_plots.normalized_tps(panels, PLOTTED, stem)


def _ratios(
    table: Measurements, kind: str, first: int, others: list[int], limit: float = 1.0
) -> tuple[list[Effect], Guard]:
    """Compare the TPS at one number of a kind of worker with those at others."""
    by = [name for name in (*SETTING, "seed") if name != kind]
    pairs = [table.pairs("tps", {kind: first}, {kind: number}, by) for number in others]
    what = [f"TPS with {first} instead of {number} {kind}" for number in others]
    ratios = [pair.factor(limit, of="pair", what=words) for pair, words in zip(pairs, what, strict=True)]
    return ratios, speed_changed(*pairs)

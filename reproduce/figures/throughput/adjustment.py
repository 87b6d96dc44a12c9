"""Figure 2 and slide 34: dynamic adjustment, and whether games differ in their best numbers of workers.

The search of the dynamic adjustment changes one number by one at a time and does not settle within minutes.
Therefore runs with fixed numbers judge the claim about games.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

from ga3c_tf.reproduce.drawing import speed_plots
from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.measurements import Measure, Measurements, Pairs
from ga3c_tf.reproduce.figures.plans import speed_spec, workers
from ga3c_tf.reproduce.figures.tables import Table, mean_of, means_of
from ga3c_tf.reproduce.figures.throughput.pps import with_or_without_gpu
from ga3c_tf.reproduce.measures import verdicts
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS, Effect, equality, paired_ratio
from ga3c_tf.reproduce.measures.verdicts import Guard, Test, Verdict
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec, workers_of

MINUTES = {"quick": 20.0, "paper": 240.0}
LOG_SECONDS = {"quick": 5.0, "paper": 30.0}
PERIOD_S = {"quick": 20.0, "paper": 60.0}
NUMBERS = {"agents": (8, 32), "predictors": (1, 2), "trainers": (1, 2)}
"""The two fixed numbers of each kind of worker."""
SECONDS = 36.0
WARM_UP_S = 12.0
SMOKE: dict[str, Any] = {
    "num_agents": 1,
    "adjustment": "paper",
    "adjustment_seconds": 1.0,
    "max_agents": 8,
    "steps": None,
    "minutes": 0.1,
}
SEARCH = (*(f"final {name}" for name in NUMBERS), "first rate", "final rate")
"""Metrics of the search."""


def dynamic(budget: str, game: str, seed: int, minutes: float) -> RunSpec:
    """Return a run that starts from 1/1/1 workers and is adjusted by the paper's rule."""
    return speed_spec(
        game,
        seed,
        **workers(1, 1, 1),
        adjustment="paper",
        adjustment_seconds=PERIOD_S[budget],
        max_agents=128,
        minutes=minutes,
        log_seconds=LOG_SECONDS[budget],
    )


def opposite(effects: Sequence[tuple[Effect, Effect]], differences: Sequence[Effect]) -> Test:
    """Test whether two effects of any comparison have opposite signs, or all of them are alike.

    The p value of opposite signs is the larger of the two effects', so the test is conservative.

    Args:
        effects: two effects for each comparison.
        differences: the difference of the two.
    """
    signs = [one.effect * other.effect for one, other in effects]
    p_values = [
        max(one.p, other.p) if sign < 0 else 1.0 for (one, other), sign in zip(effects, signs, strict=True)
    ]
    equal = [equality(difference, math.log(1 + verdicts.WIDE_MARGIN)) for difference in differences]

    def decided(corrected: Sequence[float]) -> Verdict:
        *of_signs, p = corrected
        if not of_signs:
            return Verdict(verdicts.INCONCLUSIVE, verdicts.RUNS_MISSING)
        if any(math.isnan(difference.freedom) for difference in differences):
            return Verdict(verdicts.INCONCLUSIVE, verdicts.FEW_SEEDS, differences[0])
        clearest = int(np.argmin(of_signs))
        if of_signs[clearest] < verdicts.LEVEL:
            return Verdict(verdicts.HOLDS, "", effects[clearest][0], of_signs[clearest])
        least = differences[int(np.argmax(equal))]
        if p < verdicts.LEVEL:
            return Verdict(verdicts.ALIKE, "", least, p, margin=verdicts.WIDE_MARGIN)
        return Verdict(verdicts.INCONCLUSIVE, verdicts.NO_DIFFERENCE, least, p)

    return Test([*p_values, max(equal, default=math.nan)], decided)


def _searched(rows) -> list[float]:
    """Return the last accepted setting, and the rates of the first and the last one.

    The rates are means over all periods with that setting.
    """
    accepted = np.flatnonzero(rows["accepted"] == 1)
    if not len(accepted):
        return [math.nan] * len(SEARCH)
    settings = np.array([rows[name] for name in NUMBERS])
    alike = [np.all(settings == settings[:, [place]], axis=0) for place in (accepted[0], accepted[-1])]
    return [*map(float, settings[:, accepted[-1]]), *(float(rows["rate"][same].mean()) for same in alike)]


def _speed(run: RecordedRun) -> list[Measure]:
    is_fixed = run.spec.config.adjustment == "off"
    steady = run.steady(WARM_UP_S if is_fixed else 0.0)
    after = f"over the last {steady['seconds']:.0f} s, minimum batch 0"
    return [Measure("tps", steady["tps"], "updates/s", after if is_fixed else "mean over the run")]


def _search(run: RecordedRun) -> list[Measure]:
    config = run.spec.config
    if config.adjustment == "off":
        return []
    rows = run.adjustment
    periods = (
        f"{len(rows['time_s'])} periods of {config.adjustment_seconds:g} s, moves of one (D6), from 1/1/1"
    )
    units = [*["workers"] * len(NUMBERS), *["trained samples/s"] * 2]
    return [
        Measure(metric, value, unit, periods, "no period of the adjustment has ended")
        for metric, value, unit in zip(SEARCH, _searched(rows), units, strict=True)
    ]


def _pairs(part: Measurements, kind: str) -> Pairs:
    """Return the TPS of one game with the larger and the smaller number of one kind of worker."""
    small, large = NUMBERS[kind]
    by = [name for name in (*NUMBERS, "seed") if name != kind]
    return part.pairs("tps", {kind: large}, {kind: small}, by)


class AdjustmentFigure(Figure):
    """Games differ if more workers of a kind raise the TPS of one game and lower that of another.

    They have no difference larger than `WIDE_MARGIN` if, for each kind, more workers change the TPS of all
    games by the same factor up to that difference.
    """

    name = "adjustment"
    games = {"smoke": ("cartpole",), "quick": ("boxing", "pong"), "paper": ("boxing", "pong")}
    counts = {"quick": 4, "paper": 4}
    smoke = (SMOKE,)
    measured = (_speed, _search)
    main = ("tps", "updates/s")
    tables = (
        Table(("game",), means_of(*SEARCH), "the search from 1/1/1", {"dynamic": True}),
        Table(("game", *NUMBERS), {"TPS": mean_of("tps")}, "fixed numbers of workers", {"dynamic": False}),
    )

    def planned(self, budget, game, seed):
        adjusted = [dynamic(budget, game, seed, MINUTES[budget])] if seed == 1 else []
        length: dict[str, Any] = {"minutes": SECONDS / 60, "log_seconds": 3.0}
        numbers = product(*NUMBERS.values())
        return [*adjusted, *(speed_spec(game, seed, **workers(*counts), **length) for counts in numbers)]

    def dimensions(self, spec):
        numbers = zip(NUMBERS, workers_of(spec.config), strict=True)
        return {**dict(numbers), "dynamic": spec.config.adjustment != "off"}

    def claims(self, table):
        fixed = table.select(dynamic=False)
        if not fixed.rows:
            return []
        pairs = {(kind, game): _pairs(part, kind) for kind in NUMBERS for game, part in fixed.parts("game")}
        effects = []
        differences = []
        for kind, games in product(NUMBERS, combinations(fixed.names("game"), 2)):
            small, large = NUMBERS[kind]
            what = f"TPS with {large} instead of {small} {kind} in"
            ratios = [pairs[kind, game].ratio for game in games]
            one, other = (
                paired_ratio(ratio, of="pair", what=f"{what} {game}")
                for ratio, game in zip(ratios, games, strict=True)
            )
            effects.append((one, other))
            both = f"{what} {games[0]}, relative to {games[1]}"
            differences.append(paired_ratio(*ratios, of="pair", what=both))
        fewest = min(len(part.names("seed")) for _, part in fixed.parts("game"))
        missing, *timed = fixed.timed(*pairs.values())
        few = [Guard(verdicts.RUNS_MISSING, not effects), Guard(verdicts.FEW_SEEDS, fewest < LEAST_SEEDS)]
        test = opposite(effects, differences)
        return [self.claim("games-differ", test, [missing, *few, *timed], where=with_or_without_gpu(fixed))]

    def plot(self, table, stem):
        speed_plots.adjustment_courses(table.select(dynamic=True).finished, stem)

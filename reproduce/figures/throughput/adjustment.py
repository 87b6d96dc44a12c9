"""Figure 2 and slide 34: dynamic adjustment, and whether games differ in their best numbers of workers.

The search of the dynamic adjustment changes one number by one at a time and does not settle within minutes.
Therefore runs with fixed numbers judge the claim about games.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from ga3c_tf.reproduce.figures.figure import UNFINISHED, Figure, Measure, Table, mean_of, means_of
from ga3c_tf.reproduce.figures.measurements import Measurements, Pairs, speed_changed
from ga3c_tf.reproduce.figures.pictures import drawing
from ga3c_tf.reproduce.figures.plans import smoke_spec, speed_spec, workers
from ga3c_tf.reproduce.figures.throughput.pps import with_or_without_gpu
from ga3c_tf.reproduce.measures import verdicts
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS, Effect, equality, paired_ratio
from ga3c_tf.reproduce.measures.verdicts import WIDE_MARGIN, Guard, Verdict
from ga3c_tf.reproduce.runs.specs import RunSpec, workers_of

MINUTES = {"quick": 20.0, "paper": 240.0}
PERIOD_S = {"quick": 20.0, "paper": 60.0}
LOG_SECONDS = {"quick": 5.0, "paper": 30.0}
NUMBERS = {"agents": (8, 32), "predictors": (1, 2), "trainers": (1, 2)}
"""The two fixed numbers of each kind of worker."""
SECONDS = 36.0
WARM_UP_S = 12.0
SEARCH = (*(f"final {name}" for name in NUMBERS), "first rate", "final rate")
"""Metrics of the search."""


def dynamic(budget: str, game: str, seed: int, minutes: float | None = None) -> RunSpec:
    """Return a run that starts from 1/1/1 workers and is adjusted by the paper's rule. `speed` uses it too.

    Smoke runs have a duration of their own; other runs may have another one than that of the budget.
    """
    if budget == "smoke":
        short: dict[str, Any] = {"adjustment_seconds": 1.0, "max_agents": 8, "steps": None, "minutes": 0.1}
        return smoke_spec(game, seed, num_agents=1, adjustment="paper", **short)
    search = {"adjustment": "paper", "adjustment_seconds": PERIOD_S[budget], "max_agents": 128}
    length = {"minutes": minutes or MINUTES[budget], "log_seconds": LOG_SECONDS[budget]}
    return speed_spec(game, seed, **{**workers(1, 1, 1), **search, **length})


class Opposite(NamedTuple):
    """Whether two effects of any comparison have opposite signs, or all of them are alike.

    The p value of opposite signs is the larger of the two effects', so the test is conservative.
    """

    effects: Sequence[tuple[Effect, ...]]  # two effects for each comparison
    differences: Sequence[Effect]  # the difference of the two

    @property
    def p_values(self) -> list[float]:
        opposite = [
            max(one.p, other.p) if one.effect * other.effect < 0 else 1.0 for one, other in self.effects
        ]
        return [*opposite, max(self._equal, default=math.nan)]

    @property
    def _equal(self) -> list[float]:
        return [equality(difference, math.log(1 + WIDE_MARGIN)) for difference in self.differences]

    def judged(self, corrected: Sequence[float], level: float) -> Verdict:
        *opposite, p = corrected
        if not opposite:
            return Verdict(verdicts.INCONCLUSIVE, verdicts.RUNS_MISSING)
        if any(math.isnan(difference.freedom) for difference in self.differences):
            return Verdict(verdicts.INCONCLUSIVE, verdicts.FEW_SEEDS, self.differences[0])
        clearest = int(np.argmin(opposite))
        if opposite[clearest] < verdicts.LEVEL:
            one, other = self.effects[clearest]
            return Verdict(verdicts.HOLDS, "", one, opposite[clearest], second=(other, opposite[clearest]))
        least = self.differences[int(np.argmax(self._equal))]
        if p < verdicts.LEVEL:
            return Verdict(verdicts.ALIKE, "", least, p, margin=WIDE_MARGIN)
        return Verdict(verdicts.INCONCLUSIVE, verdicts.NO_DIFFERENCE, least, p)


class AdjustmentFigure(Figure):
    """Games differ if more workers of a kind raise the TPS of one game and lower that of another.

    They have no difference larger than `WIDE_MARGIN` if, for each kind, more workers change the TPS of all
    games by the same factor up to that difference.
    """

    name = "adjustment"
    place = 3
    paper = "Figure 2, slide 34"
    shows = "agents, predictors, trainers and TPS over time under dynamic adjustment"
    headline = "the best numbers of agents, predictors and trainers differ between games"
    games = {"smoke": ("cartpole",), "quick": ("boxing", "pong"), "paper": ("boxing", "pong")}
    counts = {"quick": 4, "paper": 4}
    main = ("tps", "updates/s")
    tables = (
        Table(("game",), {**means_of(*SEARCH), **UNFINISHED}, "the search from 1/1/1", {"dynamic": True}),
        Table(("game", *NUMBERS), {"TPS": mean_of("tps")}, "fixed numbers of workers", {"dynamic": False}),
    )

    def specs(self, budget, game, seed):
        adjusted = [dynamic(budget, game, seed)] if seed == 1 or budget == "smoke" else []
        numbers = product(*NUMBERS.values()) if budget != "smoke" else ()
        length: dict[str, Any] = {"minutes": SECONDS / 60, "log_seconds": 3.0}
        return [*adjusted, *(speed_spec(game, seed, **workers(*counts), **length) for counts in numbers)]

    def dimensions(self, spec):
        numbers = zip(NUMBERS, workers_of(spec.config), strict=True)
        return {**dict(numbers), "dynamic": spec.config.adjustment != "off"}

    def measures(self, run):
        config = run.spec.config
        if config.adjustment == "off":
            steady = run.steady(WARM_UP_S)
            protocol = f"over the last {steady['seconds']:.0f} s, minimum batch 0"
            return [Measure("tps", steady["tps"], "updates/s", protocol)]
        rows = run.adjustment
        periods = f"{len(rows['time_s'])} periods of {config.adjustment_seconds:g} s"
        units = [*["workers"] * len(NUMBERS), *["trained samples/s"] * 2]
        search = zip(SEARCH, _searched(rows), units, strict=True)
        protocol = f"{periods}, moves of one (D6), from 1/1/1"
        why_not = "no period of the adjustment has ended"
        return [
            Measure("tps", run.steady(0.0)["tps"], "updates/s", "mean over the run"),
            *(Measure(metric, value, unit, protocol, why_not) for metric, value, unit in search),
        ]

    def claims(self, table):
        fixed = table.select(dynamic=False)
        if not fixed.rows:
            return []
        pairs = {(kind, game): _pairs(part, kind) for kind in NUMBERS for game, part in fixed.parts("game")}
        effects = []
        differences = []
        for kind, games in product(NUMBERS, combinations(fixed.names("game"), 2)):
            small, large = NUMBERS[kind]
            what = f"TPS with {large} relative to {small} {kind} in"
            ratios = [pairs[kind, game].ratio for game in games]
            both = f"{what} {games[0]} and {games[1]}, the first factor relative to the second"
            alone = zip(ratios, games, strict=True)
            effects.append(
                tuple(paired_ratio(ratio, of="pair", what=f"{what} {game}") for ratio, game in alone)
            )
            differences.append(paired_ratio(*ratios, of="pair", what=both))
        fewest = min(len(part.names("seed")) for _, part in fixed.parts("game"))
        guards = [
            fixed.missing,
            Guard(verdicts.RUNS_MISSING, not effects),
            Guard(verdicts.FEW_SEEDS, fewest < LEAST_SEEDS),
            fixed.several_machines,
            speed_changed(*pairs.values()),
        ]
        test = Opposite(effects, differences)
        return [self.claim("games-differ", test, guards, where=with_or_without_gpu(fixed))]

    def plot(self, table, stem):
        drawing("speed_plots").adjustment_courses(table.select(dynamic=True).finished, stem)


def _pairs(part: Measurements, kind: str) -> Pairs:
    """Return the TPS of one game with the larger and the smaller number of one kind of worker."""
    small, large = NUMBERS[kind]
    by = [name for name in (*NUMBERS, "seed") if name != kind]
    return part.pairs("tps", {kind: large}, {kind: small}, by)


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


FIGURE = AdjustmentFigure()

"""Figure 2 and slide 34: dynamic adjustment, and whether games differ in their best numbers of workers.

The search of the dynamic adjustment changes one number by one at a time and does not settle within minutes.
Therefore runs with fixed numbers judge the claim about games.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ga3c_tf.reproduce.figures.figure import (
    Figure,
    Measure,
    Table,
    mean_of,
    seeds_by_budget,
    smoke_spec,
    unfinished,
)
from ga3c_tf.reproduce.figures.measurements import Measurements, Pairs, speed_changed
from ga3c_tf.reproduce.figures.throughput.pps import with_or_without_gpu
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS, NOTHING, Effect, equality, paired_ratio
from ga3c_tf.reproduce.measures.verdicts import (
    ALIKE,
    FEW_SEEDS,
    HOLDS,
    INCONCLUSIVE,
    LEVEL,
    NO_DIFFERENCE,
    RUNS_MISSING,
    WIDE_MARGIN,
    Claim,
    Guard,
    Verdict,
)
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec, network_of, run_spec, workers_of

MINUTES = {"quick": 20.0, "paper": 240.0}
PERIOD_S = {"quick": 20.0, "paper": 60.0}
WORKERS = ("agents", "predictors", "trainers")
NUMBERS = {"agents": (8, 32), "predictors": (1, 2), "trainers": (1, 2)}
"""The two fixed numbers of each kind of worker."""
SECONDS = 36.0
WARM_UP_S = 12.0


def dynamic(budget: str, game: str, seed: int, minutes: float | None = None) -> RunSpec:
    """Return a run that starts from 1/1/1 workers and is adjusted by the paper's rule. `speed` uses it too.

    Args:
        budget: one of `BUDGETS` that the figure has.
        game: name of the game.
        seed: seed of the run.
        minutes: duration of the run; None for the default of the budget. `smoke` ignores it.
    """
    search: dict[str, Any] = {"num_agents": 1, "adjustment": "paper"}
    if budget == "smoke":
        limit: dict[str, Any] = {"max_agents": 8, "adjustment_seconds": 1.0, "steps": None, "minutes": 0.1}
        return smoke_spec(game, seed, **search, **limit)
    return run_spec(
        game,
        seed,
        **search,
        num_predictors=1,
        num_trainers=1,
        **network_of(game),
        min_training_batch=0,
        adjustment_seconds=PERIOD_S[budget],
        max_agents=128,
        minutes=minutes or MINUTES[budget],
        log_seconds=5.0 if budget == "quick" else 30.0,
        checkpoint_minutes=60.0,
    )


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return the runs with fixed numbers and for seed 1 that with adjustment. `smoke` has only the latter."""
    adjusted = [dynamic(budget, game, seed)] if seed == 1 or budget == "smoke" else []
    if budget == "smoke":
        return adjusted
    fixed = [
        run_spec(
            game,
            seed,
            num_agents=agents,
            num_predictors=predictors,
            num_trainers=trainers,
            **network_of(game),
            min_training_batch=0,
            minutes=SECONDS / 60,
            log_seconds=3.0,
            checkpoint_minutes=60.0,
        )
        for agents, predictors, trainers in product(*NUMBERS.values())
    ]
    return [*adjusted, *fixed]


def dimensions(spec: RunSpec) -> dict[str, object]:
    """Return the numbers of workers at the start, and whether they are adjusted."""
    return {
        **dict(zip(WORKERS, workers_of(spec.config), strict=True)),
        "dynamic": spec.config.adjustment != "off",
    }


def measures(run: RecordedRun) -> list[Measure]:
    """Return the TPS; with dynamic adjustment, also the last accepted setting and the rates of the first and
    the last.

    The rates are means over all periods with that setting.
    """
    if run.spec.config.adjustment == "off":
        steady = run.steady(WARM_UP_S)
        protocol = f"over the last {steady['seconds']:.0f} s, minimum batch 0"
        return [Measure("tps", steady["tps"], "updates/s", protocol)]
    rows = run.adjustment
    accepted = np.flatnonzero(rows["accepted"] == 1)
    period = run.spec.config.adjustment_seconds
    protocol = f"{len(rows['time_s'])} periods of {period:g} s, moves of one (D6), from 1/1/1"
    why_not = "no period of the adjustment has ended"

    def at(column: str, place: int) -> float:
        return float(rows[column][accepted[place]]) if len(accepted) else math.nan

    def rate(place: int) -> float:
        """Return the mean rate over all periods with the setting of this accepted period."""
        same = np.all([rows[name] == at(name, place) for name in WORKERS], axis=0)
        return float(rows["rate"][same].mean()) if len(accepted) else math.nan

    return [
        Measure("tps", run.steady(0.0)["tps"], "updates/s", "mean over the run"),
        *(Measure(f"final {name}", at(name, -1), "workers", protocol, why_not) for name in WORKERS),
        Measure("first rate", rate(0), "trained samples/s", protocol, why_not),
        Measure("final rate", rate(-1), "trained samples/s", protocol, why_not),
    ]


class Opposite(NamedTuple):
    """Whether two effects of any comparison have opposite signs, or all of them are alike.

    The p value of opposite signs is the larger of the two effects', so the test is conservative.

    Attributes:
        effects: two effects for each comparison.
        differences: the difference of the two.
    """

    effects: Sequence[tuple[Effect, ...]]
    differences: Sequence[Effect]

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
        if any(math.isnan(difference.freedom) for difference in self.differences):
            return Verdict(INCONCLUSIVE, FEW_SEEDS, self.differences[0])
        *opposite, p = corrected
        clearest = int(np.argmin(opposite))
        if opposite[clearest] < LEVEL:
            one, other = self.effects[clearest]
            return Verdict(HOLDS, "", one, opposite[clearest], second=(other, opposite[clearest]))
        least = self.differences[int(np.argmax(self._equal))]
        if p < LEVEL:
            return Verdict(ALIKE, "", least, p, margin=WIDE_MARGIN)
        return Verdict(INCONCLUSIVE, NO_DIFFERENCE, least, p)


def claims(table: Measurements) -> list[Claim]:
    """Return the paper's claim that games differ in the best numbers of workers.

    They do if more workers of a kind raise the TPS of one game and lower that of another. They have no
    difference larger than `WIDE_MARGIN` if, for each kind, more workers change the TPS of all games by the
    same factor up to that difference. Only the mean over the numbers of the other workers counts.
    """
    fixed = table.select(dynamic=False)
    if fixed.facts.empty:
        return []
    ratios = {(kind, game): _ratios(part, kind) for kind in WORKERS for game, part in fixed.parts("game")}
    effects = []
    differences = []
    for kind in WORKERS:
        for one, other in combinations(fixed.names("game"), 2):
            effects.append(tuple(_effect(ratios[kind, game], kind, game) for game in (one, other)))
            first, second = (_ratio_of(ratios[kind, game]) for game in (one, other))
            what = f"{_described(kind)} in {one} and {other}, the first factor relative to the second"
            differences.append(paired_ratio(first, second, of="pair", what=what))
    text = "the best numbers of agents, predictors and trainers differ between games"
    kinds = [f"{small} or {large} {name}" for name, (small, large) in NUMBERS.items()]
    rule = (
        f"with {', '.join(kinds[:-1])} and {kinds[-1]}: more workers of a kind raise the TPS of one game and "
        f"lower that of another; 'no difference larger than {WIDE_MARGIN:.0%}' if the factors of each kind "
        "differ by less"
    )
    guards = [
        fixed.missing,
        Guard(RUNS_MISSING, not effects),
        Guard(FEW_SEEDS, min(part.facts["seed"].nunique() for _, part in fixed.parts("game")) < LEAST_SEEDS),
        fixed.several_machines,
        speed_changed(*ratios.values()),
    ]
    return [
        Claim(
            "games-differ",
            with_or_without_gpu(fixed) + text,
            Opposite(effects, differences) if effects else Opposite([], [NOTHING]),
            guards,
            rule,
        )
    ]


def _ratios(part: Measurements, kind: str) -> Pairs:
    """Return the TPS of one game with the larger and the smaller number of one kind of worker."""
    small, large = NUMBERS[kind]
    by = [name for name in (*WORKERS, "seed") if name != kind]
    return part.pairs("tps", {kind: large}, {kind: small}, by)


def _ratio_of(pairs: Pairs) -> pd.Series:
    return pairs.first / pairs.second


def _effect(pairs: Pairs, kind: str, game: str) -> Effect:
    return paired_ratio(_ratio_of(pairs), of="pair", what=f"{_described(kind)} in {game}")


def _described(kind: str) -> str:
    small, large = NUMBERS[kind]
    return f"TPS with {large} relative to {small} {kind}"


def plot(table: Measurements, stem: Path) -> None:
    """Draw N_A, N_P, N_T and TPS over time, a column for each game."""
    from ga3c_tf.reproduce.drawing import speed_plots

    speed_plots.adjustment_courses(table.select(dynamic=True).finished, stem)


FINAL = {f"final {name}": mean_of(f"final {name}") for name in WORKERS}
RATES = {name: mean_of(name) for name in ("first rate", "final rate")}
FIGURE = Figure(
    name="adjustment",
    place=3,
    paper="Figure 2, slide 34",
    shows="agents, predictors, trainers and TPS over time under dynamic adjustment",
    headline="the best numbers of agents, predictors and trainers differ between games",
    games={"smoke": ("cartpole",), "quick": ("boxing", "pong"), "paper": ("boxing", "pong")},
    seeds=seeds_by_budget(quick=4, paper=4),
    specs=specs,
    dimensions=dimensions,
    measures=measures,
    main=("tps", "updates/s"),
    claims=claims,
    tables=[
        Table(
            ("game",),
            {**FINAL, **RATES, "not finished": unfinished},
            title="the search from 1/1/1",
            where={"dynamic": True},
        ),
        Table(
            ("game", *WORKERS),
            {"TPS": mean_of("tps")},
            title="fixed numbers of workers",
            where={"dynamic": False},
        ),
    ],
    plot=plot,
)

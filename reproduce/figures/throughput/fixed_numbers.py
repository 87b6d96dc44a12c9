"""Whether games differ in their best numbers of agents, predictors and trainers, by runs with fixed ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import NamedTuple

from ga3c_tf.reproduce.figures.figure import Measure
from ga3c_tf.reproduce.measures.effects import Effect, equality, paired_ratio
from ga3c_tf.reproduce.measures.judging import holm
from ga3c_tf.reproduce.measures.verdicts import (
    CHANCE,
    EQUAL_WIDE,
    FEW_SEEDS,
    HOLDS,
    LEAST_SEEDS,
    NO_DIFFERENCE,
    RUNS_MISSING,
    WIDE_MARGIN,
    Finding,
)
from ga3c_tf.reproduce.measures.wording import described_ratio
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec, network_of, run_spec

WORKERS = ("agents", "predictors", "trainers")
SECONDS = 36.0
WARM_UP_S = 12.0
NUMBERS = ((8, 32), (1, 2), (1, 2))
"""The two numbers of each kind of worker in `WORKERS`."""


class WorkersAndSeed(NamedTuple):
    """What tells a game's runs apart: the numbers of workers, in the order of `WORKERS`, and the seed."""

    workers: tuple[int, ...]
    seed: int


Speeds = Mapping[str, Mapping[WorkersAndSeed, float]]
"""TPS of each run, by game."""


def specs(game: str, seed: int) -> list[RunSpec]:
    """Return a run for every combination of the numbers of workers in `NUMBERS`."""
    return [
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
        for agents, predictors, trainers in product(*NUMBERS)
    ]


def measures(run: RecordedRun) -> list[Measure]:
    """Return the TPS after the warm-up."""
    steady = run.steady(WARM_UP_S)
    return [
        Measure(
            "tps", steady["tps"], "updates/s", f"over the last {steady['seconds']:.0f} s, minimum batch 0"
        )
    ]


def ratios_of(speeds: Mapping[WorkersAndSeed, float], place: int) -> dict[tuple, float]:
    """Return the TPS with the larger number of one kind of worker relative to the smaller number.

    Args:
        speeds: TPS of the runs of one game.
        place: index of the kind in `WORKERS`.

    Returns:
        The ratios, by the numbers of the other workers and the seed.
    """
    small, large = NUMBERS[place]

    def having(count: int) -> dict[tuple, float]:
        return {
            (*run.workers[:place], *run.workers[place + 1 :], run.seed): tps
            for run, tps in speeds.items()
            if run.workers[place] == count
        }

    lower = having(small)
    return {pair: tps / lower[pair] for pair, tps in having(large).items() if pair in lower}


def different(speeds: Speeds) -> Finding:
    """Judge whether games differ in their best numbers of workers.

    They do if more workers of a kind raise the TPS of one game and lower that of another. They have no
    difference larger than `WIDE_MARGIN` if, for each kind, more workers change the TPS of all games by the
    same factor up to that difference. Only the mean over the numbers of the other workers counts, so their
    interactions do not.

    Args:
        speeds: TPS of each run, by game.
    """
    if len(speeds) < 2:
        return Finding(RUNS_MISSING, "needs two games")
    opposite = {}
    differences = {}
    for place, name in enumerate(WORKERS):
        ratios = {game: ratios_of(by_run, place) for game, by_run in speeds.items()}
        effects = {
            game: paired_ratio(by_pair, dict.fromkeys(by_pair, 1.0)) for game, by_pair in ratios.items()
        }
        for one, other in combinations(speeds, 2):
            opposite[name, one, other] = [effects[one], effects[other]]
            differences[name, one, other] = paired_ratio(ratios[one], ratios[other])
    seeds = min(len({run.seed for run in by_run}) for by_run in speeds.values())
    if seeds < LEAST_SEEDS or any(math.isnan(effect.freedom) for effect in differences.values()):
        return Finding(FEW_SEEDS, f"needs {LEAST_SEEDS} seeds of each game")
    equal = {key: equality(effect, math.log(1 + WIDE_MARGIN)) for key, effect in differences.items()}
    *chances, of_equal = holm([*map(_chance_of_opposite, opposite.values()), max(equal.values())])
    corrected = dict(zip(opposite, chances, strict=True))
    clearest = min(corrected, key=corrected.__getitem__)
    if corrected[clearest] < CHANCE:
        both = (described_ratio(effect, corrected[clearest], "pair") for effect in opposite[clearest])
        return Finding(HOLDS, f"{_described(*clearest)}: {' and '.join(both)}")
    least = max(equal, key=equal.__getitem__)
    because = f"{_described(*least)}, the first factor relative to the second, margin {WIDE_MARGIN:.0%}: "
    because += described_ratio(differences[least], of_equal, "pair")
    return Finding(EQUAL_WIDE if of_equal < CHANCE else NO_DIFFERENCE, because)


def _described(name: str, one: str, other: str) -> str:
    small, large = NUMBERS[WORKERS.index(name)]
    return f"TPS with {large} relative to {small} {name} in {one} and {other}"


def _chance_of_opposite(effects: Sequence[Effect]) -> float:
    """Return the p value of the claim that one effect is above 0 and the other below; 1 if they have the same
    sign.

    It is the larger of two two-sided p values, so the test is conservative.
    """
    one, other = effects
    return max(one.chance, other.chance) if one.mean * other.mean < 0 else 1.0

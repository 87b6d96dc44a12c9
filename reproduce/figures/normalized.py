"""The scores of the random policy on the game of a part of a table, and scores on a scale from there."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.figures.metrics import EVALUATED, START
from ga3c_tf.reproduce.figures.tables import Cell
from ga3c_tf.reproduce.measures.random_policy import (
    RANDOM_POLICY,
    RandomPolicy,
    has_left_random,
    random_policy_of,
)
from ga3c_tf.reproduce.measures.text import number

PAPERS = "GA3C (1 day, GPU)"


def random_policy(part: Measurements) -> RandomPolicy | None:
    """Return the scores of the random policy: measured with the planned runs of the game, or on record, or at
    the start of training, when the policy is nearly random.
    """
    of_game = part.of_game
    runs = of_game.runs
    played = [run.result["random"]["scores"] for run in runs if "random" in run.result]
    if played:
        return random_policy_of(played[0])
    starts = of_game.numbers(START)
    if part.game in RANDOM_POLICY or not starts:
        return RANDOM_POLICY.get(part.game)
    window = runs[0].spec.config.rolling_episodes
    mean, deviation, _ = random_policy_of(starts)  # each start is the mean of a window of episodes
    return RandomPolicy(mean, deviation * math.sqrt(window), window * len(starts))


def has_learned(part: Measurements, groups: Sequence[Sequence[float]], metric: str) -> bool:
    """Return whether every score of a group is significantly above the random policy's; see
    `has_left_random`. The scores are values of a metric.
    """
    runs = part.of_game.runs
    episodes = [run.spec.config.rolling_episodes for run in runs]
    episodes += [int(run.curve["episodes"][-1]) for run in runs if len(run.curve["episodes"])]
    played = [len(run.result["evaluation"]["scores"]) for run in runs if "evaluation" in run.result]
    fewest = max(1, min(played if played and metric == EVALUATED else episodes))
    random = random_policy(part)
    return any(has_left_random(group, fewest, random) for group in groups)


def random_score(part: Measurements) -> float | None:
    """Return the mean score of the random policy, if it is known."""
    policy = random_policy(part)
    return None if policy is None else policy.mean


RANDOM_POLICY_CELL: dict[str, Cell] = {"random policy": lambda part: number(random_score(part))}


def papers_score(part: Measurements, method: str = PAPERS) -> float | None:
    """Return the paper's score of a method."""
    return part.papers("scores", method=method)


def normalized(part: Measurements, score: float | None) -> float | None:
    """Return a score as a share of the way from the random policy to the paper's GA3C, if both are known."""
    random = random_score(part)
    paper = papers_score(part)
    if score is None or random is None or paper is None or paper <= random:
        return None
    return (score - random) / (paper - random)

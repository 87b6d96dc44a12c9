"""Scores of the random policy, and whether runs score more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS
from ga3c_tf.reproduce.measures.verdicts import LEVEL


class RandomPolicy(NamedTuple):
    """Mean score of episodes of uniformly random actions, its deviation from episode to episode, and how many
    were played.
    """

    mean: float
    deviation: float
    episodes: int


RANDOM_POLICY = {
    "cartpole": RandomPolicy(22.6, 12.1, 1000),
    "minatar_asterix": RandomPolicy(0.483, 0.824, 1000),
    "minatar_breakout": RandomPolicy(0.384, 0.646, 1000),
    "minatar_freeway": RandomPolicy(0.419, 0.599, 1000),
    "minatar_seaquest": RandomPolicy(0.083, 0.326, 1000),
    "minatar_space_invaders": RandomPolicy(4.16, 3.34, 1000),
    # Atari, from the runs of `scores` at the tuned budget. The paper's scores of two games look swapped.
    "amidar": RandomPolicy(3.01, 5.85, 100),
    "boxing": RandomPolicy(1.17, 5.4, 100),
    "centipede": RandomPolicy(2233, 1138, 100),
    "name_this_game": RandomPolicy(2350, 854, 100),
    "ms_pacman": RandomPolicy(266, 132, 100),
    "pong": RandomPolicy(-20.3, 0.895, 100),
    "qbert": RandomPolicy(143, 93.5, 100),
    "seaquest": RandomPolicy(85.2, 62.8, 100),
    "up_n_down": RandomPolicy(476, 479, 100),
}
"""Random policy by game, for runs without random episodes of their own."""


def random_policy_of(scores: Sequence[float]) -> RandomPolicy:
    """Return the mean, deviation and number of these scores of random episodes."""
    deviation = float(np.std(scores, ddof=1)) if len(scores) > 1 else 0.0
    return RandomPolicy(float(np.mean(scores)), deviation, len(scores))


def has_left_random(seeds: Sequence[float], episodes: int, random: RandomPolicy | None) -> bool:
    """Return whether every seed scores significantly more than the random policy.

    A run that plays like the random policy exceeds the limit in 5 % of cases. The scatter of the seeds does
    not matter: seeds that have learned very different amounts have all left the random policy. Fewer than
    three seeds, or an unknown random policy, decide nothing: the result is True.

    Args:
        seeds: mean score of each seed.
        episodes: number of episodes in each of these means.
        random: scores of the random policy, or None.
    """
    if random is None or len(seeds) < LEAST_SEEDS:
        return True
    error = random.deviation * math.sqrt(1 / episodes + 1 / random.episodes)
    return min(seeds) > random.mean + float(ndtri(1 - LEVEL)) * error

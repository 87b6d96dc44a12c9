"""MinAtar's five games with PQN, DQN and GA3C after the same agent steps.

The table describes: no claim was stated before the runs. The settings were chosen on seeds from 101 on.
"""

from __future__ import annotations

from typing import Any

from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.metrics import EVALUATED, FINAL, evaluations, rolling_scores
from ga3c_tf.reproduce.figures.normalized import RANDOM_POLICY_CELL
from ga3c_tf.reproduce.figures.plans import preset_spec
from ga3c_tf.reproduce.figures.tables import MINUTES, mean_of

PRESETS = {"PQN": "pqn-small", "GA3C": "tuned-small", "DQN": "dqn-small"}
"""Preset by algorithm; those of the runs that take less time are first."""
STEPS = 3_000_000
SEEDS = 5
FIRST = ("minatar_breakout", "minatar_space_invaders")
"""The games whose runs of a seed are made before those of the other games."""


class QLearningFigure(Figure):
    """Has a run of each algorithm with its preset, for the same number of agent steps."""

    name = "q-learning"
    games = {
        "smoke": ("cartpole",),
        "tuned": (*FIRST, "minatar_asterix", "minatar_freeway", "minatar_seaquest"),
    }
    counts = {"tuned": SEEDS}
    smoke = (
        {"algorithm": "pqn", "called": ("PQN",)},
        {"called": ("GA3C",)},
        {"algorithm": "dqn", "min_training_batch": None, "called": ("DQN",)},
    )
    labels = {"algorithm": str}
    measured = (rolling_scores, evaluations)
    main = (EVALUATED, "points")
    rows = ("game", "algorithm")
    columns = {
        **RANDOM_POLICY_CELL,
        "score of the final weights": mean_of(EVALUATED),
        "rolling score at the end": mean_of(FINAL),
        **MINUTES,
    }
    lines = "algorithm"
    words: Any = {"steps": STEPS, "seeds": SEEDS}

    def planned(self, budget, game, seed):
        first = 0 if game in FIRST else len(PRESETS)
        return [
            preset_spec(preset, game, seed, steps=STEPS).in_turn(first + place).called(name)
            for place, (name, preset) in enumerate(PRESETS.items())
        ]

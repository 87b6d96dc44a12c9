"""MinAtar's five games with PQN, DQN and GA3C after the same agent steps.

The table describes: no claim was stated before the runs. Settings were chosen on seeds from 101 on.
"""

from __future__ import annotations

from typing import Any

from ga3c_tf.reproduce.figures.figure import MINUTES, UNFINISHED, Figure, Table, mean_of
from ga3c_tf.reproduce.figures.learning import environments, learning_curves, scores
from ga3c_tf.reproduce.figures.measurements import words_of
from ga3c_tf.reproduce.figures.pictures import draw_curves
from ga3c_tf.reproduce.figures.plans import smoke_spec
from ga3c_tf.reproduce.measures.text import number
from ga3c_tf.reproduce.runs.tuned import preset_spec

PRESETS = {"PQN": "pqn-small", "GA3C": "tuned-small", "DQN": "dqn-small"}
"""Preset by algorithm; those of the runs that take less time are first."""
STEPS = 3_000_000
SEEDS = 5
FIRST = ("minatar_breakout", "minatar_space_invaders")
"""The games whose runs of a seed are made before those of the other games."""
SMOKE: dict[str, dict[str, Any]] = {
    "PQN": {"algorithm": "pqn"},
    "GA3C": {},
    "DQN": {"algorithm": "dqn", "min_training_batch": None},
}


class QLearningFigure(Figure):
    """Has a run of each algorithm with its preset, for the same number of agent steps."""

    name = "q-learning"
    place = 18
    shows = "score of PQN, DQN and GA3C on MinAtar's five games after the same agent steps"
    headline = "what do Q-learning and the actor-critic learn from the same steps?"
    games = {
        "smoke": ("cartpole",),
        "tuned": (*FIRST, "minatar_asterix", "minatar_freeway", "minatar_seaquest"),
    }
    counts = {"tuned": SEEDS}
    main = (scores.SCORE, "points")
    dimensions: Any = staticmethod(words_of(algorithm=str))
    tables = (
        Table(
            ("game", "algorithm"),
            {
                "random policy": lambda part: number(environments.random_score(part)),
                "score of the final weights": mean_of(scores.SCORE),
                "rolling score at the end": mean_of(learning_curves.FINAL),
                **MINUTES,
                **UNFINISHED,
            },
        ),
    )
    words = {"steps": STEPS, "seeds": SEEDS}
    scores = (scores.SCORE, learning_curves.FINAL)

    def specs(self, budget, game, seed):
        if budget == "smoke":
            return [smoke_spec(game, seed, **settings).called(name) for name, settings in SMOKE.items()]
        first = 0 if game in FIRST else len(PRESETS)
        return [
            preset_spec(preset, game, seed, steps=STEPS).in_turn(first + place).called(name)
            for place, (name, preset) in enumerate(PRESETS.items())
        ]

    def measures(self, run):
        return [*learning_curves.measures(run), *scores.measures(run)]

    def plot(self, table, stem):
        draw_curves(table, stem, "algorithm")


FIGURE = QLearningFigure()

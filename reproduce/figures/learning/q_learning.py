"""MinAtar's five games with PQN, DQN and GA3C after the same agent steps.

The table describes: no claim was stated before the runs. Settings were chosen on seeds from 101 on.
"""

from __future__ import annotations

from typing import Any

from ga3c_tf.reproduce.figures.figure import (
    Figure,
    Measure,
    Table,
    mean_of,
    minutes,
    seeds_by_budget,
    smoke_spec,
    unfinished,
)
from ga3c_tf.reproduce.figures.learning import environments, learning_curves, scores
from ga3c_tf.reproduce.figures.measurements import words_of
from ga3c_tf.reproduce.figures.pictures import curves_by
from ga3c_tf.reproduce.measures.text import number
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec
from ga3c_tf.reproduce.runs.tuned import preset_spec

PRESETS = {"PQN": "pqn-small", "GA3C": "tuned-small", "DQN": "dqn-small"}
"""Preset by algorithm; those of the runs that take less time are first."""
STEPS = 3_000_000
SEEDS = 5
FIRST = ("minatar_breakout", "minatar_space_invaders")
"""The games whose runs of a seed are made before those of the other games."""
GAMES = (*FIRST, "minatar_asterix", "minatar_freeway", "minatar_seaquest")
SMOKE: dict[str, dict[str, Any]] = {
    "PQN": {"algorithm": "pqn"},
    "GA3C": {},
    "DQN": {"algorithm": "dqn", "min_training_batch": None},
}


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return a run of each algorithm with its preset, for the same number of agent steps."""
    if budget == "smoke":
        return [smoke_spec(game, seed, **settings).called(name) for name, settings in SMOKE.items()]
    first = 0 if game in FIRST else len(PRESETS)
    return [
        preset_spec(preset, game, seed, steps=STEPS).in_turn(first + place).called(name)
        for place, (name, preset) in enumerate(PRESETS.items())
    ]


def measures(run: RecordedRun) -> list[Measure]:
    """Return the rolling score at the end and at its best, and the scores of an evaluation."""
    return [*learning_curves.measures(run), *scores.measures(run)]


FIGURE = Figure(
    name="q-learning",
    place=18,
    paper="not in the paper",
    shows="score of PQN, DQN and GA3C on MinAtar's five games after the same agent steps",
    headline="what do Q-learning and the actor-critic learn from the same steps?",
    games={"smoke": ("cartpole",), "tuned": GAMES},
    seeds=seeds_by_budget(tuned=SEEDS),
    specs=specs,
    dimensions=words_of("algorithm"),
    measures=measures,
    main=(scores.SCORE, "points"),
    scores=(scores.SCORE, learning_curves.FINAL),
    tables=[
        Table(
            ("game", "algorithm"),
            {
                "random policy": lambda part: number(environments.random_score(part)),
                "score of the final weights": mean_of(scores.SCORE),
                "rolling score at the end": mean_of(learning_curves.FINAL),
                "minutes": minutes,
                "not finished": unfinished,
            },
        )
    ],
    plot=curves_by("algorithm"),
    words={"steps": STEPS, "seeds": SEEDS},
)

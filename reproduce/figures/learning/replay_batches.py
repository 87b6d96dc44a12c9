"""Whether DQN learns as much with large batches from the same samples, with GA3C's system and with A2C's.

Every run trains 8 times on each agent step, so it has the same samples in fewer, larger updates.
"""

from __future__ import annotations

import dataclasses
import math

from ga3c_tf.reproduce.figures.figure import (
    Figure,
    Table,
    mean_of,
    minutes,
    seeds_by_budget,
    smoke_spec,
    unfinished,
)
from ga3c_tf.reproduce.figures.learning import batch_size
from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.figures.pictures import curves_by
from ga3c_tf.reproduce.figures.training import END, SCORE
from ga3c_tf.reproduce.measures.verdicts import Claim
from ga3c_tf.reproduce.runs.specs import RunSpec
from ga3c_tf.reproduce.runs.tuned import preset_spec

SIZES = (32, 128, 512, 2048)
INTENSITY = 8.0
STEPS = 1_000_000
RATE = 2.5e-4
"""Learning rate of the batch of 128 in `dqn-small`; others have it by the square root of their size."""


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return a run for each size with each system; the number of agents is Stooke and Abbeel's (2018)."""
    systems = ("ga3c", "a2c")
    if budget == "smoke":
        runs = [
            smoke_spec(game, seed, system, algorithm="dqn", replay_batch=size, min_training_batch=None)
            for system in systems
            for size in (16, 32)
        ]
    else:
        runs = [_training(game, seed, system, size) for system in systems for size in SIZES]
    return [spec.called(str(spec.config.replay_batch)) for spec in runs]


def _training(game: str, seed: int, system: str, size: int) -> RunSpec:
    return preset_spec(
        "dqn-small",
        game,
        seed,
        system,
        steps=STEPS,
        num_agents=max(32, size // 32),
        replay_batch=size,
        training_intensity=INTENSITY,
        learning_rate=RATE * math.sqrt(size / 128),
        target_period=1_000 * 128 // size,  # the same number of agent steps
    )


def claims(table: Measurements) -> list[Claim]:
    """Return for each system and larger batch the claim that it learns as much as the smallest."""
    return [
        dataclasses.replace(claim, key=f"{system}-{claim.key}", text=f"{claim.text} ({system})")
        for system, part in table.parts("system")
        for claim in batch_size.claims(part)
    ]


FIGURE = Figure(
    name="replay-batches",
    place=19,
    paper="not in the paper",
    shows="what DQN learns from the same samples with batches of 32 to 2,048 states, asynchronously and not",
    headline="does DQN learn as much with large batches from the same samples?",
    games={"smoke": ("cartpole",), "tuned": ("minatar_breakout",)},
    seeds=seeds_by_budget(tuned=5),
    specs=specs,
    dimensions=lambda spec: {"batch": int(spec.label[0])},
    measures=batch_size.measures,
    main=(SCORE, "points"),
    claims=claims,
    tables=[
        Table(
            ("system", "batch"),
            {
                SCORE: mean_of(SCORE),
                END: mean_of(END),
                "minutes": minutes,
                "not finished": unfinished,
            },
        )
    ],
    plot=curves_by("batch", row="system"),
    words={"as_much": batch_size.AS_MUCH, "steps": STEPS, "intensity": INTENSITY},
)

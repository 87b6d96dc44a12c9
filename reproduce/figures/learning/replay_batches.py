"""Whether DQN learns as much with large batches from the same samples, with GA3C's system and with A2C's.

Every run trains 8 times on each agent step, so it has the same samples in fewer, larger updates.
"""

from __future__ import annotations

import math
from typing import Any

from ga3c_tf.reproduce.figures.figure import MINUTES, UNFINISHED, Table, means_of
from ga3c_tf.reproduce.figures.learning.batch_size import AS_MUCH, BatchSizeFigure
from ga3c_tf.reproduce.figures.metrics import END, SCORE
from ga3c_tf.reproduce.figures.pictures import draw_curves
from ga3c_tf.reproduce.figures.plans import smoke_spec
from ga3c_tf.reproduce.runs.tuned import preset_spec

SIZES = (32, 128, 512, 2048)
SYSTEMS = ("ga3c", "a2c")
INTENSITY = 8.0
STEPS = 1_000_000
RATE = 2.5e-4
"""Learning rate of the batch of 128 in `dqn-small`; others have it by the square root of their size."""


class ReplayBatchesFigure(BatchSizeFigure):
    """Sizes are compared for each system; the number of agents is Stooke and Abbeel's (2018)."""

    name = "replay-batches"
    place = 19
    shows = "what DQN learns from the same samples with batches of 32 to 2,048 states, asynchronously and not"
    headline = "does DQN learn as much with large batches from the same samples?"
    games = {"smoke": ("cartpole",), "tuned": ("minatar_breakout",)}
    counts = {"tuned": 5}
    by_game = False
    tables = (Table(("system", "batch"), {**means_of(SCORE, END), **MINUTES, **UNFINISHED}),)
    words = {"as_much": AS_MUCH, "steps": STEPS, "intensity": INTENSITY}

    def specs(self, budget, game, seed):
        if budget == "smoke":
            usual: dict[str, Any] = {"algorithm": "dqn", "min_training_batch": None}
            runs = [
                smoke_spec(game, seed, system, replay_batch=size, **usual)
                for system in SYSTEMS
                for size in (16, 32)
            ]
        else:
            runs = [_training(game, seed, system, size) for system in SYSTEMS for size in SIZES]
        return [spec.called(str(spec.config.replay_batch)) for spec in runs]

    def dimensions(self, spec):
        return {"batch": int(spec.label[0])}

    def claims(self, table):
        parts = table.parts("system")
        return [claim for system, part in parts for claim in self.of_sizes(part, f"{system}-", system=system)]

    def plot(self, table, stem):
        draw_curves(table, stem, "batch", "system")


def _training(game, seed, system, size):
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


FIGURE = ReplayBatchesFigure()

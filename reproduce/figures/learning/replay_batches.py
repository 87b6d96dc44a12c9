"""Whether DQN learns as much with large batches from the same samples, with GA3C's system and with A2C's.

Every run trains 8 times on each agent step, so it has the same samples in fewer, larger updates.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

from ga3c_tf.reproduce.figures.learning.batch_size import AS_MUCH, BatchSizeFigure
from ga3c_tf.reproduce.figures.metrics import END, SCORE
from ga3c_tf.reproduce.figures.plans import preset_spec
from ga3c_tf.reproduce.figures.tables import MINUTES, means_of
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS

SIZES = (32, 128, 512, 2048)
SYSTEMS = ("ga3c", "a2c")
INTENSITY = 8.0
STEPS = 1_000_000
RATE = 2.5e-4
"""Learning rate of the batch of 128; others have it by the square root of their size."""
RMSPROP = {"optimizer": "rmsprop", "rmsprop_centred": True, "rmsprop_decay": 0.95, "rmsprop_epsilon": 1e-4}
"""The optimizer of MinAtar's DQN without its momentum, which `dqn-small` had when the runs were planned."""
SMOKE: dict[str, Any] = {"algorithm": "dqn", "min_training_batch": None}


class ReplayBatchesFigure(BatchSizeFigure):
    """Sizes are compared for each system; the number of agents is Stooke and Abbeel's (2018)."""

    name = "replay-batches"
    games = {"smoke": ("cartpole",), "tuned": ("minatar_breakout",)}
    counts = {"tuned": 5}
    looks = (LEAST_SEEDS, 5)
    smoke = tuple(
        {**SMOKE, "system": system, "replay_batch": size, "called": (str(size),)}
        for system, size in product(SYSTEMS, (16, 32))
    )
    by_game = True
    rows = ("system", "batch")
    columns = {**means_of(SCORE, END), **MINUTES}
    panels = "system"
    words: Any = {"as_much": AS_MUCH, "steps": STEPS, "intensity": INTENSITY}

    def planned(self, budget, game, seed):
        return [
            preset_spec(
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
                **RMSPROP,
            ).called(str(size))
            for system, size in product(SYSTEMS, SIZES)
        ]

    def dimensions(self, spec):
        return {"batch": int(spec.label[0])}

    def claims(self, table):
        parts = table.parts("system")
        return [claim for system, part in parts for claim in self.of_sizes(part, f"{system}-", system=system)]

"""Whether large training batches learn as much from the same agent steps, with a learning rate chosen for
each size.

A2C has no policy lag, so the runs differ only in the batch size and its learning rate. A batch is one round:
5 steps of every agent.
"""

from __future__ import annotations

from typing import Any

from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.figures.metrics import END, SCORE, final_score, score_of_run
from ga3c_tf.reproduce.figures.tables import MINUTES, means_of
from ga3c_tf.reproduce.measures.estimates import paired_ratio
from ga3c_tf.reproduce.measures.verdicts import SCORED_NOTHING, Claim, Guard, above
from ga3c_tf.reproduce.runs.specs import run_spec

T_MAX = 5
STEPS = 400_000
RATES = {4: 4e-3, 16: 4e-3, 64: 1.6e-2, 256: 1.6e-2, 512: 1.6e-2}
"""Learning rate by number of agents: the best of three, docs/data/batch-size-rates.csv. Two larger ones were
tried later; for 512 agents one of them scored 2.49, the chosen one 2.23 and 2.94.

Chosen by `ga3c-tf train MinAtar/Breakout-v1 --system a2c --agents N --learning-rate R --steps 400000 --seed
101`.
"""
AS_MUCH = 0.9
"""A larger batch learns as much if its score is more than this share of the score of the smallest batch."""


class BatchSizeFigure(Figure):
    """Scores are compared as ratios, so a run that scored nothing decides nothing."""

    name = "batch-size"
    games = {"smoke": ("cartpole",), "quick": ("minatar_breakout",)}
    counts = {"quick": 5}
    smoke = tuple({"system": "a2c", "num_agents": n, "called": (str(n * T_MAX),)} for n in (2, 4))
    measured = (score_of_run, final_score)
    main = (SCORE, "points")
    by_game = True
    rows = ("batch", "learning_rate")
    columns = {**means_of(SCORE, END), **MINUTES}
    lines = "batch"
    words: Any = {"as_much": AS_MUCH, "t_max": T_MAX, "steps": STEPS}

    def planned(self, budget, game, seed):
        usual: dict[str, Any] = {"steps": STEPS, "log_seconds": 10.0}
        return [
            run_spec(game, seed, "a2c", num_agents=agents, learning_rate=rate, **usual).called(
                str(agents * T_MAX)
            )
            for agents, rate in RATES.items()
        ]

    def dimensions(self, spec):
        return {"batch": int(spec.label[0]), "learning_rate": spec.config.learning_rate}

    def claims(self, table):
        return self.of_sizes(table)

    def of_sizes(self, table: Measurements, prefix: str = "", **words: Any) -> list[Claim]:
        """Return for each larger batch the claim that it learns as much as the smallest."""
        scores = {size: part.series(SCORE) for size, part in table.parts("batch")}
        positive = {size: values[values > 0] for size, values in scores.items()}
        smallest, *larger = scores
        claims = []
        for size in larger:
            nothing = any(len(positive[of]) < len(scores[of]) for of in (smallest, size))
            guards = [table.missing, Guard(SCORED_NOTHING, nothing)]
            test = above(paired_ratio(positive[size], positive[smallest], AS_MUCH))
            key = f"{prefix}batch-{size}"
            claims.append(self.claim(key, test, guards, size=size, smallest=smallest, **words))
        return claims

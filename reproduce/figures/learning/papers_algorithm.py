"""The paper's algorithm on the nine games of Table 3 for as many agent steps as the tuned runs, with two
epsilons.

The scores are observations: 4 million agent steps are about a twentieth of the paper's. Only one question is
judged, by a rule that was written before the runs: which of RMSProp's epsilons scores more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.learning import table_3
from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.figures.metrics import EVALUATED, evaluations
from ga3c_tf.reproduce.figures.normalized import RANDOM_POLICY_CELL, normalized
from ga3c_tf.reproduce.figures.plans import EVALUATION_EPISODES, learning_spec
from ga3c_tf.reproduce.figures.tables import Cell
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS, Effect, signed_rank
from ga3c_tf.reproduce.measures.verdicts import FEW_SEEDS, RUNS_MISSING, Guard, above
from ga3c_tf.reproduce.runs.specs import NINE_GAMES, network_of

AUTHORS = "epsilon 0.1"
SMALLER = "epsilon 1e-4"
EPSILONS = {AUTHORS: 0.1, SMALLER: 1e-4}
"""RMSProp's epsilon by name of the row: that of the authors' code, and that of run *e* of docs/pong.md."""
LEARNING_RATE = table_3.LEARNING_RATES["normal"]
"""The same for both epsilons, so that only one setting differs; it was chosen for neither."""


def difference(part: Measurements) -> float | None:
    """Return the mean normalized score in % of the smaller epsilon minus that of the authors', of a game with
    both.
    """
    of_both = [part.select(label=name).numbers(EVALUATED) for name in EPSILONS]
    if not all(of_both):
        return None
    authors, smaller = (normalized(part, float(np.mean(values))) for values in of_both)
    return None if authors is None or smaller is None else 100 * (smaller - authors)


def score_with(name: str) -> Cell:
    """Return a cell with the score of the runs with an epsilon."""
    return lambda part: table_3.with_interval(part.select(label=name))


class PapersAlgorithmFigure(Figure):
    """One question, by Wilcoxon's signed-rank test over the games, of the normalized scores."""

    name = "papers-algorithm"
    games = {"smoke": ("pong",), "tuned": NINE_GAMES}
    only = NINE_GAMES
    counts = {"tuned": LEAST_SEEDS}
    smoke = ({"called": (AUTHORS,)}, {"rmsprop_epsilon": EPSILONS[SMALLER], "called": (SMALLER,)})
    measured = (evaluations,)
    looks = (LEAST_SEEDS, 2 * LEAST_SEEDS)
    main = (EVALUATED, "points")
    rows = ("game",)
    columns = {
        **RANDOM_POLICY_CELL,
        **{name: score_with(name) for name in EPSILONS},
        "million steps": table_3.millions,
        "GA3C, 1 day on a GPU (paper)": table_3.printed(table_3.PAPERS),
    }
    words: Any = {"papers_steps": table_3.PAPERS_STEPS, "learning_rate": LEARNING_RATE}

    def planned(self, budget, game, seed):
        """Return the runs of `scores` at `quick`, but with steps, saving and evaluation of the tuned runs."""
        return [
            learning_spec(
                game,
                seed,
                evaluation_episodes=EVALUATION_EPISODES,
                random_play=(name, seed) == (AUTHORS, 1),  # the same episodes for every run
                checkpoint="latest",
                **network_of(game),
                optimizer="rmsprop",
                learning_rate=LEARNING_RATE,
                rmsprop_epsilon=epsilon,
                steps=table_3.TUNED_STEPS,
                log_seconds=30.0,
                checkpoint_minutes=15.0,
            )
            .called(name)
            .in_turn(turn)
            for turn, (name, epsilon) in enumerate(EPSILONS.items())
        ]

    def claims(self, table):
        differences = {game: difference(part) for game, part in table.parts("game")}
        measured = {game: value for game, value in differences.items() if value is not None}
        estimate = signed_rank(list(measured.values()), of="game") if measured else Effect()
        fewest = min(len(part.runs) for _, part in table.parts("game", "label"))
        missing = len(measured) < len(differences) or table.missing.applies
        guards = [Guard(RUNS_MISSING, missing), Guard(FEW_SEEDS, fewest < LEAST_SEEDS)]
        return [self.claim("smaller-epsilon", above(estimate), guards)]

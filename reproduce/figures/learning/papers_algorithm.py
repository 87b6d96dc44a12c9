"""The paper's algorithm on the nine games of Table 3 for as many agent steps as the tuned runs, with two
epsilons.

The scores are observations: 4 million agent steps are about a twentieth of the paper's. Only one question is
judged, by a rule that was written before the runs: which of RMSProp's epsilons scores more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures.figure import UNFINISHED, Cell, Figure, Table
from ga3c_tf.reproduce.figures.learning import scores
from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.figures.pictures import draw_curves
from ga3c_tf.reproduce.figures.plans import learning_spec, smoke_spec
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS, Effect, signed_rank
from ga3c_tf.reproduce.measures.text import mean_ci, number
from ga3c_tf.reproduce.measures.verdicts import FEW_SEEDS, RUNS_MISSING, Above, Guard
from ga3c_tf.reproduce.runs.specs import NINE_GAMES, SYSTEMS, network_of
from ga3c_tf.reproduce.runs.tuned import EVALUATION_EPISODES

AUTHORS = "epsilon 0.1"
SMALLER = "epsilon 1e-4"
EPSILONS = {AUTHORS: 0.1, SMALLER: 1e-4}
"""RMSProp's epsilon by name of the row: that of the authors' code, and that of run *e* of docs/pong.md."""
LEARNING_RATE = scores.LEARNING_RATES["normal"]
"""The same for both epsilons, so that only one setting differs; it was chosen for neither."""


def difference(part: Measurements) -> float | None:
    """Return the mean normalized score of the smaller epsilon minus that of the authors', of a game with
    both.
    """
    random, paper = random_score(part), scores.papers_score(part, part.game)
    authors, smaller = (_scores(part.select(label=name)) for name in EPSILONS)
    if not authors or not smaller or random is None or paper is None:
        return None
    return 100 * float(np.mean(smaller) - np.mean(authors)) / (paper - random)


def _scores(part: Measurements) -> list[float]:
    """Return the scores of runs; one that diverged scores as the random policy."""
    random = random_score(part)
    diverged = [] if random is None else [random] * sum(run.diverged for run in part.runs)
    return [*part.numbers(scores.SCORE), *diverged]


def random_score(part: Measurements) -> float | None:
    """Return the random policy's score on a game: that of these runs or the tuned ones, else the paper's."""
    of_game = [record for record in part.results.records if record.game == part.game]
    measured = [record.value for record in of_game if record.metric == scores.RANDOM]
    values = [*measured, *_beside(part, scores.RANDOM), scores.papers_score(part, part.game, "random")]
    return next((value for value in values if value is not None), None)


def _beside(part: Measurements, metric: str) -> list[float]:
    """Return a metric's values of the tuned agents of `scores`, without those of the user's own methods."""
    return [
        record.value
        for record in part.results.beside
        if (record.game, record.metric) == (part.game, metric)
        and record.method in (SYSTEMS["ga3c"], "random")
        and record.value is not None
    ]


def score_with(name: str) -> Cell:
    """Return a cell with the score of the runs with an epsilon."""
    return lambda part: mean_ci(_scores(part.select(label=name)))


class PapersAlgorithmFigure(Figure):
    """One question, by Wilcoxon's signed-rank test over the games, of the normalized scores."""

    name = "papers-algorithm"
    place = 17
    shows = (
        "score of the paper's algorithm on nine games after 4 million agent steps, with two epsilons of "
        "RMSProp"
    )
    headline = (
        "what does the paper's algorithm score after 4 million steps, and which epsilon of RMSProp scores "
        "more?"
    )
    games = {"smoke": ("pong",), "tuned": NINE_GAMES}
    counts = {"tuned": LEAST_SEEDS}
    looks = (LEAST_SEEDS, 2 * LEAST_SEEDS)
    main = (scores.SCORE, "points")
    beside = scores.FIGURE.name
    measures: Any = staticmethod(scores.measures)
    tables = (
        Table(
            ("game",),
            {
                "random policy": lambda part: number(random_score(part)),
                **{name: score_with(name) for name in EPSILONS},
                "tuned": lambda part: mean_ci(_beside(part, scores.SCORE)),
                "million steps": scores.millions,
                "GA3C, 1 day on a GPU (paper)": scores.printed(scores.PAPERS),
                **UNFINISHED,
            },
        ),
    )
    words = {"papers_steps": scores.PAPERS_STEPS, "learning_rate": LEARNING_RATE}

    def specs(self, budget, game, seed):
        if game not in NINE_GAMES:
            raise UserError(
                f"the figure papers-algorithm is about the games of Table 3; it does not go with {game}"
            )
        if budget == "smoke":
            smaller = smoke_spec(game, seed, rmsprop_epsilon=EPSILONS[SMALLER])
            return [smoke_spec(game, seed).called(AUTHORS), smaller.called(SMALLER)]
        return [_training(game, seed, name).in_turn(turn) for turn, name in enumerate(EPSILONS)]

    def claims(self, table):
        differences = {game: difference(part) for game, part in table.parts("game")}
        measured = {game: value for game, value in differences.items() if value is not None}
        higher = sum(value > 0 for value in measured.values())
        points = ", ".join(f"{game} {value:+.3g}" for game, value in measured.items())
        games = f"{higher} of {len(measured)} games"
        note = f"it scores more in {games}, in points of the normalized score: {points}"
        estimate = signed_rank(list(measured.values()), of="game", note=note) if measured else Effect()
        fewest = min(len(part.runs) for _, part in table.parts("game", "label"))
        missing = not measured or len(measured) < len(differences) or table.missing.applies
        guards = [Guard(RUNS_MISSING, missing), Guard(FEW_SEEDS, fewest < LEAST_SEEDS)]
        return [self.claim("smaller-epsilon", Above(estimate), guards)]

    def plot(self, table, stem):
        draw_curves(table, stem, "label", random=random_score)


def _training(game, seed, name):
    """Return the run of `scores` at `quick`, but with the steps, saving and evaluation of the tuned runs."""
    spec = learning_spec(
        game,
        seed,
        evaluation_episodes=EVALUATION_EPISODES,
        random_play=(name, seed) == (AUTHORS, 1),  # the same episodes for every run
        checkpoint="latest",
        **network_of(game),
        optimizer="rmsprop",
        learning_rate=LEARNING_RATE,
        rmsprop_epsilon=EPSILONS[name],
        steps=scores.TUNED_STEPS,
        log_seconds=30.0,
        checkpoint_minutes=15.0,
    )
    return spec.called(name)


FIGURE = PapersAlgorithmFigure()

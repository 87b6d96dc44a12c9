"""The paper's algorithm on the nine games of Table 3 for as many agent steps as the tuned runs, with two
epsilons.

The scores are observations: 4 million agent steps are about a twentieth of the paper's. Only one question is
judged, by a rule that was written before the runs: which of RMSProp's epsilons scores more.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures import pictures
from ga3c_tf.reproduce.figures.figure import Cell, Figure, Table, seeds_by_budget, smoke_spec, unfinished
from ga3c_tf.reproduce.figures.learning import scores
from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS, Effect, signed_rank
from ga3c_tf.reproduce.measures.text import mean_ci, number
from ga3c_tf.reproduce.measures.verdicts import FEW_SEEDS, RUNS_MISSING, Above, Claim, Guard
from ga3c_tf.reproduce.runs.specs import NINE_GAMES, SYSTEMS, RunSpec, network_of, run_spec
from ga3c_tf.reproduce.runs.tuned import EVALUATION_EPISODES

AUTHORS = "epsilon 0.1"
SMALLER = "epsilon 1e-4"
EPSILONS = {AUTHORS: 0.1, SMALLER: 1e-4}
"""RMSProp's epsilon by name of the row: that of the authors' code, and that of run *e* of docs/pong.md."""
LEARNING_RATE = scores.LEARNING_RATES["normal"]
"""The same for both epsilons, so that only one setting differs; it was chosen for neither."""


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return a run with each epsilon; that with the authors' epsilon is made first.

    Raises:
        UserError: the game is not one of Table 3.
    """
    if game not in NINE_GAMES:
        raise UserError(
            f"the figure papers-algorithm is about the games of Table 3; it does not go with {game}"
        )
    if budget == "smoke":
        return [
            smoke_spec(game, seed).called(AUTHORS),
            smoke_spec(game, seed, rmsprop_epsilon=EPSILONS[SMALLER]).called(SMALLER),
        ]
    return [_training(game, seed, name, turn) for turn, name in enumerate(EPSILONS)]


def _training(game: str, seed: int, name: str, turn: int) -> RunSpec:
    """Return the run of `scores` at `quick`, but with the steps, saving and evaluation of the tuned runs."""
    spec = run_spec(
        game,
        seed,
        evaluation_episodes=EVALUATION_EPISODES,
        random_play=(name, seed) == (AUTHORS, 1),  # the same episodes for every run
        checkpoint="latest",
        num_agents=32,
        num_predictors=2,
        num_trainers=2,
        min_training_batch=20,
        **network_of(game),
        optimizer="rmsprop",
        learning_rate=LEARNING_RATE,
        rmsprop_epsilon=EPSILONS[name],
        steps=scores.TUNED_STEPS,
        log_seconds=30.0,
        checkpoint_minutes=15.0,
    )
    return spec.in_turn(turn).called(name)


def claims(table: Measurements) -> list[Claim]:
    """Return the claim that the smaller epsilon scores more, by a signed-rank test over the games.

    The difference of a game is that of the mean normalized scores over the seeds, where 0 is the random
    policy and 100 the paper's GA3C. A run that diverged scores as the random policy.
    """
    differences = {game: difference(part) for game, part in table.parts("game")}
    measured = {game: value for game, value in differences.items() if value is not None}
    higher = sum(value > 0 for value in measured.values())
    listed = ", ".join(f"{game} {value:+.3g}" for game, value in measured.items())
    note = f"it scores more in {higher} of {len(measured)} games, in points of the normalized score: {listed}"
    estimate = signed_rank(list(measured.values()), of="game", note=note) if measured else Effect()
    fewest = min(len(part.runs) for _, part in table.parts("game", "label"))
    missing = not measured or len(measured) < len(differences) or table.missing.applies
    return [
        Claim(
            "smaller-epsilon",
            f"RMSProp's {SMALLER} scores more than the authors' {AUTHORS} over the nine games after 4 "
            "million agent steps",
            Above(estimate),
            [Guard(RUNS_MISSING, missing), Guard(FEW_SEEDS, fewest < LEAST_SEEDS)],
            "differences of the mean normalized scores of the final weights by game, where 0 is the random "
            "policy and 100 the paper's GA3C; Wilcoxon's signed-rank test over the games, two-sided",
        )
    ]


def difference(part: Measurements) -> float | None:
    """Return the normalized score of the smaller epsilon minus that of the authors', of a game with both."""
    random, paper = random_score(part), scores.papers_score(part, part.game)
    authors, smaller = (_scores(part.select(label=name), random) for name in EPSILONS)
    if not authors or not smaller or random is None or paper is None:
        return None
    return 100 * float(np.mean(smaller) - np.mean(authors)) / (paper - random)


def _scores(part: Measurements, random: float | None) -> list[float]:
    """Return the scores of runs; one that diverged scores as the random policy."""
    return part.results.scores(scores.SCORE, part.runs, random)


def random_score(part: Measurements) -> float | None:
    """Return the random policy's score on a game: that of these runs or the tuned ones, else the paper's."""
    measured = [
        *part.results.values(scores.RANDOM, [run for run in part.results.runs if run.spec.game == part.game]),
        *_beside(part, scores.RANDOM),
    ]
    return measured[0] if measured else scores.papers_score(part, part.game, "random")


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
    return lambda part: mean_ci(_scores(part.select(label=name), random_score(part)))


def plot(table: Measurements, stem: Path) -> None:
    """Draw the score against time and against agent steps, a row for each game."""
    random = {game.replace("_", " "): random_score(part) for game, part in table.parts("game")}
    pictures.draw(pictures.curves(table, "label"), stem, random=random)


FIGURE = Figure(
    name="papers-algorithm",
    place=17,
    paper="not in the paper",
    shows="score of the paper's algorithm on nine games after 4 million agent steps, "
    "with two epsilons of RMSProp",
    headline="what does the paper's algorithm score after 4 million steps, "
    "and which epsilon of RMSProp scores more?",
    games={"smoke": ("pong",), "tuned": NINE_GAMES},
    seeds=seeds_by_budget(tuned=LEAST_SEEDS),
    specs=specs,
    measures=scores.measures,
    main=(scores.SCORE, "points"),
    claims=claims,
    tables=[
        Table(
            ("game",),
            {
                "random policy": lambda part: number(random_score(part)),
                **{name: score_with(name) for name in EPSILONS},
                "tuned": lambda part: mean_ci(_beside(part, scores.SCORE)),
                "million steps": scores.millions,
                "GA3C, 1 day on a GPU (paper)": scores.printed(scores.PAPERS),
                "not finished": unfinished,
            },
        )
    ],
    plot=plot,
    beside=scores.FIGURE.name,
    looks=(LEAST_SEEDS, 2 * LEAST_SEEDS),
    words={"papers_steps": scores.PAPERS_STEPS, "learning_rate": LEARNING_RATE},
)

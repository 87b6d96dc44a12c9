"""The paper's algorithm on the nine games of Table 3 for as many agent steps as the tuned runs, with two
epsilons.

The scores are observations: 4 million agent steps are about a twentieth of the paper's. Only one question is
judged, by a rule that was written before the runs: which of RMSProp's epsilons scores more.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures.figure import Figure, grouped, seeds_by_budget, smoke_spec
from ga3c_tf.reproduce.figures.learning import environments, scores
from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.measures.effects import signed_rank_test
from ga3c_tf.reproduce.measures.text import lines_of, mean_ci, number
from ga3c_tf.reproduce.measures.verdicts import (
    CHANCE,
    FEW_SEEDS,
    LEAST_SEEDS,
    NO_DIFFERENCE,
    RUNS_MISSING,
    Claim,
    Finding,
    holds_if,
)
from ga3c_tf.reproduce.runs.run import RecordedRun
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
    return (
        run_spec(
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
        .in_turn(turn)
        .called(name)
    )


def groups(results: Results) -> dict[str, dict[str, list[RecordedRun]]]:
    """Group the runs by game, then by epsilon in words."""
    games = grouped(results.runs, lambda run: run.spec.game)
    return {game: grouped(runs, lambda run: run.spec.label[0]) for game, runs in games.items()}


def finding(results: Results) -> Finding:
    """Judge whether the smaller epsilon scores more than the authors', by a signed-rank test over the games.

    The difference of a game is that of the mean normalized scores over the seeds, where 0 is the random
    policy and 100 the paper's GA3C. A run that diverged scores as the random policy. Nothing is judged before
    all runs have ended.
    """
    differences = _differences(results)
    if not differences:
        return Finding(RUNS_MISSING, "nothing measured")
    rank_sum, chance = signed_rank_test(list(differences.values()))
    median = np.median(list(differences.values()))
    higher = sum(difference > 0 for difference in differences.values())
    listed = ", ".join(f"{game} ({difference:+.3g})" for game, difference in differences.items())
    because = (
        f"{SMALLER} scores more in {higher} of {len(differences)} games; the median difference is "
        f"{median:+.3g} points of the normalized score, p = {chance:.2g}: {listed}"
    )
    if not results.ended or len(differences) < len(groups(results)):
        return Finding(RUNS_MISSING, because)
    fewest = min(len(runs) for of_game in groups(results).values() for runs in of_game.values())
    if fewest < LEAST_SEEDS:
        return Finding(FEW_SEEDS, because)
    return Finding(holds_if(rank_sum > 0) if chance < CHANCE else NO_DIFFERENCE, because)


def claims(results: Results) -> list[Claim]:
    """Return the claim that the smaller epsilon scores more."""
    rule = (
        "differences of the mean normalized scores of the final weights by game, where 0 is the random "
        "policy and 100 the paper's GA3C; Wilcoxon's signed-rank test over the games, two-sided"
    )
    text = (
        f"RMSProp's {SMALLER} scores more than the authors' {AUTHORS} over the nine games after 4 million "
        "agent steps"
    )
    return [Claim(text, finding(results), rule)]


def _differences(results: Results) -> dict[str, float]:
    """Return the normalized score of the smaller epsilon minus that of the authors', by game with both."""
    differences = {}
    for game, by_epsilon in groups(results).items():
        random = _random_score(results, game)
        paper = scores.papers_scores(results, game)[scores.PAPERS]
        authors, smaller = (results.scores(scores.SCORE, by_epsilon[name], random) for name in EPSILONS)
        if authors and smaller and random is not None and paper is not None:
            difference = float(np.mean(smaller) - np.mean(authors))
            differences[game] = 100 * difference / (paper - random)
    return differences


def details(results: Results) -> list[str]:
    """Return the table of the scores by game, beside those of the tuned agents and of the paper's GA3C."""
    rows = []
    for game, by_epsilon in groups(results).items():
        random = _random_score(results, game)
        row = [game, number(random)]
        for name in EPSILONS:
            runs = by_epsilon[name]
            row.append(scores.with_interval(results.scores(scores.SCORE, runs, random), runs))
        tuned = mean_ci(_beside(results, game, scores.SCORE))
        paper = number(scores.papers_scores(results, game)[scores.PAPERS])
        steps = scores.millions([run for runs in by_epsilon.values() for run in runs])
        rows.append([*row, tuned, steps, paper, environments.unfinished(results, by_epsilon)])
    return lines_of(
        "papers-algorithm.md",
        epsilons=list(EPSILONS),
        rows=rows,
        papers_steps=scores.PAPERS_STEPS,
        learning_rate=number(LEARNING_RATE),
        chance=f"{CHANCE:.0%}".replace("%", " %"),
    )


def _random_score(results: Results, game: str) -> float | None:
    """Return the random policy's score on a game: that of these runs or the tuned ones, else the paper's."""
    measured = [
        *results.values(scores.RANDOM, scores.runs_of(results, game)),
        *_beside(results, game, scores.RANDOM),
    ]
    return measured[0] if measured else scores.random_score(results, game)


def _beside(results: Results, game: str, metric: str) -> list[float]:
    """Return a metric's values of the tuned agents of `scores`, without those of the user's own methods."""
    values = []
    for record in results.beside:
        of_metric = (record.game, record.metric) == (game, metric) and record.method in (
            SYSTEMS["ga3c"],
            "random",
        )
        if of_metric and record.value is not None:
            values.append(record.value)
    return values


def plot(results: Results, stem: Path) -> None:
    """Draw the score against time and against agent steps, a row for each game."""
    from ga3c_tf.reproduce.drawing import score_plots

    curves = {}
    random = {}
    for game, by_epsilon in groups(results).items():
        finished = {name: [run.curve for run in runs if run.finished] for name, runs in by_epsilon.items()}
        if any(finished.values()):
            title = game.replace("_", " ")
            curves[title] = finished
            random[title] = _random_score(results, game)
    if curves:
        score_plots.score_curves(curves, stem, random)


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
    details=details,
    plot=plot,
    beside=scores.FIGURE.name,
)

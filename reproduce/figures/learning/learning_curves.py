"""Figure 6: score against wall-clock time for several games, of GA3C and, on the same machine, of our CPU
A3C.

The paper has no scores of its own CPU A3C, which its reviewers asked for. As in the paper, GA3C has two
learning rates, with three runs each. At the quick budget both systems have one learning rate.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ga3c_tf.reproduce.figures.figure import (
    Figure,
    Measure,
    fair_to_a3c,
    grouped,
    on_one_machine,
    once_ended,
    seeds_by_budget,
    smoke_spec,
)
from ga3c_tf.reproduce.figures.learning import scores
from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.figures.throughput import pps
from ga3c_tf.reproduce.measures.effects import paired_effect
from ga3c_tf.reproduce.measures.judging import judged
from ga3c_tf.reproduce.measures.random_policy import RandomPolicy, has_left_random, random_policy_of
from ga3c_tf.reproduce.measures.text import lines_of, mean_ci, number
from ga3c_tf.reproduce.measures.verdicts import TOO_SHORT, Claim, Finding
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import NINE_GAMES, SYSTEMS, RunSpec, network_of, run_spec

FINAL = "final rolling score"
BEST = "best rolling score"
QUICK_MINUTES = 15.0
QUICK_OPTIMIZER: dict[str, Any] = {"learning_rate": 3e-4, "rmsprop_epsilon": 1e-4}
"""Settings of run e in docs/pong.md: with the authors' epsilon of 0.1, Pong is not learned within minutes."""


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return two runs of GA3C, one for each learning rate, and one of A3C at the first learning rate.

    The first run is the one that `scores` uses. At `quick` there is one run of each system.
    """
    if budget == "smoke":
        chosen = [smoke_spec(game, seed), smoke_spec(game, seed, "a3c")]
    elif budget == "quick":
        chosen = [_quick(game, seed, system) for system in ("ga3c", "a3c")]
    else:
        normal, lower = (scores.training(budget, game, seed, rate) for rate in scores.LEARNING_RATES.values())
        same = {name: value for name, value in normal.given.items() if name != "num_agents"}
        chosen = [normal, lower, run_spec(game, seed, "a3c", **same, num_agents=pps.AGENTS[budget]["a3c"])]
    return [
        spec.called(f"{SYSTEMS[spec.system]}, learning rate {spec.config.learning_rate:g}") for spec in chosen
    ]


def _quick(game: str, seed: int, system: str) -> RunSpec:
    return run_spec(
        game,
        seed,
        system,
        evaluation_episodes=30,
        random_play=(system, seed) == ("ga3c", 1),  # the same episodes for every run
        num_agents=pps.AGENTS["quick"][system],
        num_predictors=2,
        num_trainers=2,
        min_training_batch=20,
        **network_of(game),
        minutes=QUICK_MINUTES,
        checkpoint_minutes=5.0,
        **QUICK_OPTIMIZER,
    )


def measures(run: RecordedRun) -> list[Measure]:
    """Return the rolling score at the end and at its best."""
    window = run.spec.config.rolling_episodes
    rolling = run.curve["rolling_score"]
    whole = rolling[run.curve["episodes"] >= window]
    protocol = f"mean score of the last {window} episodes of training"
    final = float(rolling[-1]) if len(rolling) else float("nan")
    best = float(whole.max()) if len(whole) else float("nan")
    return [
        Measure(FINAL, final, "points", f"{protocol}, of all if fewer", "no episode ended"),
        Measure(BEST, best, "points", protocol, f"fewer than {window} episodes ended"),
    ]


def groups(results: Results) -> dict[str, dict[str, list[RecordedRun]]]:
    """Group the runs by game, then by system and learning rate in words."""
    games = grouped(results.runs, lambda run: run.spec.game)
    return {game: grouped(runs, lambda run: run.spec.label[0]) for game, runs in games.items()}


def random_of(rates: dict[str, list[RecordedRun]]) -> RandomPolicy | None:
    """Return the scores of the random policy if one of the runs of a game measured them, or None.

    Args:
        rates: runs of the game by system and learning rate.
    """
    played = (
        run.result["random"]["scores"] for runs in rates.values() for run in runs if "random" in run.result
    )
    scores = next(played, None)
    return None if scores is None else random_policy_of(scores)


def random_score(rates: dict[str, list[RecordedRun]]) -> float | None:
    """Return the mean score of the random policy, or None."""
    random = random_of(rates)
    return None if random is None else random.mean


def fewest_episodes(runs: list[RecordedRun]) -> int:
    """Return the fewest episodes that the final rolling score of one of these runs is the mean of."""
    ended = [int(run.curve["episodes"][-1]) for run in runs if len(run.curve["episodes"])]
    return max(1, min([*ended, *(run.spec.config.rolling_episodes for run in runs)]))


def findings(results: Results) -> dict[str, Finding]:
    """Compare GA3C with A3C for each game, each system at its first learning rate.

    Runs of the same seed are compared as a pair. If those of any seed are on different machines, nothing is
    decided.
    """
    ends = {
        game: [_ends(results, rates, system) for system in ("ga3c", "a3c")]
        for game, rates in groups(results).items()
    }
    by_game = judged({game: paired_effect(ga3c, a3c) for game, (ga3c, a3c) in ends.items()})
    for game, rates in groups(results).items():
        all_runs = [run for runs in rates.values() for run in runs]
        episodes = fewest_episodes(all_runs)
        random = random_of(rates)
        if not any(has_left_random([*scores.values()], episodes, random) for scores in ends[game]):
            by_game[game] = Finding(TOO_SHORT, by_game[game].because)
        by_game[game] = fair_to_a3c(once_ended(on_one_machine(by_game[game], all_runs), all_runs), all_runs)
    return by_game


def claims(results: Results) -> list[Claim]:
    """Return for each game the claim that GA3C scores more than A3C."""
    return [
        Claim(
            f"{game.replace('_', ' ')}: GA3C scores more than A3C after the same time",
            finding,
            "final rolling score at the first learning rate listed, "
            "as differences of runs of one seed on one machine",
            is_question=True,
            game=game,
        )
        for game, finding in findings(results).items()
    ]


def _ends(results: Results, rates: dict[str, list[RecordedRun]], system: str) -> dict[int, float]:
    """Return the final scores of a system at its first learning rate, by seed.

    A run that diverged scores as the random policy.
    """
    runs = next((runs for runs in rates.values() if runs[0].spec.system == system), [])
    scores = {run.spec.seed: results.score(run, FINAL, random_score(rates)) for run in runs if run.ended}
    return {seed: score for seed, score in scores.items() if score is not None}


def details(results: Results) -> list[str]:
    """Return the table of final and best rolling scores by game, system and learning rate."""
    rows = [
        [
            game.replace("_", " "),
            rate,
            number(random_score(rates)),
            mean_ci(results.values(FINAL, runs)),
            mean_ci(results.values(BEST, runs)),
            results.unfinished(runs),
        ]
        for game, rates in groups(results).items()
        for rate, runs in rates.items()
    ]
    return lines_of("learning-curves.md", rows=rows, quick=results.budget == "quick")


def plot(results: Results, stem: Path) -> None:
    """Draw the score against time and against agent steps, a row for each game."""
    from ga3c_tf.reproduce.drawing import score_plots

    finished = {}
    random = {}
    least = {}
    for game, rates in groups(results).items():
        title = game.replace("_", " ")
        finished[title] = {rate: [run.curve for run in runs if run.finished] for rate, runs in rates.items()}
        random[title] = random_score(rates)
        least[title] = _least_shown(results, game, random[title])
    score_plots.score_curves(finished, stem, random, least)


def _least_shown(results: Results, game: str, random: float | None) -> float | None:
    """Return the score the axis shows at least: a quarter of the way from random policy to the paper's."""
    paper = scores.papers_scores(results, game)[scores.PAPERS]
    return None if random is None or paper is None else random + (paper - random) / 4


FIGURE = Figure(
    name="learning-curves",
    place=8,
    paper="Figure 6",
    shows="score against time and agent steps for several games, for GA3C and A3C",
    headline="does GA3C score more than A3C after the same time? (asked by reviewers)",
    games={"smoke": ("cartpole",), "quick": ("boxing", "pong"), "paper": NINE_GAMES},
    seeds=seeds_by_budget(quick=3),
    specs=specs,
    measures=measures,
    main=(FINAL, "points"),
    claims=claims,
    details=details,
    plot=plot,
)

"""Time to a score of GA3C and A3C on small environments. The paper's main claim is about it on Atari."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures.figure import (
    Figure,
    Measure,
    fair_to_a3c,
    grouped,
    seeds_by_budget,
    smoke_spec,
)
from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.figures.throughput import pps
from ga3c_tf.reproduce.measures.curves import first_reaching
from ga3c_tf.reproduce.measures.effects import paired_ratio
from ga3c_tf.reproduce.measures.judging import finding_of, holm, open_level
from ga3c_tf.reproduce.measures.random_policy import RANDOM_SCORES
from ga3c_tf.reproduce.measures.text import lines_of, mean_ci, number
from ga3c_tf.reproduce.measures.verdicts import (
    FAILS,
    FEW_SEEDS,
    HOLDS,
    LEAST_SEEDS,
    RUNS_MISSING,
    SEVERAL_MACHINES,
    SPEED_CHANGED,
    TOO_SHORT,
    Claim,
    Finding,
)
from ga3c_tf.reproduce.measures.wording import described_ratio
from ga3c_tf.reproduce.runs.run import RecordedRun, make_a_pair, seeds_have_one_machine
from ga3c_tf.reproduce.runs.specs import SYSTEMS, RunSpec, is_atari, run_spec
from ga3c_tf.runs.curve import Columns


class Goal(NamedTuple):
    """The score to reach in a game, which ends a run, and the time for it."""

    score: float  # rolling score, in points
    minutes: float  # duration of a run that does not reach the score


GOALS = {
    "cartpole": Goal(150.0, 1.0),
    "minatar_breakout": Goal(4.0, 3.0),
    "minatar_space_invaders": Goal(10.0, 3.0),
}
COMPARED = ("ga3c", "a3c")
TIME = "time to the score"
STEPS = "agent steps to the score"
SPEED = "speed of learning"
NOT_REACHED = "not reached"
BOUNDS = {"a3c": ("at least ", HOLDS), "ga3c": ("at most ", FAILS)}
"""Runs of a system that do not reach the score bound the ratio, and allow only this verdict."""


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return a run of GA3C and one of A3C. Each ends when it reaches the score, or else after the same time.

    Raises:
        UserError: the game has no score to reach.
    """
    if game not in GOALS:
        raise UserError(
            f"the figure wall-clock has no score to reach for {game}; it has one for {', '.join(GOALS)}"
        )
    if budget == "smoke":
        return [smoke_spec(game, seed, system) for system in COMPARED]
    return [
        run_spec(
            game,
            seed,
            system,
            num_agents=pps.AGENTS["quick"][system],
            num_predictors=2,
            num_trainers=2,
            min_training_batch=20,
            minutes=GOALS[game].minutes,
            target_score=GOALS[game].score,
            log_seconds=2.0,
        )
        for system in COMPARED
    ]


def measures(run: RecordedRun) -> list[Measure]:
    """Return the time and agent steps to the score, and 60 divided by the time, which is 0 if it is not
    reached.

    The time of each session counts from the end of its first episode.
    """
    curve = run.curve
    window = run.spec.config.rolling_episodes
    goal = GOALS[run.spec.game].score
    protocol = f"until the mean of {window} episodes of training is {goal:g}"
    reached = first_reaching(curve, goal, "time_s", window)
    seconds = math.nan if math.isnan(reached) else reached - _starting_s(run, reached)
    steps = first_reaching(curve, goal, "agent_steps", window)
    return [
        Measure(TIME, seconds, "s", f"{protocol}, from the end of the first episode", NOT_REACHED),
        Measure(STEPS, steps, "steps", protocol, NOT_REACHED),
        Measure(
            SPEED,
            0.0 if math.isnan(seconds) else 60 / seconds,
            "1/min",
            f"60 / the {TIME}; 0 if it is {NOT_REACHED}",
        ),
    ]


def groups(results: Results) -> dict[str, dict[str, list[RecordedRun]]]:
    """Group the runs by game and system."""
    games = grouped(results.runs, lambda run: run.spec.game)
    return {game: grouped(runs, lambda run: run.spec.system) for game, runs in games.items()}


def findings(results: Results) -> dict[str, Finding]:
    """Judge for each game with runs whether GA3C reaches the score sooner, by the ratio of times of the same
    seed.

    P values are corrected for the games with runs only, because a user who runs one game asks one question.

    A run that does not reach the score counts as reaching it at its end, which favors its system. The verdict
    is then given only if it is against that system.

    Pairs on a machine whose speed changed between them are left out. If fewer than `LEAST_SEEDS` are left,
    nothing is decided, and the finding has the numbers of all pairs.
    """
    steady = {game: _steady_seeds(of) for game, of in groups(results).items()}
    times = {
        game: {system: _times(results, of[system], steady[game]) for system in COMPARED}
        for game, of in groups(results).items()
    }
    times = {game: of for game, of in times.items() if any(of.values())} or times
    effects = {game: paired_ratio(by_system["a3c"], by_system["ga3c"]) for game, by_system in times.items()}
    corrected = holm([effect.chance for effect in effects.values()])
    by_game = {}
    for (game, effect), chance in zip(effects.items(), corrected, strict=True):
        missed = _missed(results, game)
        bound = BOUNDS[missed[0]][0] if effect.seeds and len(missed) == 1 else ""
        finding = finding_of(effect, chance, open_level(corrected), bound + described_ratio(effect, chance))
        runs = [run for run in results.runs if run.spec.game == game]
        verdict = _verdict(runs, missed, finding.verdict, steady[game])
        finding = finding if verdict == finding.verdict else Finding(verdict, finding.because)
        by_game[game] = fair_to_a3c(finding, runs)
    return by_game


def claims(results: Results) -> list[Claim]:
    """Return by game the claim that GA3C reaches the score sooner, which is the paper's for Atari only."""
    return [
        Claim(
            f"{game}: GA3C reaches a score of {number(GOALS[game].score)} sooner than A3C",
            finding,
            is_question=not is_atari(game),
            game=game,
        )
        for game, finding in findings(results).items()
    ]


def _steady_seeds(by_system: dict[str, list[RecordedRun]]) -> list[int]:
    """Return the seeds of a game whose two runs are not known to differ in the speed of the machine."""
    first, second = ({run.spec.seed: run for run in by_system.get(system, [])} for system in COMPARED)
    pairs = {seed: (run, second[seed]) for seed, run in first.items() if seed in second}
    return [
        seed for seed, pair in pairs.items() if not all(run.finished for run in pair) or make_a_pair(*pair)
    ]


def _times(results: Results, runs: list[RecordedRun], steady: list[int]) -> dict[int, float]:
    """Return the seconds to the score by seed, or the length of the run if it does not reach the score.

    Args:
        results: results that have these runs.
        runs: runs of one game and system.
        steady: the only seeds that count, unless they are too few to decide.
    """
    ended = [run for run in runs if run.ended]
    counted = [run for run in ended if run.spec.seed in steady] if len(steady) >= LEAST_SEEDS else ended
    return {run.spec.seed: results.value(run, TIME) or _length(run) for run in counted}


def _length(run: RecordedRun) -> float:
    """Return the length of a run that has not reached the score, in seconds.

    Each session counts from the end of its first episode, and the run counts up to the end of its last
    episode. A run that diverged, or that has fewer than two episodes, counts with its planned time.
    """
    ends = run.curve["time_s"]
    if run.diverged or len(ends) < 2:
        return 60.0 * (run.spec.config.minutes or 60 * run.hours)
    return float(ends[-1]) - _starting_s(run, float(ends[-1]))


def _starting_s(run: RecordedRun, until: float) -> float:
    """Return the seconds before `until` in which a session was running but none of its episodes had ended."""
    ends = run.curve["time_s"]
    starts = sorted({float(session.get("time_s", 0.0)) for session in run.sessions})
    before = [start for start in starts if start < until]
    firsts = [float(ends[np.searchsorted(ends, start, side="right")]) for start in before]
    nexts = [*before[1:], math.inf]  # a session may end before any of its episodes
    return sum(min(first, after) - start for start, first, after in zip(before, firsts, nexts, strict=True))


def _timed_curve(run: RecordedRun) -> Columns:
    """Return a run's curve against the time of the findings, which leaves out the start of each session."""
    curve = run.curve
    return {**curve, "time_s": np.array([time_s - _starting_s(run, time_s) for time_s in curve["time_s"]])}


def _missed(results: Results, game: str) -> list[str]:
    """Return the systems of which a run has ended without reaching the score."""
    return [
        system
        for system, runs in groups(results)[game].items()
        if any(run.ended and results.value(run, TIME) is None for run in runs)
    ]


def _verdict(runs: list[RecordedRun], missed: list[str], verdict: str, steady: list[int]) -> str:
    """Return the verdict of the t test, or the reason why the runs of a game cannot decide.

    Args:
        runs: all runs of the game.
        missed: systems of which a run has ended without reaching the score.
        verdict: verdict of the t test.
        steady: seeds from `_steady_seeds`.
    """
    if verdict == FEW_SEEDS:
        return verdict
    if not all(run.ended for run in runs):
        return RUNS_MISSING
    if any(verdict != BOUNDS[system][1] for system in missed):
        return TOO_SHORT
    if not seeds_have_one_machine(runs):
        return SEVERAL_MACHINES
    return verdict if len(steady) >= LEAST_SEEDS else SPEED_CHANGED


def details(results: Results) -> list[str]:
    """Return the table of times and steps to the score by game and system, for the games that are judged."""
    rows = []
    for game in findings(results):
        for system, runs in groups(results)[game].items():
            reached = results.values(TIME, runs)
            ended = sum(run.ended for run in runs)
            cells = [mean_ci(reached), mean_ci(results.values(STEPS, runs))]
            rows.append(
                [game, number(GOALS[game].score), SYSTEMS[system], f"{len(reached)} of {ended}", *cells]
            )
    return lines_of("wall-clock.md", rows=rows)


def plot(results: Results, stem: Path) -> None:
    """Draw the score of each run against time and against agent steps, a row for each game that has been run.

    The time is that of the findings.
    """
    from ga3c_tf.reproduce.drawing import score_plots

    curves = {
        game: {
            SYSTEMS[system]: [_timed_curve(run) for run in runs if run.finished]
            for system, runs in of.items()
        }
        for game, of in groups(results).items()
    }
    drawn = {game: of for game, of in curves.items() if any(of.values())} or curves
    titles = {game: game.replace("_", " ") for game in drawn}
    score_plots.score_curves(
        {titles[game]: of for game, of in drawn.items()},
        stem,
        random={title: RANDOM_SCORES.get(game) for game, title in titles.items()},
        goals={title: GOALS[game].score for game, title in titles.items()},
        time_label="minutes from the end\nof the first episode",
    )


FIGURE = Figure(
    name="wall-clock",
    place=7,
    paper="Figure 6, Table 3",
    shows="time to a score of GA3C and A3C",
    headline="does GA3C reach a score sooner than A3C on CartPole and MinAtar? (the paper: on Atari games)",
    games={"smoke": ("cartpole",), "quick": tuple(GOALS)},
    seeds=seeds_by_budget(quick=3),
    specs=specs,
    measures=measures,
    main=(SPEED, "1/min"),
    claims=claims,
    details=details,
    plot=plot,
)

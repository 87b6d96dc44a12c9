"""Time to a score of GA3C and A3C on small environments. The paper's main claim is about it on Atari."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures import pictures
from ga3c_tf.reproduce.figures.figure import Figure, Measure, Table, seeds_by_budget, smoke_spec, time_of
from ga3c_tf.reproduce.figures.measurements import Measurements, speed_changed
from ga3c_tf.reproduce.figures.throughput import pps
from ga3c_tf.reproduce.measures.curves import first_reaching
from ga3c_tf.reproduce.measures.estimates import paired_ratio
from ga3c_tf.reproduce.measures.text import number
from ga3c_tf.reproduce.measures.verdicts import FAILS, HOLDS, INCONCLUSIVE, TOO_SHORT, Above, Claim, Guard
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec, is_atari, run_spec
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
BOUNDS = {
    "A3C": ("A3C did not always reach the score, so this is a lower bound", (FAILS, INCONCLUSIVE)),
    "GA3C": ("GA3C did not always reach the score, so this is an upper bound", (HOLDS, INCONCLUSIVE)),
}
"""What runs of a system that do not reach the score say about the ratio, and which verdicts they rule out."""


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
    window = run.spec.config.rolling_episodes
    goal = GOALS[run.spec.game].score
    protocol = f"until the mean of {window} episodes of training is {goal:g}"
    reached = first_reaching(run.curve, goal, "time_s", window)
    seconds = math.nan if math.isnan(reached) else reached - _starting_s(run, reached)
    steps = first_reaching(run.curve, goal, "agent_steps", window)
    speed = 0.0 if math.isnan(seconds) else 60 / seconds
    return [
        Measure(TIME, seconds, "s", f"{protocol}, from the end of the first episode", NOT_REACHED),
        Measure(STEPS, steps, "steps", protocol, NOT_REACHED),
        Measure(SPEED, speed, "1/min", f"60 / the {TIME}; 0 if it is {NOT_REACHED}"),
    ]


def claims(table: Measurements) -> list[Claim]:
    """Return for each game with runs the claim that GA3C reaches the score sooner.

    The claim is the paper's for Atari only. P values are corrected for the games with runs only, because a
    user who runs one game asks one question.
    """
    parts = dict(table.parts("game"))
    begun = {game: part for game, part in parts.items() if any(run.ended for run in part.runs)}
    return [_claim(game, part) for game, part in (begun or parts).items()]


def _claim(game: str, part: Measurements) -> Claim:
    """Return the claim of a game, by the ratio of times of the same seed.

    A run that does not reach the score counts as reaching it at its end, which favors its system. The verdict
    is then given only if it is against that system.
    """
    pairs = part.pairs(_times, {"system": "A3C"}, {"system": "GA3C"})
    missed = [system for system in BOUNDS if _missed(part.select(system=system))]
    seconds = [
        f"{name} {number(float(np.exp(np.log(times).mean())))} s"
        for name, times in (("A3C", pairs.first), ("GA3C", pairs.second))
    ]
    bounds = [BOUNDS[system][0] for system in missed]
    note = "; ".join([", ".join(seconds), *bounds])
    return Claim(
        game,
        f"{game}: GA3C reaches a score of {number(GOALS[game].score)} sooner than A3C",
        Above(paired_ratio(pairs.first, pairs.second, note=note)),
        [
            part.missing,
            *(Guard(TOO_SHORT, True, BOUNDS[system][1]) for system in missed),
            part.several_machines,
            speed_changed(pairs),
            *part.unfair_to_a3c,
        ],
        is_question=not is_atari(game),
        game=game,
    )


def _times(part: Measurements) -> pd.Series:
    """Return the seconds to the score by seed, or the length of the run if it does not reach the score."""
    times = part.series(TIME)
    return pd.Series(
        {run.spec.seed: times.get(run.spec.seed, _length(run)) for run in part.runs if run.ended}, dtype=float
    )


def _missed(part: Measurements) -> bool:
    """Return whether a run has ended without reaching the score."""
    return len(part.numbers(TIME)) < sum(run.ended for run in part.runs)


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
    """Return a run's curve against the time of the claims, which leaves out the start of each session."""
    curve = run.curve
    return {**curve, "time_s": np.array([time_s - _starting_s(run, time_s) for time_s in curve["time_s"]])}


def plot(table: Measurements, stem: Path) -> None:
    """Draw the score of each run against time and against agent steps, a row for each game that has been run.

    The time is that of the claims.
    """
    pictures.draw(
        pictures.curves(table, "system", curve=_timed_curve),
        stem,
        goals={game.replace("_", " "): goal.score for game, goal in GOALS.items()},
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
    tables=[
        Table(
            ("game", "system"),
            {
                "score": lambda part: number(GOALS[part.game].score),
                "reached it": lambda part: (
                    f"{len(part.numbers(TIME))} of {sum(run.ended for run in part.runs)}"
                ),
                "seconds": time_of(TIME),
                "agent steps": time_of(STEPS),
            },
        )
    ],
    plot=plot,
)

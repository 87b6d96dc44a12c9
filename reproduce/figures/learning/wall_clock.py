"""Time to a score of GA3C and A3C on small environments. The paper's main claim is about it on Atari."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.measurements import Measure, Measurements
from ga3c_tf.reproduce.figures.plans import AGENTS, learning_spec
from ga3c_tf.reproduce.figures.tables import reached, time_of
from ga3c_tf.reproduce.measures.curves import first_reaching
from ga3c_tf.reproduce.measures.text import game_title, number
from ga3c_tf.reproduce.measures.verdicts import FAILS, HOLDS, INCONCLUSIVE, TOO_SHORT, Claim, Guard, above
from ga3c_tf.reproduce.runs.run import RecordedRun
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
TIME = "time to the score"
STEPS = "agent steps to the score"
SPEED = "speed of learning"
NOT_REACHED = "not reached"
BOUNDS = {
    "A3C": ("A3C did not always reach the score, so this is a lower bound", (FAILS, INCONCLUSIVE)),
    "GA3C": ("GA3C did not always reach the score, so this is an upper bound", (HOLDS, INCONCLUSIVE)),
}
"""What runs of a system that do not reach the score say about the ratio, and which verdicts they rule out."""


def timed_curve(run: RecordedRun) -> Columns:
    """Return a run's curve against the time from the end of the first episode of each session."""
    ends = run.curve["time_s"]
    waited = np.zeros(len(ends))
    starts = sorted({float(session.get("time_s", 0.0)) for session in run.sessions})
    for start, after in zip(starts, [*starts[1:], math.inf], strict=True):
        first = min([*ends[ends > start][:1], after])  # a session may end before any of its episodes
        waited[ends > start] += first - start
    return {**run.curve, "time_s": ends - waited}


def _measures(run: RecordedRun) -> list[Measure]:
    window = run.spec.config.rolling_episodes
    goal = GOALS[run.spec.game].score
    protocol = f"until the mean of {window} episodes of training is {goal:g}"
    seconds, steps = (
        first_reaching(timed_curve(run), goal, name, window) for name in ("time_s", "agent_steps")
    )
    speed = 0.0 if math.isnan(seconds) else 60 / seconds
    return [
        Measure(TIME, seconds, "s", f"{protocol}, from the end of the first episode", NOT_REACHED),
        Measure(STEPS, steps, "steps", protocol, NOT_REACHED),
        Measure(SPEED, speed, "1/min", f"60 / the {TIME}; 0 if it is {NOT_REACHED}"),
    ]


def _times(part: Measurements) -> pd.Series:
    """Return the seconds to the score by seed, or the length of the run if it does not reach the score.

    A run that diverged, or that has fewer than two episodes, counts with its planned time.
    """
    ended = [row for row in part.rows if row.run.ended]
    times = {row.facts["seed"]: row.values.get(TIME) or _length_s(row.run) for row in ended}
    return pd.Series(times, dtype=float)


def _length_s(run: RecordedRun) -> float:
    if run.diverged or len(run.curve["time_s"]) < 2:
        return 60.0 * (run.spec.config.minutes or 60 * run.hours)
    return float(timed_curve(run)["time_s"][-1])


class WallClockFigure(Figure):
    """Times are from the end of the first episode of each session, and compared as ratios of one seed.

    A run that does not reach the score counts as reaching it at its end, which favors its system. The verdict
    is then given only if it is against that system. P values are corrected for the games with runs only,
    because a user who runs one game asks one question. The claim is the paper's for Atari only.
    """

    name = "wall-clock"
    games = {"smoke": ("cartpole",), "quick": tuple(GOALS)}
    only = tuple(GOALS)
    counts = {"quick": 3}
    smoke = ({}, {"system": "a3c"})
    measured = (_measures,)
    main = (SPEED, "1/min")
    lines = "system"
    time_label = "minutes from the end\nof the first episode"
    rows = ("game", "system")
    columns = {
        "score": lambda part: number(GOALS[part.game].score),
        "reached it": reached(TIME),
        "seconds": time_of(TIME),
        "agent steps": time_of(STEPS),
    }

    def planned(self, budget, game, seed):
        score, minutes = GOALS[game]
        until: dict[str, Any] = {"minutes": minutes, "target_score": score, "log_seconds": 2.0}
        return [
            learning_spec(game, seed, system, AGENTS["quick"][system], **until) for system in ("ga3c", "a3c")
        ]

    def claims(self, table):
        parts = dict(table.parts("game"))
        begun = {game: part for game, part in parts.items() if part.ended}
        return [self._claim(game, part) for game, part in (begun or parts).items()]

    def _claim(self, game: str, part: Measurements) -> Claim:
        pairs = part.pairs(_times, {"system": "A3C"}, {"system": "GA3C"})
        of_system = dict(part.parts("system"))
        missed = [name for name in BOUNDS if len(of_system[name].numbers(TIME)) < len(of_system[name].ended)]
        seconds = [
            f"{name} {number(float(np.exp(np.log(times).mean())))} s"
            for name, times in (("A3C", pairs.first), ("GA3C", pairs.second))
        ]
        note = "; ".join([", ".join(seconds), *(BOUNDS[system][0] for system in missed)])
        missing, *timed = part.timed(pairs)
        bounds = [Guard(TOO_SHORT, True, BOUNDS[system][1]) for system in missed]
        test = above(pairs.factor(note=note))
        guards = [missing, *bounds, *timed, *part.unfair_to_a3c]
        score = number(GOALS[game].score)
        return self.claim(game, test, guards, game=game, name=game_title(game), score=score)

    def curve(self, run):
        return timed_curve(run)

    def goal(self, part):
        return GOALS[part.game].score

"""Environments other than Atari, not in the paper: score of GA3C, A3C and A2C against agent steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ga3c_tf.reproduce.figures.figure import MINUTES, UNFINISHED, Added, Figure, Measure, Table, mean_of
from ga3c_tf.reproduce.figures.learning import learning_curves, scores
from ga3c_tf.reproduce.figures.learning.learning_curves import FINAL
from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.figures.pictures import draw_curves
from ga3c_tf.reproduce.figures.plans import learning_spec, smoke_spec
from ga3c_tf.reproduce.figures.throughput import pps
from ga3c_tf.reproduce.measures.curves import score_at_start
from ga3c_tf.reproduce.measures.estimates import pooled
from ga3c_tf.reproduce.measures.random_policy import (
    RANDOM_POLICY,
    RandomPolicy,
    has_left_random,
    random_policy_of,
)
from ga3c_tf.reproduce.measures.records import NOT_RUN
from ga3c_tf.reproduce.measures.text import number
from ga3c_tf.reproduce.measures.verdicts import RUNS_MISSING, TOO_SHORT, Above, Claim, Guard
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import SYSTEMS
from ga3c_tf.reproduce.runs.tuned import tuned_spec

GAMES = (
    "cartpole",
    "minatar_breakout",
    "minatar_asterix",
    "minatar_freeway",
    "minatar_seaquest",
    "minatar_space_invaders",
)
STEPS = {"quick": 500_000, "tuned": 5_000_000, "paper": 5_000_000}
TUNED: dict[str, dict[str, Any]] = {
    "a3c": {"num_agents": pps.AGENTS["quick"]["a3c"]},
    "a2c": {"learning_rate": 1e-2},
}
"""Settings that override the preset by system. Learning rates are the best of three on Breakout, seed 101."""
TUNED_A3C_GAMES = ("minatar_breakout", "minatar_space_invaders")
"""Games that A3C is run on at the tuned budget; the others are left out to save hours."""
MARGIN = 10.0
"""Points of the normalized score that GA3C may be below another system and still score as much."""
START = "rolling score at the start"
LEAST_SHOWN = 1.0
"""Points above the random policy that the picture shows at least."""


def measures(run: RecordedRun) -> list[Measure]:
    """Return the rolling score at the end, at its best, and at the start, and the scores of an evaluation.

    At the start, little has been learned yet.
    """
    window = run.spec.config.rolling_episodes
    steps = run.curve["agent_steps"][run.curve["episodes"] >= window]
    start = Measure(
        START,
        score_at_start(run.curve, window),
        "points",
        f"mean score of the last {window} episodes, at the first point of the curve with as many",
        f"fewer than {window} episodes ended",
        agent_steps=int(steps[0]) if len(steps) else None,
    )
    return [*learning_curves.measures(run), start, *scores.measures(run)]


class EnvironmentsFigure(Figure):
    """GA3C scores as much as another system by normalized scores, over the games together.

    A normalized score is 0 for the random policy and 100 for the better of the two systems. Games in which
    neither system has left the random policy say nothing and are left out.
    """

    name = "environments"
    place = 11
    shows = "score against time and agent steps on CartPole and MinAtar, GA3C, A3C and A2C"
    headline = "does GA3C learn as much as A2C and A3C in the same steps?"
    games = {"smoke": ("cartpole",), "quick": GAMES, "tuned": GAMES[1:], "paper": GAMES}
    counts = {"quick": 3, "paper": 5}
    # The comparison with A3C was undecided; it counted these games.
    added = (
        Added(
            ("cartpole", "minatar_breakout", "minatar_seaquest", "minatar_space_invaders"),
            range(4, 9),
            lambda spec: spec.system in ("ga3c", "a3c"),
        ),
    )
    main = (FINAL, "points")
    measures: Any = staticmethod(measures)
    tables = (
        Table(
            ("game", "system"),
            {
                "random policy": lambda part: number(random_score(part)),
                "rolling score at the end": mean_of(FINAL),
                "score of the final weights": mean_of(scores.SCORE),
                **MINUTES,
                **UNFINISHED,
            },
            where={"added": False},
        ),
    )

    def specs(self, budget, game, seed):
        if budget == "smoke":
            return [smoke_spec(game, seed), smoke_spec(game, seed, "a3c")]
        steps = STEPS[budget]
        if budget == "tuned":
            systems = [system for system in SYSTEMS if system != "a3c" or game in TUNED_A3C_GAMES]
            return [tuned_spec(game, seed, name, steps=steps, **TUNED.get(name, {})) for name in systems]
        agents = pps.AGENTS[budget]
        usual: dict[str, Any] = {"steps": steps, "checkpoint_minutes": 15.0}
        return [
            learning_spec(game, seed, system, agents.get(system, agents["ga3c"]), **usual)
            for system in SYSTEMS
        ]

    def claims(self, table):
        planned = table.select(added=False)
        others = [system for system in planned.names("system") if system != "GA3C"]
        score = "that of the final weights" if table.numbers(scores.SCORE) else "the rolling score at the end"
        return [self._claim(table if name == "A3C" else planned, name, score) for name in others]

    def _claim(self, table: Measurements, other: str, score: str) -> Claim:
        both = {game: part.select(system=("GA3C", other)) for game, part in table.parts("game")}
        both = {game: part for game, part in both.items() if other in part.names("system")}
        shares = {game: _shares(part, other) for game, part in both.items()}
        compared = {game: share for game, share in shares.items() if share}
        differences = [f"{game} {np.mean(x) - np.mean(y):+.0f}" for game, (x, y) in compared.items()]
        note = f"in points of the normalized score, on average over {', '.join(differences)}"
        looks = 2 if any(both[game].has_added for game in compared) else 1
        estimate = pooled(list(compared.values()), -MARGIN, note=note).looked(looks)
        # In a game with both systems, some runs have begun but not all have ended.
        missing = any(
            part.missing.applies and any(table.results.status(run) != NOT_RUN for run in part.runs)
            for part in both.values()
        )
        nothing = not any(_ends(part.select(system=other)) for part in both.values())
        guards = [Guard(RUNS_MISSING, nothing), Guard(TOO_SHORT, not compared), Guard(RUNS_MISSING, missing)]
        key = f"as-much-as-{other.lower()}"
        return self.claim(key, Above(estimate), guards, other=other, score=score)

    def plot(self, table, stem):
        def least_shown(part: Measurements) -> float | None:
            score = random_score(part)
            return None if score is None else score + LEAST_SHOWN

        draw_curves(table.select(added=False), stem, "system", random=random_score, reach=least_shown)


def _ends(part: Measurements) -> list[float]:
    """Return the scores of the final weights if any run was evaluated, otherwise the last rolling scores.

    A run that diverged scores as the random policy.
    """
    random = _random_of(part)
    diverged = [random.mean] * sum(run.diverged for run in part.runs) if random else []
    return [*(part.numbers(scores.SCORE) or part.numbers(FINAL)), *diverged]


def _shares(part: Measurements, other: str) -> tuple[list[float], list[float]] | None:
    """Return the normalized final scores of GA3C and of another system, or None with nothing to compare."""
    groups = [_ends(part.select(system=system)) for system in ("GA3C", other)]
    random = _random_of(part)
    if random is None or not all(groups):
        return None
    episodes = _episodes(_of_game(part))
    way = float(max(map(np.mean, groups))) - random.mean
    if way <= 0 or not any(has_left_random(ends, episodes, random) for ends in groups):
        return None
    first, second = ([100 * (score - random.mean) / way for score in ends] for ends in groups)
    return first, second


def _episodes(runs: list[RecordedRun]) -> int:
    """Return the smallest number of episodes that a score of `_ends` is the mean of."""
    played = [len(run.result["evaluation"]["scores"]) for run in runs if "evaluation" in run.result]
    return min(played) if played else learning_curves.fewest_episodes(runs)


def _of_game(part: Measurements) -> list[RecordedRun]:
    """Return the planned runs of all systems in the game of this part."""
    return [run for run in part.results.runs if run.spec.game == part.game and not run.spec.is_added]


def _random_of(part: Measurements) -> RandomPolicy | None:
    """Return the scores of the random policy: measured with the runs of the game, or on record, or at the
    start, when the policy is nearly random.
    """
    runs = _of_game(part)
    measured = learning_curves.random_of(runs) or RANDOM_POLICY.get(part.game)
    starts = [value for run in runs if (value := part.results.value(run, START)) is not None]
    if measured or not starts:
        return measured
    window = runs[0].spec.config.rolling_episodes
    of_means = random_policy_of(starts)  # each start is the mean of a window of episodes
    return RandomPolicy(of_means.mean, of_means.deviation * math.sqrt(window), window * len(starts))


def random_score(part: Measurements) -> float | None:
    """Return the mean score of the random policy, or None."""
    random = _random_of(part)
    return None if random is None else random.mean


FIGURE = EnvironmentsFigure()

"""Environments other than Atari, not in the paper: score of GA3C, A3C and A2C against agent steps."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from ga3c_tf.reproduce.figures import pictures
from ga3c_tf.reproduce.figures.figure import (
    Figure,
    Measure,
    Table,
    mean_of,
    minutes,
    seeds_by_budget,
    smoke_spec,
    unfinished,
)
from ga3c_tf.reproduce.figures.learning import learning_curves, scores
from ga3c_tf.reproduce.figures.measurements import Measurements
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
from ga3c_tf.reproduce.runs.specs import SYSTEMS, RunSpec, run_spec
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
    "ga3c": {},
    "a3c": {"num_agents": pps.AGENTS["quick"]["a3c"]},
    "a2c": {"learning_rate": 1e-2},
}
"""Settings that override the preset by system. Learning rates are the best of three on Breakout, seed 101."""
TUNED_A3C_GAMES = ("minatar_breakout", "minatar_space_invaders")
"""Games that A3C is run on at the tuned budget; the others are left out to save hours."""
ADDED_SEEDS = (4, 5, 6, 7, 8)
"""Seeds at `quick` of GA3C and A3C in `EXTENDED`, added as their comparison was undecided after three."""
EXTENDED = ("cartpole", "minatar_breakout", "minatar_seaquest", "minatar_space_invaders")
"""The games that this comparison counted: in the others, neither system had left the random policy."""
MARGIN = 10.0
"""Points of the normalized score that GA3C may be below another system and still score as much."""
START = "rolling score at the start"
LEAST_SHOWN = 1.0
"""Points above the random policy that the picture shows at least."""


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return a run of each system, with the same number of agent steps."""
    if budget == "smoke":
        return [smoke_spec(game, seed), smoke_spec(game, seed, "a3c")]
    if budget == "tuned":
        systems = [system for system in SYSTEMS if system != "a3c" or game in TUNED_A3C_GAMES]
        return [
            tuned_spec(game, seed, system, steps=STEPS[budget], **TUNED.get(system, {})) for system in systems
        ]
    agents = pps.AGENTS[budget]
    return [
        run_spec(
            game,
            seed,
            system,
            num_agents=agents.get(system, agents["ga3c"]),
            num_predictors=2,
            num_trainers=2,
            min_training_batch=20,
            steps=STEPS[budget],
            checkpoint_minutes=15.0,
        )
        for system in SYSTEMS
    ]


def added(game: str) -> list[RunSpec]:
    """Return the runs of the added seeds, of GA3C and A3C."""
    runs = [spec for seed in ADDED_SEEDS for spec in specs("quick", game, seed)]
    return [spec for spec in runs if spec.system in ("ga3c", "a3c")]


def measures(run: RecordedRun) -> list[Measure]:
    """Return the rolling score at the end, at its best, and at the start, and the scores of an evaluation.

    At the start, little has been learned yet.
    """
    window = run.spec.config.rolling_episodes
    curve = run.curve
    whole = curve["episodes"] >= window
    start = Measure(
        START,
        score_at_start(curve, window),
        "points",
        f"mean score of the last {window} episodes, at the first point of the curve with as many",
        f"fewer than {window} episodes ended",
        agent_steps=int(curve["agent_steps"][whole][0]) if whole.any() else None,
    )
    return [*learning_curves.measures(run), start, *scores.measures(run)]


def claims(table: Measurements) -> list[Claim]:
    """Return for each other system the claim that GA3C scores as much, over the games together.

    A normalized score is 0 for the random policy and 100 for the better of the two systems. Games in which
    neither system has left the random policy say nothing and are left out. Only the comparison with A3C uses
    added seeds.
    """
    score = "that of the final weights" if table.numbers(scores.SCORE) else "the rolling score at the end"
    rule = (
        f"its normalized score is at most {MARGIN:g} points below, on average over the games; 0 is the "
        "random policy, 100 the better of the two systems; games in which neither has left the random policy "
        f"are left out; the difference of each game is noted; the score is {score}"
    )
    planned = table.select(added=False)
    others = [system for system in planned.names("system") if system != "GA3C"]
    return [_claim(table if other == "A3C" else planned, other, rule) for other in others]


def _claim(table: Measurements, other: str, rule: str) -> Claim:
    """Return the claim that GA3C scores as much as another system.

    Runs are missing if in any game with both systems, some of their runs have begun but not all have ended.
    """
    both = {game: part.select(system=("GA3C", other)) for game, part in table.parts("game")}
    shares = {game: _shares(part, other) for game, part in both.items() if other in part.names("system")}
    compared = {game: share for game, share in shares.items() if share}
    differences = [f"{game} {np.mean(ga3c) - np.mean(a3c):+.0f}" for game, (ga3c, a3c) in compared.items()]
    games = [game for game, part in both.items() if part.facts["added"].any()]
    note = f"in points of the normalized score, on average over {', '.join(differences)}"
    estimate = pooled(list(compared.values()), -MARGIN, note=note)
    missing = any(
        other in part.names("system")
        and any(table.results.status(run) != NOT_RUN for run in part.runs)
        and part.missing.applies
        for part in both.values()
    )
    nothing = not any(_ends(part.select(system=other)) for part in both.values())
    return Claim(
        f"as-much-as-{other.lower()}",
        f"GA3C scores as much as {other} after the same agent steps",
        Above(estimate.looked(2 if set(games) & set(compared) else 1)),
        [Guard(RUNS_MISSING, nothing), Guard(TOO_SHORT, not compared), Guard(RUNS_MISSING, missing)],
        rule,
    )


def _ends(part: Measurements) -> list[float]:
    """Return the scores of the final weights if any run was evaluated, otherwise the last rolling scores.

    A run that diverged scores as the random policy.
    """
    random = _random_of(part)
    diverged = [random.mean] * sum(run.diverged for run in part.runs) if random else []
    return [*(part.numbers(scores.SCORE) or part.numbers(learning_curves.FINAL)), *diverged]


def _shares(part: Measurements, other: str) -> tuple[list[float], list[float]] | None:
    """Return the normalized final scores of GA3C and of another system, or None with nothing to compare."""
    ga3c, others = (_ends(part.select(system=system)) for system in ("GA3C", other))
    random = _random_of(part)
    if not ga3c or not others or random is None:
        return None
    episodes = _episodes(part)
    if not any(has_left_random(ends, episodes, random) for ends in (ga3c, others)):
        return None
    way = float(max(np.mean(ga3c), np.mean(others))) - random.mean
    if way <= 0:
        return None
    first, second = ([100 * (score - random.mean) / way for score in ends] for ends in (ga3c, others))
    return first, second


def _episodes(part: Measurements) -> int:
    """Return the smallest number of episodes that a score of `_ends` is the mean of."""
    planned = _of_game(part)
    played = [len(run.result["evaluation"]["scores"]) for run in planned if "evaluation" in run.result]
    return min(played) if played else learning_curves.fewest_episodes(planned)


def _of_game(part: Measurements) -> list[RecordedRun]:
    """Return the planned runs of all systems in the game of this part."""
    return [run for run in part.results.runs if run.spec.game == part.game and not run.spec.is_added]


def _random_of(part: Measurements) -> RandomPolicy | None:
    """Return the scores of the random policy: measured with the runs of the game, or on record, or at the
    start, when the policy is nearly random.
    """
    runs = _of_game(part)
    measured = learning_curves.random_of(runs) or RANDOM_POLICY.get(part.game)
    starts = part.results.values(START, runs)
    if measured or not starts:
        return measured
    window = runs[0].spec.config.rolling_episodes
    of_means = random_policy_of(starts)  # each start is the mean of a window of episodes
    return RandomPolicy(of_means.mean, of_means.deviation * math.sqrt(window), window * len(starts))


def random_score(part: Measurements) -> float | None:
    """Return the mean score of the random policy, or None."""
    random = _random_of(part)
    return None if random is None else random.mean


def plot(table: Measurements, stem: Path) -> None:
    """Draw the score against time and against agent steps, a row for each game."""
    planned = table.select(added=False)
    random = {game.replace("_", " "): random_score(part) for game, part in planned.parts("game")}
    reach = {title: score if score is None else score + LEAST_SHOWN for title, score in random.items()}
    pictures.draw(pictures.curves(planned, "system"), stem, random=random, reach=reach)


FIGURE = Figure(
    name="environments",
    place=11,
    paper="not in the paper",
    shows="score against time and agent steps on CartPole and MinAtar, GA3C, A3C and A2C",
    headline="does GA3C learn as much as A2C and A3C in the same steps?",
    games={"smoke": ("cartpole",), "quick": GAMES, "tuned": GAMES[1:], "paper": GAMES},
    seeds=seeds_by_budget(quick=3, paper=5),
    specs=specs,
    measures=measures,
    main=(learning_curves.FINAL, "points"),
    claims=claims,
    tables=[
        Table(
            ("game", "system"),
            {
                "random policy": lambda part: number(random_score(part)),
                "rolling score at the end": mean_of(learning_curves.FINAL),
                "score of the final weights": mean_of(scores.SCORE),
                "minutes": minutes,
                "not finished": unfinished,
            },
            where={"added": False},
        )
    ],
    plot=plot,
    added_games=EXTENDED,
    added=added,
)

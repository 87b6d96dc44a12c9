"""Figure 6: score against wall-clock time for several games, of GA3C and, on the same machine, of our CPU
A3C.

The paper has no scores of its own CPU A3C, which its reviewers asked for. As in the paper, GA3C has two
learning rates, with three runs each. At the quick budget both systems have one learning rate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ga3c_tf.reproduce.figures import pictures
from ga3c_tf.reproduce.figures.figure import (
    Figure,
    Measure,
    Table,
    mean_of,
    seeds_by_budget,
    smoke_spec,
    unfinished,
)
from ga3c_tf.reproduce.figures.learning import scores
from ga3c_tf.reproduce.figures.measurements import Measurements, speed_changed
from ga3c_tf.reproduce.figures.throughput import pps
from ga3c_tf.reproduce.measures.estimates import paired
from ga3c_tf.reproduce.measures.random_policy import RandomPolicy, has_left_random, random_policy_of
from ga3c_tf.reproduce.measures.text import number
from ga3c_tf.reproduce.measures.verdicts import TOO_SHORT, Above, Claim, Guard
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
    final = float(rolling[-1]) if len(rolling) else math.nan
    best = float(whole.max()) if len(whole) else math.nan
    return [
        Measure(FINAL, final, "points", f"{protocol}, of all if fewer", "no episode ended"),
        Measure(BEST, best, "points", protocol, f"fewer than {window} episodes ended"),
    ]


def random_of(runs: Sequence[RecordedRun]) -> RandomPolicy | None:
    """Return the scores of the random policy if one of the runs of a game measured them, or None."""
    played = (run.result["random"]["scores"] for run in runs if "random" in run.result)
    measured = next(played, None)
    return None if measured is None else random_policy_of(measured)


def fewest_episodes(runs: Sequence[RecordedRun]) -> int:
    """Return the fewest episodes that the final rolling score of one of these runs is the mean of."""
    ended = [int(run.curve["episodes"][-1]) for run in runs if len(run.curve["episodes"])]
    return max(1, min([*ended, *(run.spec.config.rolling_episodes for run in runs)]))


def claims(table: Measurements) -> list[Claim]:
    """Return for each game the claim that GA3C scores more than A3C, each at its first learning rate."""
    return [_claim(game, part) for game, part in table.parts("game")]


def _claim(game: str, part: Measurements) -> Claim:
    ga3c, a3c = ({"label": part.select(system=name).names("label")[0]} for name in ("GA3C", "A3C"))
    pairs = part.pairs(FINAL, ga3c, a3c)
    random, episodes = random_of(part.runs), fewest_episodes(part.runs)
    groups = [part.select(**where).numbers(FINAL) for where in (ga3c, a3c)]
    learned = any(has_left_random(group, episodes, random) for group in groups)
    return Claim(
        game,
        f"{game.replace('_', ' ')}: GA3C scores more than A3C after the same time",
        Above(paired(pairs.first, pairs.second)),
        [
            part.missing,
            part.several_machines,
            Guard(TOO_SHORT, not learned),
            speed_changed(pairs),
            *part.unfair_to_a3c,
        ],
        "final rolling score at the first learning rate listed, as differences of runs of one seed on one "
        "machine",
        is_question=True,
        game=game,
    )


def random_score(part: Measurements) -> float | None:
    """Return the mean score of the random policy, or None."""
    random = random_of(part.runs)
    return None if random is None else random.mean


def plot(table: Measurements, stem: Path) -> None:
    """Draw the score against time and against agent steps, a row for each game.

    The axis shows at least a quarter of the way from the random policy to the paper's score.
    """
    random = {}
    least = {}
    for game, part in table.parts("game"):
        title = game.replace("_", " ")
        score, paper = random_score(part), scores.papers_score(table, game)
        random[title] = score
        least[title] = None if score is None or paper is None else score + (paper - score) / 4
    pictures.draw(pictures.curves(table, "label"), stem, random=random, reach=least)


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
    scores=(FINAL,),
    claims=claims,
    tables=[
        Table(
            ("game", "label"),
            {
                "random policy": lambda part: number(random_score(part)),
                FINAL: mean_of(FINAL),
                BEST: mean_of(BEST),
                "not finished": unfinished,
            },
        )
    ],
    plot=plot,
)

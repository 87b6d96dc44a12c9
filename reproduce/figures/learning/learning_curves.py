"""Figure 6: score against wall-clock time for several games, of GA3C and, on the same machine, of our CPU
A3C.

The paper has no scores of its own CPU A3C, which its reviewers asked for. As in the paper, GA3C has two
learning rates, with three runs each. At the quick budget both systems have one learning rate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ga3c_tf.reproduce.figures.figure import UNFINISHED, Figure, Measure, Table, means_of
from ga3c_tf.reproduce.figures.learning import scores
from ga3c_tf.reproduce.figures.measurements import Measurements, speed_changed
from ga3c_tf.reproduce.figures.pictures import draw_curves
from ga3c_tf.reproduce.figures.plans import learning_spec, smoke_spec
from ga3c_tf.reproduce.figures.throughput import pps
from ga3c_tf.reproduce.measures.estimates import paired
from ga3c_tf.reproduce.measures.random_policy import RandomPolicy, has_left_random, random_policy_of
from ga3c_tf.reproduce.measures.text import game_title, number
from ga3c_tf.reproduce.measures.verdicts import TOO_SHORT, Above, Claim, Guard
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import NINE_GAMES, SYSTEMS, RunSpec, network_of, run_spec

FINAL = "final rolling score"
BEST = "best rolling score"
QUICK: dict[str, Any] = {"minutes": 15.0, "learning_rate": 3e-4, "rmsprop_epsilon": 1e-4}
"""Settings of run e in docs/pong.md: with the authors' epsilon of 0.1, Pong is not learned within minutes."""


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


def random_score(part: Measurements) -> float | None:
    """Return the mean score of the random policy, or None."""
    random = random_of(part.runs)
    return None if random is None else random.mean


def fewest_episodes(runs: Sequence[RecordedRun]) -> int:
    """Return the fewest episodes that the final rolling score of one of these runs is the mean of."""
    ended = [int(run.curve["episodes"][-1]) for run in runs if len(run.curve["episodes"])]
    return max(1, min([*ended, *(run.spec.config.rolling_episodes for run in runs)]))


def a_quarter_of_the_way(part: Measurements) -> float | None:
    """Return the score a quarter of the way from the random policy to the paper's score."""
    random, paper = random_score(part), scores.papers_score(part, part.game)
    return None if random is None or paper is None else random + (paper - random) / 4


class LearningCurvesFigure(Figure):
    """Each system is compared at its first learning rate, by runs of one seed on one machine."""

    name = "learning-curves"
    place = 8
    paper = "Figure 6"
    shows = "score against time and agent steps for several games, for GA3C and A3C"
    headline = "does GA3C score more than A3C after the same time? (asked by reviewers)"
    games = {"smoke": ("cartpole",), "quick": ("boxing", "pong"), "paper": NINE_GAMES}
    counts = {"quick": 3}
    main = (FINAL, "points")
    scores = (FINAL,)
    measures: Any = staticmethod(measures)
    tables = (
        Table(
            ("game", "label"),
            {"random policy": lambda part: number(random_score(part)), **means_of(FINAL, BEST), **UNFINISHED},
        ),
    )

    def specs(self, budget, game, seed):
        if budget == "smoke":
            runs = [smoke_spec(game, seed), smoke_spec(game, seed, "a3c")]
        elif budget == "quick":
            runs = [_quick(game, seed, system) for system in ("ga3c", "a3c")]
        else:
            runs = [scores.training(budget, game, seed, rate) for rate in scores.LEARNING_RATES.values()]
            given = {**runs[0].given, "num_agents": pps.AGENTS[budget]["a3c"]}
            runs.append(run_spec(game, seed, "a3c", **given))
        return [
            spec.called(f"{SYSTEMS[spec.system]}, learning rate {spec.config.learning_rate:g}")
            for spec in runs
        ]

    def claims(self, table):
        return [self._claim(game, part) for game, part in table.parts("game")]

    def _claim(self, game: str, part: Measurements) -> Claim:
        groups = [{"label": part.select(system=name).names("label")[0]} for name in ("GA3C", "A3C")]
        pairs = part.pairs(FINAL, groups[0], groups[1])
        random, episodes = random_of(part.runs), fewest_episodes(part.runs)
        finals = [part.select(**where).numbers(FINAL) for where in groups]
        learned = any(has_left_random(of_system, episodes, random) for of_system in finals)
        guards = [
            part.missing,
            part.several_machines,
            Guard(TOO_SHORT, not learned),
            speed_changed(pairs),
            *part.unfair_to_a3c,
        ]
        return self.claim(
            game, Above(paired(pairs.first, pairs.second)), guards, game=game, name=game_title(game)
        )

    def plot(self, table, stem):
        draw_curves(table, stem, "label", random=random_score, reach=a_quarter_of_the_way)


def _quick(game: str, seed: int, system: str) -> RunSpec:
    plays = (system, seed) == ("ga3c", 1)  # the same random episodes for every run
    scored: dict[str, Any] = {"evaluation_episodes": 30, "random_play": plays, "checkpoint_minutes": 5.0}
    agents = pps.AGENTS["quick"][system]
    return learning_spec(game, seed, system, agents, **scored, **network_of(game), **QUICK)


FIGURE = LearningCurvesFigure()

"""Figure 6: score against wall-clock time for several games, of GA3C and, on the same machine, of our CPU
A3C.

The paper has no scores of its own CPU A3C, which its reviewers asked for. As in the paper, GA3C has two
learning rates, with three runs each. At the quick budget both systems have one learning rate.
"""

from __future__ import annotations

from typing import Any

from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.learning import table_3
from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.figures.metrics import FINAL, rolling_scores
from ga3c_tf.reproduce.figures.normalized import RANDOM_POLICY_CELL, has_learned, papers_score, random_score
from ga3c_tf.reproduce.figures.plans import AGENTS, learning_spec
from ga3c_tf.reproduce.figures.tables import means_of
from ga3c_tf.reproduce.measures.text import game_title
from ga3c_tf.reproduce.measures.verdicts import TOO_SHORT, Claim, Guard, above
from ga3c_tf.reproduce.runs.specs import NINE_GAMES, SYSTEMS, network_of, run_spec

QUICK: dict[str, Any] = {
    "evaluation_episodes": 30,
    "checkpoint_minutes": 5.0,
    "minutes": 15.0,
    "learning_rate": 3e-4,
    "rmsprop_epsilon": 1e-4,
}
"""Settings of run e in docs/pong.md: with the authors' epsilon of 0.1, Pong is not learned within minutes."""


class LearningCurvesFigure(Figure):
    """Each system is compared at its first learning rate, by runs of one seed on one machine."""

    name = "learning-curves"
    games = {"smoke": ("cartpole",), "quick": ("boxing", "pong"), "paper": NINE_GAMES}
    counts = {"quick": 3}
    smoke = ({}, {"system": "a3c"})
    measured = (rolling_scores,)
    main = (FINAL, "points")
    rows = ("game", "label")
    columns = {**RANDOM_POLICY_CELL, **means_of(FINAL)}

    def planned(self, budget, game, seed):
        agents = AGENTS[budget]
        if budget == "quick":
            return [
                learning_spec(
                    game,
                    seed,
                    system,
                    agents[system],
                    random_play=(system, seed) == ("ga3c", 1),  # the same random episodes for every run
                    **network_of(game),
                    **QUICK,
                )
                for system in ("ga3c", "a3c")
            ]
        runs = [table_3.training(budget, game, seed, rate) for rate in table_3.LEARNING_RATES.values()]
        return [*runs, run_spec(game, seed, "a3c", **{**runs[0].given, "num_agents": agents["a3c"]})]

    def dimensions(self, spec):
        return {"label": f"{SYSTEMS[spec.system]}, learning rate {spec.config.learning_rate:g}"}

    def claims(self, table):
        return [self._claim(game, part) for game, part in table.parts("game")]

    def _claim(self, game: str, part: Measurements) -> Claim:
        groups = [{"label": part.select(system=name).names("label")[0]} for name in ("GA3C", "A3C")]
        pairs = part.pairs(FINAL, groups[0], groups[1])
        learned = has_learned(part, [part.select(**where).numbers(FINAL) for where in groups], FINAL)
        missing, machines, speed = part.timed(pairs)
        guards = [missing, machines, Guard(TOO_SHORT, not learned), speed, *part.unfair_to_a3c]
        test = above(pairs.difference())
        return self.claim(game, test, guards, game=game, name=game_title(game))

    def reach(self, part):
        """Return the score a quarter of the way from the random policy to the paper's score."""
        random = random_score(part)
        paper = papers_score(part)
        return None if random is None or paper is None else random + (paper - random) / 4

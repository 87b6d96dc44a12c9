"""Environments other than Atari, not in the paper: score of GA3C, A3C and A2C against agent steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ga3c_tf.reproduce.figures.figure import Added, Figure
from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.figures.metrics import EVALUATED, FINAL, evaluations, first_score, rolling_scores
from ga3c_tf.reproduce.figures.normalized import RANDOM_POLICY_CELL, has_learned, random_score
from ga3c_tf.reproduce.figures.plans import AGENTS, learning_spec, tuned_spec
from ga3c_tf.reproduce.figures.tables import MINUTES, Table, mean_of
from ga3c_tf.reproduce.measures.estimates import pooled
from ga3c_tf.reproduce.measures.verdicts import RUNS_MISSING, TOO_SHORT, Claim, Guard, above
from ga3c_tf.reproduce.runs.specs import SYSTEMS

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
    "a3c": {"num_agents": AGENTS["quick"]["a3c"]},
    "a2c": {"learning_rate": 1e-2},
}
"""Settings that override the preset by system. Learning rates are the best of three on Breakout, seed 101."""
TUNED_A3C_GAMES = ("minatar_breakout", "minatar_space_invaders")
"""Games that A3C is run on at the tuned budget; the others are left out to save hours."""
MARGIN = 10.0
"""Points of the normalized score that GA3C may be below another system and still score as much."""
LEAST_SHOWN = 1.0
"""Points above the random policy that the picture shows at least."""


def _final(part: Measurements) -> list[float]:
    """Return the scores of the final weights, or else the last scores of the training."""
    return part.numbers(EVALUATED) or part.numbers(FINAL)


def _shares(part: Measurements) -> list[np.ndarray]:
    """Return the final scores of both systems, where 0 is the random policy and 100 the mean of the better
    system; an empty list if there is nothing to compare.
    """
    groups = [_final(of_system) for _, of_system in part.parts("system")]
    random = random_score(part)
    if random is None or not all(groups):
        return []
    way = max(map(np.mean, groups)) - random
    if way <= 0 or not has_learned(part, groups, EVALUATED):
        return []
    return [100 * (np.array(group) - random) / way for group in groups]


class EnvironmentsFigure(Figure):
    """GA3C scores as much as another system by normalized scores, over the games together.

    A normalized score is 0 for the random policy and 100 for the better of the two systems. Games in which
    neither system has left the random policy say nothing and are left out.
    """

    name = "environments"
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
    smoke = ({}, {"system": "a3c"})
    measured = (rolling_scores, first_score, evaluations)
    main = (FINAL, "points")
    lines = "system"
    tables = (
        Table(
            ("game", "system"),
            {
                **RANDOM_POLICY_CELL,
                "rolling score at the end": mean_of(FINAL),
                "score of the final weights": mean_of(EVALUATED),
                **MINUTES,
            },
            where={"added": False},
        ),
    )

    def planned(self, budget, game, seed):
        if budget == "tuned":
            systems = [system for system in SYSTEMS if system != "a3c" or game in TUNED_A3C_GAMES]
            return [
                tuned_spec(game, seed, name, steps=STEPS[budget], **TUNED.get(name, {})) for name in systems
            ]
        agents = {system: AGENTS[budget].get(system, AGENTS[budget]["ga3c"]) for system in SYSTEMS}
        usual: dict[str, Any] = {"steps": STEPS[budget], "checkpoint_minutes": 15.0}
        return [learning_spec(game, seed, system, count, **usual) for system, count in agents.items()]

    def claims(self, table):
        planned = table.select(added=False)
        others = [system for system in planned.names("system") if system != "GA3C"]
        score = "that of the final weights" if table.numbers(EVALUATED) else "the rolling score at the end"
        return [self._claim(table if name == "A3C" else planned, name, score) for name in others]

    def _claim(self, table: Measurements, other: str, score: str) -> Claim:
        both = dict(table.select(system=("GA3C", other)).parts("game"))
        both = {game: part for game, part in both.items() if other in part.names("system")}
        shares = {game: _shares(part) for game, part in both.items()}
        compared = {game: share for game, share in shares.items() if share}
        looks = 2 if any(both[game].has_added for game in compared) else 1
        estimate = pooled([(x, y) for x, y in compared.values()], -MARGIN).looked(looks)
        # In a game with both systems, some runs have begun but not all have ended.
        missing = any(part.missing.applies and part.begun for part in both.values())
        nothing = not any(_final(part.select(system=other)) for part in both.values())
        guards = [Guard(RUNS_MISSING, nothing), Guard(TOO_SHORT, not compared), Guard(RUNS_MISSING, missing)]
        key = f"as-much-as-{other.lower()}"
        return self.claim(key, above(estimate), guards, other=other, score=score)

    def drawn(self, table):
        return table.select(added=False)

    def reach(self, part):
        random = random_score(part)
        return None if random is None else random + LEAST_SHOWN

"""The nine games of Table 3 by the paper's settings and by tuned ones: scores, steps, and one aggregate."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import NamedTuple

from ga3c_tf.reproduce.figures.learning import table_3
from ga3c_tf.reproduce.figures.measurements import Measurements
from ga3c_tf.reproduce.figures.metrics import EVALUATED
from ga3c_tf.reproduce.figures.normalized import normalized, papers_score, random_score
from ga3c_tf.reproduce.measures.aggregates import interquartile_mean
from ga3c_tf.reproduce.measures.curves import score_by
from ga3c_tf.reproduce.measures.text import game_title, number
from ga3c_tf.reproduce.runs.specs import NINE_GAMES


class EqualSteps(NamedTuple):
    """Rolling training scores of a game, after the agent steps that the run with the paper's settings has."""

    millions: float  # agent steps
    quick: float  # mean score by the paper's settings
    tuned: list[float]  # score of each seed by the tuned settings
    end: list[float]  # the same at the end of their runs


class NineGames(NamedTuple):
    """The runs of Table 3 with the paper's settings and with tuned ones."""

    quick: Measurements
    tuned: Measurements

    def rows(self, longer: Measurements) -> list[list[str]]:
        """Return for each game the score by all settings and the paper's.

        Args:
            longer: the runs of the paper's algorithm that are as long as the tuned ones; of some games, or
                empty.
        """
        rows = []
        for game in NINE_GAMES:
            quick, tuned, of_longer = (part.select(game=game) for part in (*self, longer))
            row = [game_title(game), number(random_score(tuned)), _score(quick), _score(of_longer)]
            row += [_score(tuned), number(papers_score(tuned)), table_3.percent(tuned)]
            rows.append(row)
        return rows

    def after_equal_steps(self) -> dict[str, EqualSteps]:
        """Return the scores after equal steps by game."""
        games = {}
        for game in NINE_GAMES:
            parts = (self.quick.select(game=game), self.tuned.select(game=game))
            quick, tuned = ([run.curve for run in part.finished] for part in parts)
            if not quick or not tuned:  # all runs diverged
                continue
            steps = min(of_seed["agent_steps"][-1] for of_seed in quick)
            there = [[score_by(of_seed, steps, "agent_steps") for of_seed in runs] for runs in (quick, tuned)]
            ends = [of_seed["rolling_score"][-1] for of_seed in tuned]
            games[game] = EqualSteps(steps / 1e6, statistics.mean(there[0]), there[1], ends)
        return games

    def better(self) -> list[str]:
        """Return the games in which every tuned seed is above the paper's settings after equal steps."""
        return [game for game, scored in self.after_equal_steps().items() if min(scored.tuned) > scored.quick]

    def below_random(self) -> list[str]:
        """Return the games in which the tuned agent scores less than the random policy."""
        return [game for game, share in shares(self.tuned).items() if share < 0]

    def published(self, method: str) -> float:
        """Return the same as `aggregate` of a published method, by our scores of the random policy."""
        parts = [part for _, part in self.tuned.select(game=NINE_GAMES).parts("game")]
        printed = [part.papers("published", method=method) for part in parts]
        shares = map(normalized, parts, printed)
        return interquartile_mean([share for share in shares if share is not None])


def _score(part: Measurements) -> str:
    """Return the mean score of the runs that were evaluated, or '-'."""
    scores = part.numbers(EVALUATED)
    return number(statistics.mean(scores) if scores else None)


def shares(table: Measurements) -> dict[str, float]:
    """Return the normalized score of the games that have one: 1 for the paper's GA3C."""
    every = {game: table_3.share(table.select(game=game)) for game in NINE_GAMES}
    return {game: share for game, share in every.items() if share is not None}


def aggregate(table: Measurements) -> float:
    """Return the interquartile mean over the nine games of the normalized score."""
    return interquartile_mean(list(shares(table).values()))


def span(values: Iterable[float]) -> str:
    """Return the lowest and the highest score of several seeds, such as '-0.13 to 14', or that of one."""
    ordered = sorted(map(float, values))
    return " to ".join(dict.fromkeys(map(number, (ordered[0], ordered[-1]))))

"""The table of the published weights, with their scores beside the paper's."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures.normalized import PAPERS
from ga3c_tf.reproduce.measures.random_policy import RANDOM_POLICY
from ga3c_tf.reproduce.measures.text import number, table
from ga3c_tf.reproduce.results.folder import ResultsFolder
from ga3c_tf.reproduce.runs.specs import GAMES
from ga3c_tf.trained.weights import CARD, SCORE

AGAIN = "again.csv"
"""File with further evaluations of the weights beside it, with other seeds than those of their cards, and
without sticky actions where its column `repeat_action_probability` is 0.
"""
EPISODES = 100
"""Episodes of an evaluation, unless its cell has another number."""
HEADER = (
    "weights",
    f"mean score of {EPISODES} episodes [95 % interval]",
    "other evaluations",
    "without sticky actions, up to 30 no-ops at the start",
    "million agent steps",
    "minutes",
    "random policy",
    "GA3C, 1 day on a GPU (paper)",
)
NAMES = {env_id: game for game, env_id in GAMES.items()}


class Score(NamedTuple):
    """The mean score of an evaluation and its 95 % interval over episodes: not-a-number for one episode."""

    episodes: int
    mean: float
    low: float
    high: float

    @property
    def text(self) -> str:
        """The mean, with the number of episodes if it is unusual."""
        return number(self.mean) + f" ({self.episodes} episodes)" * (self.episodes != EPISODES)

    @property
    def interval(self) -> str:
        """The interval, if there is one, after a space."""
        return "" if math.isnan(self.low) else f" [{number(self.low)}, {number(self.high)}]"


def rows(folder: ResultsFolder, link: str) -> list[str]:
    """Return the lines of the table of the weights in the folder; [] if none have a score.

    Args:
        folder: the results folder, with weights/.
        link: link to weights/ from the page with the table.

    Raises:
        UserError: a score.json or `AGAIN` is damaged.
    """
    weights = folder.path / "weights"
    again, without_sticky = _again(weights / AGAIN)
    papers = [record for record in folder.paper() if (record.table, record.method) == ("scores", PAPERS)]
    of_paper = {record.game: record.value for record in papers}
    by_env_id = {}
    for file in weights.glob(f"*/{SCORE}"):
        env_id, evaluations, training = _evaluated(file, again.get(file.parent.name, []))
        game = NAMES.get(env_id, "")
        random = RANDOM_POLICY[game].mean if game in RANDOM_POLICY else None
        scores = _scores(file.parent, evaluations, link, random)
        played = without_sticky.get(file.parent.name, [])
        scores.append(", ".join(score.text + score.interval for score in played) or "-")
        compared = [number(random), number(of_paper.get(game))]
        by_env_id[env_id, file.parent.name] = [file.parent.name, *scores, *training, *compared]
    return table(HEADER, [by_env_id[key] for key in sorted(by_env_id)]) if by_env_id else []


def _scores(weights: Path, evaluations: list[Score], link: str, random: float | None) -> list[str]:
    """Return the first score with its interval, as a link to the card, and the others."""
    first, *others = evaluations
    text = f"[{first.text}]({link}/{weights.name})" if (weights / CARD).exists() else first.text
    below = ", **below the random policy**" * (random is not None and first.mean < random)
    return [f"{text}{first.interval}{below}", ", ".join(score.text for score in others) or "-"]


def _evaluated(file: Path, again: list[Score]) -> tuple[str, list[Score], list[str]]:
    """Return the environment, the evaluations, that with most episodes first, and the million agent steps
    and minutes of the training.
    """
    try:
        score = json.loads(file.read_text(encoding="utf-8"))
        of_card = Score(score["episodes"], score["mean"], *(score["interval_95"] or (math.nan, math.nan)))
        evaluations = sorted([of_card, *again], key=lambda evaluation: -evaluation.episodes)
        minutes = number(score["training"]["minutes"]) if "training" in score else "-"
        return score["env_id"], evaluations, [number(score["agent_steps"] / 1e6), minutes]
    except (OSError, ValueError, KeyError, TypeError):
        remedy = "write it anew with ga3c-tf publish, or with ga3c-tf evaluate --output"
        raise UserError(f"{file} is damaged; {remedy}") from None


def _again(file: Path) -> tuple[dict[str, list[Score]], dict[str, list[Score]]]:
    """Return the further evaluations by name of the weights, and those without sticky actions; {} without
    the file.
    """
    try:
        evaluations = pd.read_csv(file)
        sticky = evaluations["repeat_action_probability"] > 0
        return _by_weights(evaluations[sticky]), _by_weights(evaluations[~sticky])
    except FileNotFoundError:
        return {}, {}
    except (OSError, ValueError, KeyError, TypeError):
        columns = "weights, episodes, mean, low, high and repeat_action_probability"
        raise UserError(f"{file} is damaged; it needs the columns {columns}") from None


def _by_weights(evaluations: pd.DataFrame) -> dict[str, list[Score]]:
    fields = [*Score._fields]
    groups = evaluations.groupby("weights", sort=False)
    return {name: [*map(Score._make, rows[fields].itertuples(index=False))] for name, rows in groups}

"""The table of the published weights, with their scores beside the paper's."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.measures.text import number, table
from ga3c_tf.reproduce.results.folder import ResultsFolder
from ga3c_tf.reproduce.runs.specs import GAMES
from ga3c_tf.trained.weights import CARD, SCORE

AGAIN = "again.csv"
"""File with further evaluations of the weights beside it, with other seeds than those of their cards."""
PAPERS = "GA3C (1 day, GPU)"
EPISODES = 100
"""Episodes of an evaluation, unless its cell has another number."""
HEADER = (
    "weights",
    f"mean score of {EPISODES} episodes [95 % interval]",
    "other evaluations",
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


class Published(NamedTuple):
    """A folder of weights with its evaluations, of which the first has most episodes."""

    env_id: str
    folder: Path
    millions: str  # agent steps of the training, in millions
    minutes: str  # minutes of the training
    scores: list[Score]

    @property
    def game(self) -> str:
        """Name of the game in the records; empty if it is none of them."""
        return NAMES.get(self.env_id, "")

    def score(self, link: str, random: Mapping[str, float]) -> str:
        """Return the first score with its interval, as a link to the card, and whether it is below the random
        policy.
        """
        shown = self.scores[0]
        has_card = (self.folder / CARD).exists()
        text = f"[{shown.text}]({link}/{self.folder.name})" if has_card else shown.text
        below = shown.mean < random.get(self.game, -math.inf)
        return f"{text}{shown.interval}{', **below the random policy**' * below}"


def rows(folder: ResultsFolder, link: str, random: Mapping[str, float]) -> list[str]:
    """Return the lines of the table of the weights in the folder; [] if none have a score.

    Args:
        folder: the results folder, with weights/.
        link: link to weights/ from the page with the table.
        random: our score of the random policy, by game.

    Raises:
        UserError: a score.json or `AGAIN` is damaged.
    """
    papers = _papers_scores(folder)
    lines = [
        [
            entry.folder.name,
            entry.score(link, random),
            ", ".join(score.text for score in entry.scores[1:]) or "-",
            entry.millions,
            entry.minutes,
            number(random.get(entry.game)),
            number(papers.get(entry.game)),
        ]
        for entry in _published(folder)
    ]
    return table(HEADER, lines) if lines else []


def _papers_scores(folder: ResultsFolder) -> dict[str, float | None]:
    records = [record for record in folder.paper() if (record.table, record.method) == ("scores", PAPERS)]
    return {record.game: record.value for record in records}


def _published(folder: ResultsFolder) -> list[Published]:
    """Return the weights that have a score, by environment."""
    weights = folder.path / "weights"
    again = _again(weights / AGAIN)
    return sorted(_evaluated(file, again.get(file.parent.name, [])) for file in weights.glob(f"*/{SCORE}"))


def _evaluated(file: Path, again: list[Score]) -> Published:
    """Return the weights beside a score.json, which have been evaluated again so."""
    try:
        score = json.loads(file.read_text(encoding="utf-8"))
        of_card = Score(score["episodes"], score["mean"], *(score["interval_95"] or (math.nan, math.nan)))
        scores = sorted([of_card, *again], key=lambda evaluation: -evaluation.episodes)
        minutes = number(score["training"]["minutes"]) if "training" in score else "-"
        return Published(score["env_id"], file.parent, number(score["agent_steps"] / 1e6), minutes, scores)
    except (OSError, ValueError, KeyError, TypeError):
        remedy = "write it anew with ga3c-tf publish, or with ga3c-tf evaluate --output"
        raise UserError(f"{file} is damaged; {remedy}") from None


def _again(file: Path) -> dict[str, list[Score]]:
    """Return the further evaluations by name of the weights; {} without the file."""
    try:
        evaluations = pd.read_csv(file).groupby("weights", sort=False)
        fields = [*Score._fields]
        return {name: [*map(Score._make, rows[fields].itertuples(index=False))] for name, rows in evaluations}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError):
        columns = "weights, episodes, mean, low and high"
        raise UserError(f"{file} is damaged; it needs the columns {columns}") from None

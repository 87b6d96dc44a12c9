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
HEADER = (
    "weights",
    "mean score [95 % interval]",
    "episodes",
    "other evaluations",
    "million agent steps",
    "minutes",
    "random policy",
    "GA3C, 1 day on a GPU (paper)",
)


class Score(NamedTuple):
    """The mean score of an evaluation and its 95 % interval over episodes: not-a-number for one episode."""

    episodes: int
    mean: float
    low: float
    high: float


class Published(NamedTuple):
    """A folder of weights with its evaluations; `shown` is the one with most episodes."""

    env_id: str
    folder: Path
    millions: str  # agent steps of the training, in millions
    minutes: str  # minutes of the training
    shown: Score
    others: list[Score]

    @property
    def game(self) -> str:
        """Name of the game in the records; empty if it is none of them."""
        return {env_id: game for game, env_id in GAMES.items()}.get(self.env_id, "")

    def name(self, link: str) -> str:
        """Return the name of the weights, as a link to their card if they have one."""
        name = self.folder.name
        return f"[{name}]({link}/{name})" if (self.folder / CARD).exists() else name

    def warning(self, random: Mapping[str, float]) -> str:
        """Return what follows the score of an agent below the random policy; empty for the others."""
        below = self.shown.mean < random.get(self.game, -math.inf)
        return ", **below the random policy**" if below else ""

    def row(self, link: str, random: Mapping[str, float], papers: Mapping[str, float | None]) -> list[str]:
        """Return the cells under `HEADER`."""
        shown = self.shown
        interval = "" if math.isnan(shown.low) else f" [{number(shown.low)}, {number(shown.high)}]"
        others = [
            number(score.mean) + f" ({score.episodes} episodes)" * (score.episodes != shown.episodes)
            for score in self.others
        ]
        return [
            self.name(link),
            f"{number(shown.mean)}{interval}{self.warning(random)}",
            str(shown.episodes),
            ", ".join(others) or "-",
            self.millions,
            self.minutes,
            number(random.get(self.game)),
            number(papers.get(self.game)),
        ]


def rows(folder: ResultsFolder, link: str, random: Mapping[str, float]) -> list[str]:
    """Return the lines of the table of the evaluations with most episodes; [] if no weights have a score.

    Args:
        folder: the results folder, with weights/.
        link: link to weights/ from the page with the table.
        random: our score of the random policy, by game.

    Raises:
        UserError: a score.json or `AGAIN` is damaged.
    """
    papers = _papers_scores(folder)
    header, lines = list(HEADER), [entry.row(link, random, papers) for entry in _published(folder)]
    if len({line[2] for line in lines}) == 1:  # a column with one value is said in its header
        header[1] = f"mean score of {lines[0][2]} episodes [95 % interval]"
        header, *lines = [[*row[:2], *row[3:]] for row in (header, *lines)]
    return table(header, lines) if lines else []


def brief_rows(folder: ResultsFolder, link: str, random: Mapping[str, float]) -> list[str]:
    """Return a table of scores only, of those that play the paper's games; see `rows`."""
    papers = _papers_scores(folder)
    lines = [
        [
            entry.name(link),
            number(random.get(entry.game)),
            f"{number(entry.shown.mean)}{entry.warning(random)}",
            number(papers[entry.game]),
        ]
        for entry in _published(folder)
        if entry.game in papers
    ]
    return table(["game", "random policy", "our agent", "GA3C (paper)"], lines) if lines else []


def _papers_scores(folder: ResultsFolder) -> dict[str, float | None]:
    """Return the scores of the paper's GA3C by game."""
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
        ends = score["interval_95"] or (math.nan, math.nan)  # the score of one episode has no interval
        scores = [Score(score["episodes"], score["mean"], *ends), *again]
        shown = max(scores, key=lambda evaluation: evaluation.episodes)
        millions = number(score["agent_steps"] / 1e6)
        minutes = number(score["training"]["minutes"]) if "training" in score else "-"
        others = [evaluation for evaluation in scores if evaluation is not shown]
        return Published(score["env_id"], file.parent, millions, minutes, shown, others)
    except (OSError, ValueError, KeyError, TypeError):
        remedy = "write it anew with ga3c-tf publish, or with ga3c-tf evaluate --output"
        raise UserError(f"{file} is damaged; {remedy}") from None


def _again(file: Path) -> dict[str, list[Score]]:
    """Return the further evaluations by name of the weights; {} without the file."""
    try:
        evaluations = pd.read_csv(file).groupby("weights", sort=False)
        return {
            name: [Score(*row) for row in rows[[*Score._fields]].itertuples(index=False)]
            for name, rows in evaluations
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError):
        columns = "weights, episodes, mean, low and high"
        raise UserError(f"{file} is damaged; it needs the columns {columns}") from None

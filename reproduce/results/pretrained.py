"""The table of the published weights, with their scores beside the paper's."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.measures.records import Record
from ga3c_tf.reproduce.measures.text import number, table
from ga3c_tf.reproduce.runs.specs import GAMES
from ga3c_tf.trained.weights import CARD, SCORE

AGAIN = "again.csv"
"""File with further evaluations of the weights beside it, with other seeds than those of their cards."""
PAPERS = "GA3C (1 day, GPU)"


class Score(NamedTuple):
    """The mean score of an evaluation, with its 95 % interval over episodes: not-a-number for one episode."""

    episodes: int
    mean: float
    low: float
    high: float

    @property
    def interval(self) -> str:
        """The interval as it stands after the mean; empty where there is none."""
        if math.isnan(self.low):
            return ""
        return f" [{number(self.low)}, {number(self.high)}]"

    def text_beside(self, shown: Score) -> str:
        """Return the mean, with the number of episodes if it is not that of the other evaluation."""
        if self.episodes == shown.episodes:
            return number(self.mean)
        return f"{number(self.mean)} ({self.episodes} episodes)"


class Published(NamedTuple):
    """A folder of weights with its evaluations."""

    env_id: str
    folder: Path
    millions: str  # agent steps of the training, in millions
    minutes: str  # minutes of the training
    evaluations: list[Score]

    @property
    def game(self) -> str:
        """Name of the game in the records; empty if it is none of them."""
        return {env_id: game for game, env_id in GAMES.items()}.get(self.env_id, "")

    @property
    def shown(self) -> Score:
        """The evaluation with most episodes."""
        return max(self.evaluations, key=lambda evaluation: evaluation.episodes)

    def name(self, link: str) -> str:
        """Return the name of the weights, as a link to their card if they have one."""
        name = self.folder.name
        return f"[{name}]({link}/{name})" if (self.folder / CARD).exists() else name

    def warning(self, random: Mapping[str, float]) -> str:
        """Return what follows the score of an agent below the random policy; empty for the others."""
        below = self.shown.mean < random.get(self.game, -math.inf)
        return ", **below the random policy**" if below else ""


def rows(weights: Path, paper: list[Record], link: str, random: Mapping[str, float]) -> list[str]:
    """Return the lines of the table; [] if no weights have a score.

    It shows the evaluation with most episodes, which is that of score.json unless `AGAIN` has one with more.

    Args:
        weights: folder with one folder for each set of weights.
        paper: the paper's records.
        link: link to `weights` from the page with the table.
        random: our score of the random policy, by game.

    Raises:
        UserError: a score.json or `AGAIN` is damaged.
    """
    papers = _papers_scores(paper)
    lines = []
    for published in _every_published(weights):
        shown = published.shown
        others = [entry.text_beside(shown) for entry in published.evaluations if entry is not shown]
        lines.append(
            [
                published.name(link),
                f"{number(shown.mean)}{shown.interval}{published.warning(random)}",
                str(shown.episodes),
                ", ".join(others) or "-",
                published.millions,
                published.minutes,
                number(random.get(published.game)),
                number(papers.get(published.game)),
            ]
        )
    header = ["weights", "mean score [95 % interval]", "episodes", "other evaluations", "million agent steps"]
    header += ["minutes", "random policy", "GA3C, 1 day on a GPU (paper)"]
    if len({row[2] for row in lines}) == 1:  # a column with one value is said in its header
        header[1] = f"mean score of {lines[0][2]} episodes [95 % interval]"
        header, *lines = [[*row[:2], *row[3:]] for row in (header, *lines)]
    return table(header, lines) if lines else []


def brief_rows(weights: Path, paper: list[Record], link: str, random: Mapping[str, float]) -> list[str]:
    """Return a table of scores only, of those that play the paper's games; see `rows`."""
    papers = _papers_scores(paper)
    lines = [
        [
            published.name(link),
            number(random.get(published.game)),
            f"{number(published.shown.mean)}{published.warning(random)}",
            number(papers[published.game]),
        ]
        for published in _every_published(weights)
        if published.game in papers
    ]
    return table(["game", "random policy", "our agent", "GA3C (paper)"], lines) if lines else []


def _papers_scores(paper: list[Record]) -> dict[str, float | None]:
    """Return the scores of the paper's GA3C by game."""
    return {
        record.game: record.value for record in paper if (record.table, record.method) == ("scores", PAPERS)
    }


def _every_published(weights: Path) -> list[Published]:
    """Return the weights that have a score, by environment.

    Raises:
        UserError: a score.json or `AGAIN` is damaged.
    """
    again = _again(weights / AGAIN)
    return sorted(_published(file, again) for file in weights.glob(f"*/{SCORE}"))


def _published(file: Path, again: Mapping[str, list[Score]]) -> Published:
    """Return the weights beside a score.json."""
    try:
        score = json.loads(file.read_text(encoding="utf-8"))
        ends = score["interval_95"] or (math.nan, math.nan)  # the score of one episode has no interval
        evaluation = Score(score["episodes"], score["mean"], *ends)
        return Published(
            score["env_id"],
            file.parent,
            number(score["agent_steps"] / 1e6),
            number(score["training"]["minutes"]) if "training" in score else "-",
            [evaluation, *again.get(file.parent.name, [])],
        )
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(
            f"{file} is damaged; write it anew with ga3c-tf publish, or with ga3c-tf evaluate --output"
        ) from None


def _again(file: Path) -> dict[str, list[Score]]:
    """Return the further evaluations by name of the weights; {} without the file.

    Raises:
        UserError: the file is damaged.
    """
    evaluations: dict[str, list[Score]] = {}
    try:
        for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines()):
            mean, low, high = (float(row[name]) for name in ("mean", "low", "high"))
            evaluations.setdefault(row["weights"], []).append(Score(int(row["episodes"]), mean, low, high))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(
            f"{file} is damaged; it needs the columns weights, episodes, mean, low and high"
        ) from None
    return evaluations

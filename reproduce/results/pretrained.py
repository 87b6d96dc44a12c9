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


def rows(
    weights: Path, paper: list[Record], link: str, random: Mapping[str, float], training: bool = True
) -> list[str]:
    """Return the lines of the table; [] if no weights have a score.

    It shows the evaluation with most episodes, which is that of score.json unless `AGAIN` has one with more.

    Args:
        weights: folder with one folder for each set of weights.
        paper: the paper's records.
        link: link to `weights` from the page with the table.
        random: our score of the random policy, by game.
        training: whether the table has the other evaluations, the agent steps and minutes of the training,
            and the score of the random policy.

    Raises:
        UserError: a score.json or `AGAIN` is damaged.
    """
    papers = {
        record.game: record.value for record in paper if (record.table, record.method) == ("scores", PAPERS)
    }
    games = {env_id: game for game, env_id in GAMES.items()}
    again = _again(weights / AGAIN)
    lines = []
    for file in sorted(weights.glob(f"*/{SCORE}")):
        try:
            score = json.loads(file.read_text(encoding="utf-8"))
            ends = score["interval_95"] or (math.nan, math.nan)  # the score of one episode has no interval
            evaluation = Score(score["episodes"], score["mean"], *ends)
            env_id = score["env_id"]
            millions = number(score["agent_steps"] / 1e6)
            minutes = number(score["training"]["minutes"]) if "training" in score else "-"
        except (OSError, ValueError, KeyError, TypeError):
            raise UserError(
                f"{file} is damaged; write it anew with ga3c-tf publish, or with ga3c-tf evaluate --output"
            ) from None
        name = file.parent.name
        every = [evaluation, *again.get(name, [])]
        shown = max(every, key=lambda entry: entry.episodes)
        others = [entry.text_beside(shown) for entry in every if entry is not shown]
        game = games.get(env_id, "")
        below = ", **below the random policy**" if shown.mean < random.get(game, -math.inf) else ""
        details = [", ".join(others) or "-", millions, minutes, number(random.get(game))]
        lines.append(
            (
                env_id,
                [
                    f"[{name}]({link}/{name})" if (file.parent / CARD).exists() else name,
                    f"{number(shown.mean)}{shown.interval}{below}",
                    str(shown.episodes),
                    *(details if training else []),
                    number(papers.get(game)),
                ],
            )
        )
    header = [
        "weights",
        "mean score [95 % interval]",
        "episodes",
        *(["other evaluations", "million agent steps", "minutes", "random policy"] if training else []),
        "GA3C, 1 day on a GPU (paper)",
    ]
    cells = [header, *(cells for _, cells in sorted(lines))]
    if len({row[2] for row in cells[1:]}) == 1:  # a column with one value is said in its header
        episodes = cells[1][2]
        cells = [[row[0], row[1], *row[3:]] for row in cells]
        cells[0][1] = f"mean score of {episodes} episodes [95 % interval]"
    return table(cells[0], cells[1:]) if lines else []


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

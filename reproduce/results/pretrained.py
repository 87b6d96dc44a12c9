"""The table of the published weights, with their scores beside the paper's, and the list of their files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.measures.records import Record
from ga3c_tf.reproduce.measures.text import number, table
from ga3c_tf.reproduce.runs.specs import GAMES
from ga3c_tf.runs.weights import FILE, SCORE

CARD = "README.md"
EPISODES = 100
"""Usual number of episodes of a published score; the table names any other."""


def rows(weights: Path, paper: list[Record], link: str, training: bool = True) -> list[str]:
    """Return the lines of the table; [] if no weights have a score.

    Args:
        weights: folder with one folder for each set of weights.
        paper: the paper's records.
        link: link to `weights` from the page with the table.
        training: whether the table has the agent steps and minutes of the training.

    Raises:
        UserError: a score.json is damaged.
    """
    found = []
    for file in sorted(weights.glob(f"*/{SCORE}")):
        try:
            score = json.loads(file.read_text(encoding="utf-8"))
            env_id = score["env_id"]
            millions = number(score["agent_steps"] / 1e6)
            ours = number(score["mean"]) + _interval(score["interval_95"])
            ours += f" ({score['episodes']} episodes)" if score["episodes"] != EPISODES else ""
            minutes = number(score["training"]["minutes"]) if "training" in score else "-"
        except (OSError, ValueError, KeyError, TypeError):
            raise UserError(
                f"{file} is damaged; write it anew with ga3c-tf publish, or with ga3c-tf evaluate --output"
            ) from None
        name = file.parent.name
        card = (file.parent / CARD).exists()
        values = [
            record.value
            for record in paper
            if (record.table, record.method) == ("scores", "GA3C (1 day, GPU)") and GAMES.get(record.game) == env_id
        ]
        theirs = number(next(iter(values), None))
        cost = [millions, minutes] if training else []
        found.append((env_id, [f"[{name}]({link}/{name})" if card else name, ours, *cost, theirs]))
    costs = ["million agent steps", "minutes"] if training else []
    header = ["weights", f"mean score of {EPISODES} episodes", *costs, "GA3C, 1 day on a GPU (paper)"]
    return table(header, [cells for _, cells in sorted(found)]) if found else []


def _interval(ends: list[float] | None) -> str:
    """Format an interval after its mean; empty for the score of one episode, which has none."""
    if ends is None:
        return ""
    low, high = ends
    return f" [{number(low)}, {number(high)}]"


def registry(weights: Path) -> str:
    """Return the text of registry.txt: the path of each file of weights, and its SHA-256.

    Args:
        weights: folder with one folder for each set of weights.
    """
    files = sorted(weights.glob(f"*/{FILE}"))
    return "".join(f"{file.relative_to(weights)} {hashlib.sha256(file.read_bytes()).hexdigest()}\n" for file in files)

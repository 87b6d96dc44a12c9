"""The card of published weights: how they were trained and scored."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from pathlib import Path

from ga3c_tf.errors import UserError
from ga3c_tf.runs.curve import Columns
from ga3c_tf.runs.sessions import commit_of, machine_of
from ga3c_tf.trained.evaluation import interval_in_words
from ga3c_tf.trained.publishing.markdown import lines_of
from ga3c_tf.trained.weights import CARD, EPISODE, ORIGIN, SCORE


def card_of(
    run: Path,
    file: Path,
    score: dict,
    curve: Columns,
    sessions: list[list[str]],
    before: dict | None,
    command: str,
    shows_episode: bool,
) -> list[str]:
    """Return the lines of the card of weights.

    Args:
        run: run folder of the agent.
        file: file of the weights.
        score: the scores, that of the random policy, and facts about the training, as `publish` returns them.
        curve: columns of curve.csv.
        sessions: the sessions of the run, as `session_rows` returns them.
        before: agent steps and minutes behind the weights that the run began with; None if these were random.
        command: command line that publishes the agent.
        shows_episode: whether the folder has `weights.EPISODE`.
    """
    content = file.read_bytes()
    ended = None
    if len(curve["time_s"]):
        ended = {"minute": curve["time_s"][-1] / 60, "agent_steps": int(curve["agent_steps"][-1])}
    return lines_of(
        "card.md",
        name=file.parent.resolve().name,
        score=score,
        interval=interval_in_words(score),
        ended=ended,
        before=before,
        origin=ORIGIN if (file.parent / ORIGIN / CARD).exists() else None,
        file=file.name,
        size=len(content),
        digest=hashlib.sha256(content).hexdigest(),
        score_file=SCORE,
        episode=EPISODE if shows_episode else None,
        command=without_places(command),
        run=shlex.quote(run.name),
        sessions=sessions,
    )


def session_rows(run: Path) -> list[list[str]]:
    """Return the sessions of a run as rows of the card."""
    try:
        return [_row(session) for session in json.loads((run / "meta.json").read_text())["sessions"]]
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{run / 'meta.json'} is missing or damaged") from None


def _row(session: dict) -> list[str]:
    """Return a session of meta.json as a row of the card."""
    versions = session["versions"]
    return [
        str(session["started"]),
        f"`{without_places(session['command'])}`",
        commit_of(session),
        machine_of(session),
        f"Python {versions['python']}, TensorFlow "
        f"{versions.get('tensorflow') or versions.get('tensorflow-cpu')}",
    ]


def without_places(command: str) -> str:
    """Return a command with only the names of files whose absolute paths it has, which tell of a machine."""
    return shlex.join(re.sub(r"(?<![^=])/.*/(?=[^/])", "", word) for word in shlex.split(command))

"""Publishes the weights of a run, with a card that says how they were trained and scored."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.files import write_aside
from ga3c_tf.runs.csv_rows import METRIC_COLUMNS, read_columns
from ga3c_tf.runs.curve import Columns, curve_of, read_curve, write_curve
from ga3c_tf.runs.folder import as_published, check_no_links, read_config
from ga3c_tf.trained.evaluation import evaluate, summary
from ga3c_tf.trained.exporting.metadata import published_score
from ga3c_tf.trained.playback import record
from ga3c_tf.trained.policies import RandomAgent, TrainedAgent
from ga3c_tf.trained.publishing import hub
from ga3c_tf.trained.publishing.card import card_of, session_rows
from ga3c_tf.trained.video import VideoNotWritten
from ga3c_tf.trained.weights import (
    BEST,
    CARD,
    CURVE,
    EPISODE,
    FILE,
    ORIGIN,
    SAFETENSORS,
    SCORE,
    check_free,
    packed_weights,
    save_weights,
)

Draw = Callable[[Columns, Config, Path], None]
"""Draws a learning curve, given with its run's settings, as picture files whose path lacks the suffix."""
EPISODE_STEPS = 300
"""Maximum number of agent steps in the animated picture: 20 seconds of Atari."""


def publish(
    run: Path,
    folder: Path,
    agent: TrainedAgent,
    episodes: int,
    seed: int,
    command: str,
    draw: Draw,
    for_hub: bool = False,
) -> dict:
    """Score the agent, with sampled actions, and write its weights with settings, score, pictures and card.

    Args:
        run: run folder of the agent.
        folder: folder to write to.
        agent: agent of the checkpoint to publish.
        episodes: number of episodes to score the agent by.
        seed: seed of the evaluation.
        command: command line that publishes the agent, for the card.
        draw: draws the learning curve.
        for_hub: whether the folder is for the Hugging Face Hub: with weights as safetensors, the Hub's
            metadata in the card, a video, and metadata.json, which says how states are computed.

    Returns:
        The scores from `evaluation.summary`, the mean score of the random policy by the same protocol under
        'random_policy', and facts about the training under 'training'.

    Raises:
        UserError: the run's meta.json, or the score of the weights that it began with, is missing or damaged;
            the run folder has a link in it; `folder` has something else in it or cannot be written; or the
            weights are over 5 MB.
    """
    check_free(folder)  # what cannot be published is refused before the evaluation
    name = SAFETENSORS if for_hub else FILE
    content = packed_weights(agent.model, name)
    before = _before(run)
    sessions = session_rows(run)
    config = as_published(read_config(run))
    score = _scored(run, agent, episodes, seed, sessions)
    curve = curve_of(run, config.rolling_episodes)
    if before:
        _count(before, score)
        curve = _after(before, read_curve(run / ORIGIN), curve, config.rolling_episodes)
    file = save_weights(folder, content, config.to_json(), score, name)
    with _writing(folder):
        _remove_earlier(folder)
        write_curve(folder, curve)
        if before:
            shutil.copytree(run / ORIGIN, folder / ORIGIN)
        draw(curve, config, folder / "curve")
        shows_episode = _record_start(agent, seed, folder / EPISODE, EPISODE_STEPS)
        card = card_of(run, file, score, curve, sessions, before, command, shows_episode)
        if for_hub:
            card = _with_replay(card, agent, folder, score, seed)
        _write_card(folder, card)
    return score


def publish_weights(weights: Path, folder: Path, agent: TrainedAgent) -> dict:
    """Write published weights to a folder for the Hugging Face Hub, with their card, scores and curve.

    Args:
        weights: folder of the weights.
        folder: folder to write to.
        agent: agent with these weights.

    Returns:
        The scores on record.

    Raises:
        UserError: `weights` has a link in it, no card or no whole scores, or was chosen by its score; or
            `folder` has something else in it, is in `weights` or cannot be written.
    """
    check_free(folder)
    if folder.resolve().is_relative_to(weights.resolve()):
        raise UserError(f"{folder} would be in the weights {weights} themselves; name another folder")
    check_no_links(weights)
    if weights.resolve().name == BEST:
        raise UserError(f"{weights} were chosen by the score that they have; publish their run")
    score = published_score(weights)
    if score is None or not (weights / CARD).is_file():
        name = SCORE if score is None else CARD
        raise UserError(f"{weights} has no {name}, as published weights have; publish its run")
    config = as_published(read_config(weights))
    card = (weights / CARD).read_text()
    with _writing(folder):
        # The file of weights is another one than the card describes.
        lines = [line for line in card.splitlines() if f"- `{FILE}`" not in line]
        _remove_earlier(folder)
        content = packed_weights(agent.model, SAFETENSORS)
        save_weights(folder, content, config.to_json(), score, SAFETENSORS)
        for picture in (*CURVE, EPISODE):
            if (weights / picture).is_file():
                shutil.copy(weights / picture, folder)
        if (weights / ORIGIN).is_dir():
            shutil.copytree(weights / ORIGIN, folder / ORIGIN)
        _write_card(folder, _with_replay(lines, agent, folder, score))
    return score


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Say that the folder cannot be written if the block raises an OSError."""
    try:
        yield
    except shutil.Error as error:
        _, file, reason = error.args[0][0]
        raise UserError(f"cannot write {file}: {reason}; publish to {folder} again") from None
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror or error}; publish to it again") from None


def _remove_earlier(folder: Path) -> None:
    """Remove what an earlier publication has left. Only a complete folder has a card."""
    for earlier in (CARD, *CURVE, EPISODE, hub.REPLAY, hub.METADATA):
        (folder / earlier).unlink(missing_ok=True)
    shutil.rmtree(folder / ORIGIN, ignore_errors=True)


def _with_replay(card: list[str], agent: TrainedAgent, folder: Path, score: dict, seed: int = 0) -> list[str]:
    """Write what the Hub has besides the weights, a video and metadata, and return the lines of its card."""
    _record_start(agent, seed, folder / hub.REPLAY, hub.REPLAY_STEPS)
    return hub.card(card, agent, folder, score)


def _write_card(folder: Path, lines: list[str]) -> None:
    write_aside(folder / CARD, "\n".join(lines) + "\n")


def _scored(
    run: Path, agent: TrainedAgent, episodes: int, seed: int, sessions: Sequence[Sequence[str]]
) -> dict:
    """Return the scores of the agent and of the random policy, and facts about the training."""
    score = summary(agent, evaluate(agent, episodes, seed), False, seed)
    score["random_policy"] = float(np.mean(evaluate(RandomAgent(run, seed), episodes, seed).scores))
    score["training"] = {
        "seed": read_config(run).seed,
        "minutes": _minutes(run, score["agent_steps"]),
        "machine": "; ".join(dict.fromkeys(machine for *_, machine, _ in sessions)),
        "commits": list(dict.fromkeys(commit for _, _, commit, *_ in sessions)),
    }
    return score


def _before(run: Path) -> dict | None:
    """Return the agent steps and minutes behind the weights a run began with; None if these were random."""
    if not (run / ORIGIN).is_dir():
        return None
    check_no_links(run)
    try:
        score = json.loads((run / ORIGIN / SCORE).read_text())
        return {"agent_steps": int(score["agent_steps"]), "minutes": score["training"]["minutes"]}
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{run / ORIGIN / SCORE} is missing or damaged") from None


def _count(before: dict, score: dict) -> None:
    """Add the training of the weights that the run began with to that in `score`."""
    score["agent_steps"] += before["agent_steps"]
    minutes = (before["minutes"], score["training"]["minutes"])
    score["training"]["minutes"] = None if None in minutes else round(sum(minutes), 1)


def _after(before: dict, earlier: Columns, curve: Columns, window: int) -> Columns:
    """Return the curve of the weights that a run began with, up to their checkpoint, continued by the run's
    own curve.

    The first points of the run are left out, because its rolling score is not over `window` episodes yet.
    """
    curve = {name: column[curve["episodes"] >= window] for name, column in curve.items()}
    led = {name: column[earlier["agent_steps"] <= before["agent_steps"]] for name, column in earlier.items()}
    add = {
        "time_s": 60 * (before["minutes"] or 0),
        "agent_steps": before["agent_steps"],
        "episodes": led["episodes"].max(initial=0),
        "rolling_score": 0,
    }
    return {name: np.concatenate([led[name], column + add[name]]) for name, column in curve.items()}


def _minutes(run: Path, agent_steps: int) -> float | None:
    """Return the minutes of training after which a run had made `agent_steps`; None if it logged nothing."""
    metrics = read_columns(run / "metrics.csv", METRIC_COLUMNS)
    times = metrics["time_s"]
    steps = metrics["agent_steps"]
    return round(float(np.interp(agent_steps, steps, times)) / 60, 1) if len(times) else None


def _record_start(agent: TrainedAgent, seed: int, file: Path, most_steps: int) -> bool:
    """Record the start of an episode in `file`; return whether the environment draws pictures.

    Raises:
        VideoNotWritten: `file` cannot be written.
    """
    agent.seed_actions(seed)  # the animated picture and the video show the same episode
    try:
        record(agent, 1, seed, file, most_steps)
    except VideoNotWritten:
        raise
    except UserError:
        file.unlink(missing_ok=True)
        return False
    return True

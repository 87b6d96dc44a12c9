"""Weights that are handed on, with a card that says how they were trained and how they were scored."""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path

import numpy as np

from ga3c_tf.config import Config, UserError
from ga3c_tf.evaluate import TrainedAgent, evaluate, summary
from ga3c_tf.run_folder import read_config, write_aside
from ga3c_tf.weights import FILE, SCORE, check_free, save_weights
from reproduce.runs import Columns, read_curve, write_curve
from reproduce.text import table


def publish(run: Path, folder: Path, agent: TrainedAgent, episodes: int, seed: int, command: str) -> dict:
    """Scores the agent, with sampled actions, and writes its weights with settings, score, learning curve and card.

    Args:
        run: the run folder that the agent is from.
        folder: to write to.
        agent: of the checkpoint to publish.
        episodes: to score it by.
        seed: of the evaluation.
        command: of this, for the card.

    Returns:
        What `evaluate.summary` says.

    Raises:
        UserError: the run's meta.json is damaged, the folder has something else in it or cannot be written, or the
            weights are over 5 MB.
    """
    check_free(folder)
    try:
        sessions = json.loads((run / "meta.json").read_text())["sessions"]
        [dict(session) for session in sessions]
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{run / 'meta.json'} is missing or damaged") from None
    config = read_config(run).replace(run_dir=None)
    score = summary(agent, evaluate(agent, episodes, seed), False, seed)
    save_weights(folder, agent.model, config.to_json(), score)
    write_curve(run, folder, config.rolling_episodes)
    curve = read_curve(folder)
    _plot(curve, config, folder / "curve")
    write_aside(folder / "README.md", "\n".join(_card(run, folder, config, score, curve, sessions, command)) + "\n")
    return score


def _plot(curve: Columns, config: Config, stem: Path) -> None:
    from reproduce import plots

    label = f"mean of the last {config.rolling_episodes} episodes of training, seed {config.seed}"
    plots.score_curves({config.env_id: {label: [curve]}}, stem)


def _card(
    run: Path, folder: Path, config: Config, score: dict, curve: Columns, sessions: list[dict], command: str
) -> list[str]:
    """The lines of the card."""
    low, high = score["interval_95"]
    content = (folder / FILE).read_bytes()
    rows = [
        [
            session["started"],
            f"`{session['command']}`",
            str(session["commit"])[:12] + (", changed" if session["dirty"] else ""),
            f"{session['cores']} cores of {session['cpu']}, {session['device']}",
            f"Python {session['versions'].get('python')}, TensorFlow "
            f"{session['versions'].get('tensorflow') or session['versions'].get('tensorflow-cpu')}",
        ]
        for session in sessions
    ]
    return [
        f"# {folder.name}: {score['env_id']}",
        "",
        f"Mean raw score **{score['mean']:.2f}** (95 % interval {low:.2f} to {high:.2f}, standard deviation "
        f"{score['std']:.2f}, median {score['median']:.1f}) after {score['agent_steps']:,} agent steps.",
        "",
        f"- How it was scored: {score['protocol']}. Scores: {', '.join(f'{each:g}' for each in score['scores'])}.",
        f"- How it was trained: the sessions below, all of them, seed {config.seed}; `config.json` has every setting."
        f"{_times(curve, score['agent_steps'])}",
        f"- `{FILE}`: {len(content):,} bytes, float32, the network's weights in its own order, without the optimizer's "
        f"statistics; SHA-256 `{hashlib.sha256(content).hexdigest()}`. `{SCORE}` has the score's numbers.",
        f"- Written by `{command}`, from the run folder {shlex.quote(run.name)}.",
        "",
        *table(["session", "command", "commit", "machine", "versions"], rows),
        "",
        "![Score against time and against agent steps](curve.svg)",
    ]


def _times(curve: Columns, agent_steps: int) -> str:
    """When these weights were reached, and how long the run went on."""
    if not len(curve["time_s"]):
        return ""
    reached = np.interp(agent_steps, curve["agent_steps"], curve["time_s"]) / 60
    return (
        f" These weights are from minute {reached:.0f} of training; the run's last episode ended in minute "
        f"{curve['time_s'][-1] / 60:.0f}, at {int(curve['agent_steps'][-1]):,} agent steps."
    )

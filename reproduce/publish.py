"""Weights that are handed on, with a card that says how they were trained and how they were scored."""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path

from ga3c_tf.config import UserError
from ga3c_tf.evaluate import TrainedAgent, evaluate, summary
from ga3c_tf.run_folder import read_config, write_aside
from ga3c_tf.weights import FILE, SCORE, check_free, save_weights
from reproduce.text import table


def publish(run: Path, folder: Path, agent: TrainedAgent, episodes: int, seed: int, command: str) -> dict:
    """Scores the agent, with sampled actions, and writes its weights with settings, score and card.

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
    score = summary(agent, evaluate(agent, episodes, seed), False, seed)
    save_weights(folder, agent.model, read_config(run).replace(run_dir=None).to_json(), score)
    write_aside(folder / "README.md", "\n".join(_card(run, folder, score, sessions, command)) + "\n")
    return score


def _card(run: Path, folder: Path, score: dict, sessions: list[dict], command: str) -> list[str]:
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
        "- How it was trained: the sessions below, all of them; `config.json` has every setting.",
        f"- `{FILE}`: {len(content):,} bytes, float32, the network's weights in its own order, without the optimizer's "
        f"statistics; SHA-256 `{hashlib.sha256(content).hexdigest()}`. `{SCORE}` has the score's numbers.",
        f"- Written by `{command}`, from the run folder {shlex.quote(run.name)}.",
        "",
        *table(["session", "command", "commit", "machine", "versions"], rows),
    ]

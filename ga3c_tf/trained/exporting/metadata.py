"""Metadata of an exported network: how a program makes states for it, and what its outputs mean."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ga3c_tf import __version__
from ga3c_tf.config import Config
from ga3c_tf.config.declaration import Q_LEARNING
from ga3c_tf.environments.environment import make_environment
from ga3c_tf.errors import UserError
from ga3c_tf.host.process_state import WorkingFolder
from ga3c_tf.runs.folder import as_published
from ga3c_tf.runs.sessions import commit_of, read_sessions
from ga3c_tf.trained.weights import BEST, SCORE, file_of

if TYPE_CHECKING:
    from ga3c_tf.trained.policies import TrainedAgent

PREPROCESSING = {
    "standard": {
        "resize": "84x84, OpenCV INTER_AREA, of the gray frame",
        "first_state": "the first frame repeated",
        "same_as": "gymnasium.wrappers.AtariPreprocessing and FrameStackObservation(padding_type='reset')",
    },
    "nvlabs": {
        "resize": "84x84, Pillow BILINEAR, after the frame's own minimum to maximum is stretched to 0 to 255",
        "first_state": "frames of no-op steps until the stack is full",
        "same_as": "Environment.py of github.com/NVlabs/GA3C",
    },
}
GRAY = "gray levels of the emulator, 0.299 R + 0.587 G + 0.114 B"
FIGURES = ("mean", "std", "interval_95", "episodes", "protocol")
"""What metadata takes over of the scores."""


def describe_agent(agent: TrainedAgent, score: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the metadata of an agent, for JSON.

    Args:
        agent: the agent to describe.
        score: summary of an evaluation, from `evaluation.summary`; by default that of published weights.

    Raises:
        UserError: score.json is damaged.
    """
    config = agent.config
    published = published_score(agent.folder)
    commits = _commits(agent.folder, published)
    score = score or published
    with WorkingFolder(), contextlib.closing(make_environment(config)) as environment:
        states: Any = environment.observation_space
        actions: Any = environment.action_space
        return {
            "environment": config.env_id,
            "actions": _action_meanings(environment, int(actions.n)),
            "inputs": {
                "states": {"dtype": states.dtype.name, "shape": ["batch", *states.shape]},
                **_carry_input(agent),
            },
            "outputs": {**_outputs(config, int(actions.n)), **_carry_output(agent)},
            "preprocessing": {**_observations(config, environment), "scaling": _scaling(agent)},
            "algorithm": config.algorithm,
            "system": config.system,
            "network": config.network if ":" in config.network else agent.model.network.name,
            "training": {
                "seed": config.seed,
                "agent_steps": score["agent_steps"] if score else agent.agent_steps,
                "checkpoint": agent.checkpoint,
                "initial_weights": as_published(config).initial_weights,
                "commits": commits,
            },
            "score": _figures(score),
            "ga3c_tf": __version__,
        }


def _carry_input(agent: TrainedAgent) -> dict[str, Any]:
    """Describe the carry that a network with memory takes."""
    initial = agent.model.initial_carry
    if not len(initial):
        return {}
    meaning = "carry after the state before, in each row; at the start of an episode the initial one"
    shape = ["batch", len(initial)]
    return {"carry": {"dtype": "float32", "shape": shape, "meaning": meaning, "initial": initial.tolist()}}


def _carry_output(agent: TrainedAgent) -> dict[str, Any]:
    """Describe the carry that a network with memory gives."""
    size = len(agent.model.initial_carry)
    if not size:
        return {}
    return {
        "next_carry": {"dtype": "float32", "shape": ["batch", size], "meaning": "carry after these states"}
    }


def _outputs(config: Config, actions: int) -> dict[str, Any]:
    """Describe the outputs of an exported network, as `network_files` gives them."""

    def output(meaning: str, *sizes: int) -> dict[str, Any]:
        return {"dtype": "float32", "shape": ["batch", *sizes], "meaning": meaning}

    value = _value_meaning(config)
    if config.algorithm in Q_LEARNING:
        return {
            "policy": output("1 for the action with the highest Q, 0 for the others", actions),
            "value": output(f"the highest Q: {value}"),
            "q_values": output(f"for each action, {value}", actions),
        }
    return {"policy": output("action probabilities", actions), "value": output(value)}


def _action_meanings(environment: gymnasium.Env, count: int) -> list[str]:
    """Return the name of each action, or the environment's own number for it if it has no names.

    A wrapper may have other actions than the game that has the names.
    """
    try:
        names = list(environment.get_wrapper_attr("get_action_meanings")())
    except AttributeError:
        names = []
    inner = environment.env if isinstance(environment, gymnasium.Wrapper) else environment
    first = int(getattr(inner.action_space, "start", 0))
    return names if len(names) == count else [str(first + action) for action in range(count)]


def _value_meaning(config: Config) -> str:
    clipped = ", of rewards clipped to [-1, 1]" if config.clip_rewards else ""
    return f"expected return, discounted by {config.gamma:g} at each step{clipped}"


def _observations(config: Config, environment: Any) -> dict[str, Any]:
    """Describe how states are made from the observations of the emulator or the environment."""
    if not isinstance(environment, gymnasium.Wrapper):
        return _atari(config)
    observed = environment.env.observation_space
    if environment.observation_space.dtype == np.uint8:
        observation = ", ".join(["as the environment gives it, as uint8", *_changes(environment)])
    elif isinstance(observed, spaces.Box) and observed.dtype in (np.uint8, np.bool_):
        divided = f"divided by {max(1.0, float(observed.high.max())):g}, as float32"
        observation = ", ".join([divided, *_changes_of_shape(environment)])
    else:
        divided = (
            ", with bytes divided by their highest value" if not isinstance(observed, spaces.Box) else ""
        )
        observation = f"flattened to a vector of float32, as gymnasium.spaces.flatten does{divided}"
    return {"observation": observation, "observation_space": str(observed)}


def _changes(environment: Any) -> list[str]:
    """Describe the changes to the environment's images: the position of channels and scale of gray levels."""
    observed = environment.env.observation_space
    states = environment.observation_space
    changes = _changes_of_shape(environment)
    times = int(states.high.max()) // max(1, int(observed.high.max()))
    if times > 1:
        changes.append(f"times {times}")
    return changes


def _changes_of_shape(environment: Any) -> list[str]:
    """Describe how the shape of a state differs from that of an observation."""
    observed = environment.env.observation_space.shape
    states = environment.observation_space.shape
    if observed == states:
        return []
    if len(states) == 1:
        return ["flattened"]
    added = {2: "a channel axis added", 4: "the frames of the stack as channels"}
    return [added.get(len(observed), "channels moved to the last axis")]


def _atari(config: Config) -> dict[str, Any]:
    pools = config.preprocessing == "standard" and config.frame_skip > 1
    return {
        "frame_skip": config.frame_skip,
        "frame": (
            f"{GRAY}; {'the maximum of the last two raw frames' if pools else 'the last raw frame'} of a step"
        ),
        **PREPROCESSING[config.preprocessing],
        "frame_stack": config.frame_stack,
        "stack_order": "last axis, newest frame last",
        "repeat_action_probability": config.repeat_action_probability,
        "noop_max": config.noop_max,
        "full_action_space": config.full_action_space,
    }


def _scaling(agent: TrainedAgent) -> str:
    """Describe how the network scales its states. Networks do this themselves, so that programs need not."""
    config = agent.config
    if ":" in config.network:
        return "inside the model, by a network of the user's own"
    if config.normalize_observations:
        return "inside the model: (x - mean) / deviation, clipped to +-5; both are among the weights"
    if "rescale" not in {layer.name for layer in agent.model.network.layers}:
        return "none"
    return f"inside the model: {'x / 255' if config.normalize_images else 'x / 128 - 1'}"


def published_score(folder: Path) -> dict[str, Any] | None:
    """Return the scores of the weights in a folder; None if it has none, or is no folder of weights.

    The score of the best evaluated weights is the one by which they were chosen, so it is no score of theirs.

    Raises:
        UserError: they are damaged.
    """
    file = folder / SCORE
    # In a run folder it may be the score of anything.
    if folder.resolve().name == BEST or not file_of(folder) or not file.exists():
        return None
    try:
        score = json.loads(file.read_text())
        for name in (*FIGURES, "env_id"):
            score[name]
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{file} is damaged") from None
    return score


def _commits(folder: Path, score: dict[str, Any] | None) -> list[str]:
    """Return the commits that a run was trained with; an empty list if they are not recorded."""
    commits = list(dict.fromkeys(commit_of(session) for session in read_sessions(folder)))
    return commits or ((score or {}).get("training") or {}).get("commits", [])


def _figures(score: dict[str, Any] | None) -> dict[str, Any] | None:
    return {name: score[name] for name in FIGURES} if score else None

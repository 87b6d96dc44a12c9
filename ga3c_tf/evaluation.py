"""Evaluation of trained agents and of the random policy: raw scores over whole episodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ga3c_tf.config import MOST_EPISODE_STEPS, Config
from ga3c_tf.console import warn
from ga3c_tf.environments.environment import describe_environment
from ga3c_tf.errors import UserError
from ga3c_tf.intervals import mean_interval
from ga3c_tf.model.model import Model
from ga3c_tf.runs import weights
from ga3c_tf.runs.checkpoints import Checkpoints
from ga3c_tf.runs.folder import read_config
from ga3c_tf.words import counted
from ga3c_tf.workers.evaluation_processes import EvaluationProcesses

PARALLEL = 10
"""Number of environments stepped in parallel. It is fixed, so that a seed gives the same scores on every machine."""
CLOSE_SECONDS = 10.0
"""Seconds that the environments together may take to close after the last episode."""
ACTIONS = 1
"""Key of the random stream of the actions. Without it, an environment of the same seed would have the same stream."""


@dataclass(frozen=True)
class Evaluation:
    """Scores of whole episodes.

    Attributes:
        scores: raw score of each episode.
        cut: number of episodes that were cut off after `most_steps` agent steps.
        most_steps: maximum number of agent steps in an episode.
    """

    scores: list[float]
    cut: int
    most_steps: int


class TrainedAgent:
    """The policy of a run's checkpoint, or of published weights.

    Args:
        run: a run folder, or a folder of weights that `weights.save_weights` wrote.
        checkpoint: 'best', 'latest' or the agent steps of a checkpoint; it must be 'best' for a folder of weights.
        greedy: whether to take the most probable action instead of sampling one.
        seed: seed of the sampled actions.
        device: TensorFlow device, as `configure_device` returns it.
        warn: called with one line about a problem that was dealt with.
        changes: settings that replace the run's, such as names of functions in this program.

    Attributes:
        folder: `run` as a path.
        config: the run's settings, for whole games (`terminal_on_life_loss` off).
        model: the model, with the checkpoint's weights.
        agent_steps: agent steps of the checkpoint.
        checkpoint: description of the checkpoint in words.

    Raises:
        UserError: `run` is not a run folder, or the checkpoint does not exist or belongs to another network.
    """

    def __init__(
        self,
        run: Path | str,
        checkpoint: str | int,
        greedy: bool,
        seed: int,
        device: str,
        warn: Callable[[str], None],
        changes: Mapping[str, Any] = MappingProxyType({}),
    ):
        self.folder = Path(run)
        config = read_config(run, "playing", warn)
        self.config: Config = config.replace(**changes, terminal_on_life_loss=False)
        spec = describe_environment(self.config)
        in_float32 = self.config.replace(dtype_policy="float32")  # the same scores and exports on every processor
        self.model = Model(in_float32, spec.state_shape, spec.state_dtype, spec.num_actions, seed, device=device)
        self.agent_steps: int
        self.checkpoint: str
        if weights.file_of(self.folder):
            if checkpoint != "best":
                raise UserError(f"{run} has weights, and no checkpoints to choose from; leave --checkpoint out")
            self.agent_steps = weights.load_weights(self.folder, self.model)
            self.checkpoint = "published"
        else:
            checkpoints = Checkpoints(self.folder, self.model.checkpoint_objects(), warn)
            self.agent_steps = checkpoints.restore(checkpoint)["agent_steps"]
            self.checkpoint = _in_words(checkpoint, self.agent_steps, checkpoints.best())
        self._greedy = greedy
        self.seed_actions(seed)

    def seed_actions(self, seed: int) -> None:
        """Restart the random stream of the sampled actions from `seed`."""
        self._rng = _actions_of(seed)

    def act(self, states: np.ndarray) -> np.ndarray:
        """Return actions int64 [B] for states [B, *state_shape]."""
        policy, _, _ = self.model.predict(states)
        if self._greedy:
            return policy.argmax(axis=1)
        cumulative = policy.cumsum(axis=1)
        draws = self._rng.random(len(policy))[:, None] * cumulative[:, -1:]
        return np.minimum((cumulative <= draws).sum(axis=1), policy.shape[1] - 1)


def _in_words(wanted: str | int, loaded: int, best: int | None) -> str:
    """Return which checkpoint was loaded, in words.

    The latest checkpoint stands in for the best one if none has a score or the best one is damaged.

    Args:
        wanted: 'best', 'latest' or agent steps.
        loaded: agent steps of the loaded checkpoint.
        best: agent steps of the checkpoint with the best rolling score; None if there is none.
    """
    if wanted == "best" and loaded == best:
        return "best (by rolling score)"
    return "latest" if wanted in ("best", "latest") else str(loaded)


class RandomAgent:
    """The random policy in a run's environment: uniformly random actions, as a baseline for scores.

    Args:
        run: a run folder; it needs no checkpoint.
        seed: seed of the actions.

    Attributes:
        config: the run's settings, for whole games (`terminal_on_life_loss` off).
        agent_steps: 0, since nothing was trained.
        checkpoint: None, since there is no trained policy.

    Raises:
        UserError: `run` is not a run folder, or its environment does not exist.
    """

    checkpoint = None
    agent_steps = 0

    def __init__(self, run: Path | str, seed: int):
        self.config: Config = read_config(run, "playing").replace(terminal_on_life_loss=False)
        self._num_actions = describe_environment(self.config).num_actions
        self._rng = _actions_of(seed)

    def act(self, states: np.ndarray) -> np.ndarray:
        """Return actions int64 [B] for states [B, *state_shape]."""
        return self._rng.integers(self._num_actions, size=len(states))


def _actions_of(seed: int) -> np.random.Generator:
    """Return the random generator of the sampled actions."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(ACTIONS,)))


def evaluate(
    agent: TrainedAgent | RandomAgent, episodes: int, seed: int, most_steps: int = MOST_EPISODE_STEPS
) -> Evaluation:
    """Play whole episodes in parallel environments and return their scores.

    The number of episodes of each environment is fixed in advance, so that short episodes are not over-represented.

    Args:
        agent: the agent that plays.
        episodes: number of episodes.
        seed: seed of the environments.
        most_steps: number of agent steps after which an episode is ended.

    Raises:
        UserError: a step or reset of an environment took longer than the run's `agent_timeout`, or a reward is not
            finite.
        RuntimeError: an environment raised an error, or its process was killed.
    """
    count = min(episodes, PARALLEL)
    seeds = range(seed * PARALLEL, seed * PARALLEL + count)
    environments = EvaluationProcesses(agent.config, seeds, most_steps, seed)
    try:
        played = _play_episodes(agent, environments, episodes, count)
    except BaseException:
        environments.kill()
        raise
    _close(environments)
    cut = sum(length == most_steps and not terminated for _, length, terminated in played)
    return Evaluation([score for score, _, _ in played], cut, most_steps)


def _close(environments: EvaluationProcesses) -> None:
    """Close the environments. Whatever happens meanwhile, the scores are kept; an interruption ends the waiting."""
    try:
        killed = environments.close(CLOSE_SECONDS)
    except (KeyboardInterrupt, SystemExit):
        environments.kill()
        return
    if killed:
        warn(
            f"after the last episode, {killed} of the environments did not end within {CLOSE_SECONDS:g} s and were "
            "ended; the scores are complete"
        )


def _play_episodes(
    agent: TrainedAgent | RandomAgent, environments: EvaluationProcesses, episodes: int, count: int
) -> list[tuple[float, int, bool]]:
    """Play the episodes and return each one's score, length and whether it was terminated.

    Of n environments, environment i plays the episodes i, i + n, i + 2n and so on. Taking the episodes that end first
    would favor short ones. An environment that has played all of its episodes rests.
    """
    quota = [len(range(number, episodes, count)) for number in range(count)]
    played: list[list[tuple[float, int, bool]]] = [[] for _ in range(count)]
    scores = np.zeros(count)
    lengths = np.zeros(count, np.int64)
    begun = environments.play(dict.fromkeys(range(count)))
    states = np.stack([begun[number].state for number in range(count)])
    begins = np.zeros(count, bool)  # the order after the end of an episode begins the next one, and is no step
    while playing := [number for number in range(count) if len(played[number]) < quota[number]]:
        actions = agent.act(states)
        orders = {number: None if begins[number] else int(actions[number]) for number in playing}
        for number, outcome in environments.play(orders).items():
            states[number] = outcome.state
            scores[number] += outcome.reward
            lengths[number] += not begins[number]
            begins[number] = outcome.terminated or outcome.truncated
            if begins[number]:
                played[number].append((float(scores[number]), int(lengths[number]), outcome.terminated))
                scores[number] = lengths[number] = 0
    return [episode for episodes_of_one in played for episode in episodes_of_one]


def summary(agent: TrainedAgent | RandomAgent, evaluation: Evaluation, greedy: bool, seed: int) -> dict:
    """Return a JSON-ready summary: mean, standard deviation, median, 95 % interval, scores and protocol.

    The interval is None for one episode.
    """
    config = agent.config
    scores = evaluation.scores
    policy = [f"{agent.checkpoint} checkpoint", "most probable action" if greedy else "actions sampled"]
    protocol = [
        counted(len(scores), "whole episode"),
        *(policy if agent.checkpoint else ["uniformly random actions"]),
        f"seed {seed}",
        *([f"{evaluation.cut} of them ended after {counted(evaluation.most_steps, 'step')}"] if evaluation.cut else []),
    ]
    if config.env_id.startswith("ALE/"):
        no_ops = f"at most {counted(config.noop_max, 'no-op')}" if config.noop_max else "no no-ops"
        protocol += [
            f"frame skip {config.frame_skip}",
            f"sticky actions {config.repeat_action_probability:g}",
            f"{no_ops} at the start",
            f"{config.preprocessing} preprocessing",
        ]
    return {
        "env_id": config.env_id,
        "agent_steps": agent.agent_steps,
        "mean": float(np.mean(scores)),
        "std": float(np.std(scores, ddof=1)) if len(scores) > 1 else 0.0,
        "median": float(np.median(scores)),
        "interval_95": list(mean_interval(scores)) if len(scores) > 1 else None,
        "episodes": len(scores),
        "episodes_cut": evaluation.cut,
        "protocol": ", ".join(protocol),
        "scores": scores,
    }


def interval_in_words(result: dict) -> str:
    """Return the interval of a `summary` in words."""
    if result["interval_95"] is None:
        return "no interval for one episode"
    low, high = result["interval_95"]
    return f"95 % interval {low:.2f} to {high:.2f}"

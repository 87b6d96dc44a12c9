"""Evaluation of trained agents and of the random policy: raw scores over whole episodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ga3c_tf.config import MOST_EPISODE_STEPS
from ga3c_tf.config.declaration import Q_LEARNING
from ga3c_tf.console import counted, warn
from ga3c_tf.trained.environments import EvaluationProcesses
from ga3c_tf.trained.intervals import mean_interval
from ga3c_tf.trained.policies import ModelAgent, RandomAgent

PARALLEL = 10
"""Number of environments stepped in parallel. Fixed, so that a seed gives the same scores on any machine."""
CLOSE_SECONDS = 10.0
"""Seconds that the environments together may take to close after the last episode."""


class Episode(NamedTuple):
    """A whole episode.

    Attributes:
        score: sum of its raw rewards.
        clipped: sum of its rewards, each clipped to [-1, 1] as in a training with `clip_rewards`.
        length: number of its agent steps.
        terminated: whether the environment ended it, not a limit of its steps.
    """

    score: float
    clipped: float
    length: int
    terminated: bool


@dataclass(frozen=True)
class Evaluation:
    """Whole episodes of an agent.

    Attributes:
        episodes: what was played.
        most_steps: maximum number of agent steps in an episode.
    """

    episodes: list[Episode]
    most_steps: int

    @property
    def scores(self) -> list[float]:
        """The raw score of each episode."""
        return [episode.score for episode in self.episodes]

    @property
    def cut(self) -> int:
        """The number of episodes that were cut off after `most_steps` agent steps."""
        return sum(one.length == self.most_steps and not one.terminated for one in self.episodes)


def evaluate(
    agent: ModelAgent | RandomAgent, episodes: int, seed: int, most_steps: int = MOST_EPISODE_STEPS
) -> Evaluation:
    """Play whole episodes in parallel environments and return them.

    The number of episodes of each environment is fixed in advance, so that short episodes are not
    over-represented.

    Args:
        agent: the agent that plays.
        episodes: number of episodes.
        seed: seed of the environments.
        most_steps: number of agent steps after which an episode is ended.

    Raises:
        UserError: a step or reset of an environment took longer than the run's `agent_timeout`, or a reward
            is not finite.
        RuntimeError: an environment raised an error, or its process was killed.
    """
    count = min(episodes, PARALLEL)
    # As in training, below 2^31: NumPy's older generators take 32 bits.
    seeds = [(seed * PARALLEL + number) % 2**31 for number in range(count)]
    environments = EvaluationProcesses(agent.config, seeds, most_steps, seed)
    try:
        played = _play_episodes(agent, environments, episodes, count)
    except BaseException:
        environments.kill()
        raise
    _close(environments)
    return Evaluation(played, most_steps)


def _close(environments: EvaluationProcesses) -> None:
    """Close the environments. Whatever happens, the scores are kept; an interruption ends the waiting."""
    try:
        killed = environments.close(CLOSE_SECONDS)
    except (KeyboardInterrupt, SystemExit):
        environments.kill()
        return
    if killed:
        warn(
            f"after the last episode, {killed} of the environments did not end within {CLOSE_SECONDS:g} s "
            "and were ended; the scores are complete"
        )


def _play_episodes(
    agent: ModelAgent | RandomAgent, environments: EvaluationProcesses, episodes: int, count: int
) -> list[Episode]:
    """Play the episodes and return them.

    Of n environments, environment i plays the episodes i, i + n, i + 2n and so on. Taking the episodes that
    end first would favor short ones. An environment that has played all of its episodes rests.
    """
    quota = [len(range(number, episodes, count)) for number in range(count)]
    played: list[list[Episode]] = [[] for _ in range(count)]
    rewards: list[list[float]] = [[] for _ in range(count)]
    begun = environments.play(dict.fromkeys(range(count)))
    states = np.stack([begun[number].state for number in range(count)])
    # The order after the end of an episode begins the next one, and is no step.
    begins = np.zeros(count, bool)
    agent.begin()
    while playing := [number for number in range(count) if len(played[number]) < quota[number]]:
        actions = agent.act(states)
        orders = {number: None if begins[number] else int(actions[number]) for number in playing}
        agent.begin([number for number, action in orders.items() if action is None])
        for number, outcome in environments.play(orders).items():
            states[number] = outcome.state
            if not begins[number]:
                rewards[number].append(outcome.reward)
            begins[number] = outcome.terminated or outcome.truncated
            if begins[number]:
                played[number].append(_episode(rewards[number], outcome.terminated))
                rewards[number].clear()
    return [episode for episodes_of_one in played for episode in episodes_of_one]


def _episode(rewards: list[float], terminated: bool) -> Episode:
    clipped = float(np.clip(rewards, -1, 1).sum())
    return Episode(sum(rewards), clipped, len(rewards), terminated)


def summary(agent: ModelAgent | RandomAgent, evaluation: Evaluation, greedy: bool, seed: int) -> dict:
    """Return a JSON-ready summary: mean, standard deviation, median, 95 % interval, scores and protocol.

    The interval is None for one episode. `mean_length` is the mean number of agent steps in an
    episode, and `mean_clipped_score` the mean sum of rewards clipped to [-1, 1] as in a training with
    `clip_rewards`.
    """
    config = agent.config
    scores = evaluation.scores
    _, clipped, lengths, _ = zip(*evaluation.episodes, strict=True)
    protocol = [
        counted(len(scores), "whole episode"),
        *(_policy(agent, greedy) if agent.checkpoint else ["uniformly random actions"]),
        f"seed {seed}",
        *(
            [f"{evaluation.cut} of them ended after {counted(evaluation.most_steps, 'step')}"]
            if evaluation.cut
            else []
        ),
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
        "mean_length": float(np.mean(lengths)),
        "mean_clipped_score": float(np.mean(clipped)),
        "episodes": len(scores),
        "episodes_cut": evaluation.cut,
        "protocol": ", ".join(protocol),
        "scores": scores,
    }


def _policy(agent: ModelAgent | RandomAgent, greedy: bool) -> list[str]:
    """Return what acts, in words."""
    actions = "actions sampled"
    if greedy or agent.config.algorithm in Q_LEARNING:
        actions = "most probable action"
    if agent.epsilon:
        actions += f", or with probability {agent.epsilon:g} a random one"
    return [f"{agent.checkpoint} checkpoint", actions]


def interval_in_words(result: dict) -> str:
    """Return the interval of a `summary` in words."""
    if result["interval_95"] is None:
        return "no interval for one episode"
    low, high = result["interval_95"]
    return f"95 % interval {low:.2f} to {high:.2f}"

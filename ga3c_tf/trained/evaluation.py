"""Evaluation of trained agents and of the random policy: raw scores over whole episodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ga3c_tf.config import MOST_EPISODE_STEPS
from ga3c_tf.console import counted, warn
from ga3c_tf.trained.environments import EvaluationProcesses
from ga3c_tf.trained.intervals import mean_interval
from ga3c_tf.trained.policies import ModelAgent, RandomAgent

PARALLEL = 10
"""Number of environments stepped in parallel. Fixed, so that a seed gives the same scores on any machine."""
CLOSE_SECONDS = 10.0
"""Seconds that the environments together may take to close after the last episode."""


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


def evaluate(
    agent: ModelAgent | RandomAgent, episodes: int, seed: int, most_steps: int = MOST_EPISODE_STEPS
) -> Evaluation:
    """Play whole episodes in parallel environments and return their scores.

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
) -> list[tuple[float, int, bool]]:
    """Play the episodes and return each one's score, length and whether it was terminated.

    Of n environments, environment i plays the episodes i, i + n, i + 2n and so on. Taking the episodes that
    end first would favor short ones. An environment that has played all of its episodes rests.
    """
    quota = [len(range(number, episodes, count)) for number in range(count)]
    played: list[list[tuple[float, int, bool]]] = [[] for _ in range(count)]
    scores = np.zeros(count)
    lengths = np.zeros(count, np.int64)
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
            scores[number] += outcome.reward
            lengths[number] += not begins[number]
            begins[number] = outcome.terminated or outcome.truncated
            if begins[number]:
                played[number].append((float(scores[number]), int(lengths[number]), outcome.terminated))
                scores[number] = lengths[number] = 0
    return [episode for episodes_of_one in played for episode in episodes_of_one]


def summary(agent: ModelAgent | RandomAgent, evaluation: Evaluation, greedy: bool, seed: int) -> dict:
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

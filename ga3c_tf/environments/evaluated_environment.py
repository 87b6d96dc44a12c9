"""The environment of an evaluation, made in a process of its own. Never imports TensorFlow."""

from __future__ import annotations

from typing import Any

import gymnasium

from ga3c_tf.config import Config
from ga3c_tf.environments.environment import make_limited_environment
from ga3c_tf.environments.random_streams import EVALUATION, seed_global_generators


class WithoutInfos(gymnasium.Wrapper):
    """Drops the infos, which nobody reads: a vector environment could not send or join those of every environment."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Start an episode. Return the state."""
        state, _ = self.env.reset(seed=seed, options=options)
        return state, {}

    def step(self, action: int):
        """Take one step. Return the state, raw reward, terminated and truncated."""
        *results, _ = self.env.step(action)
        return *results, {}


def make_evaluated_environment(config: Config, most_steps: int, seed: int, number: int) -> gymnasium.Env:
    """Make one of the environments of an evaluation, and seed the process's global random generators for it.

    Args:
        config: settings of the agent's run.
        most_steps: number of agent steps after which an episode is ended.
        seed: seed of the evaluation.
        number: number of the environment.
    """
    seed_global_generators(seed, EVALUATION, number)
    return WithoutInfos(make_limited_environment(config, most_steps))

"""The environment of an evaluation, made in a process of its own. Never imports TensorFlow."""

from __future__ import annotations

import gymnasium

from ga3c_tf.config import Config
from ga3c_tf.environments.environment import make_limited_environment
from ga3c_tf.environments.random_streams import EVALUATION, seed_global_generators


def make_evaluated_environment(config: Config, most_steps: int, seed: int, number: int) -> gymnasium.Env:
    """Make one of the environments of an evaluation, and seed the process's global random generators for it.

    Args:
        config: settings of the agent's run.
        most_steps: number of agent steps after which an episode is ended.
        seed: seed of the evaluation.
        number: number of the environment.
    """
    seed_global_generators(seed, EVALUATION, number)
    return make_limited_environment(config, most_steps)

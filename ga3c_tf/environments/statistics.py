"""Mean and variance of an environment's observations, which `--normalize-observations` scales by."""

from __future__ import annotations

from typing import Any

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.environments.atari import AtariEnvironment
from ga3c_tf.environments.environment import make_environment

STEPS = 10_000
"""Of the random policy: about ten games of Pong, 4 s."""


def observation_statistics(config: Config, steps: int = STEPS) -> tuple[np.ndarray, np.ndarray]:
    """Measure the states that the random policy sees.

    The first states of an Atari episode are left out. Their stack has frames from before the game, whose differences
    from all others would be most of the variance of pixels that never change.

    Args:
        config: settings with a seed; the same ones give the same numbers.
        steps: so many steps are taken.

    Returns:
        Mean and variance of each element of a state, float32 [*state_shape], in the units of the states.
    """
    rng = np.random.default_rng([config.seed or 0, steps])
    environment: Any = make_environment(config)
    left_out = config.frame_stack if isinstance(environment, AtariEnvironment) else 0
    try:
        state, _ = environment.reset(seed=int(rng.integers(2**31)))
        total = np.zeros(state.shape)
        squares = np.zeros(state.shape)
        count = 0
        place = 0  # in the episode
        for _ in range(steps):
            if place >= left_out:
                values = state.astype(np.float64)
                total += values
                squares += np.square(values)
                count += 1
            place += 1
            state, _, terminated, truncated, _ = environment.step(int(rng.integers(environment.action_space.n)))
            if terminated or truncated:
                state, _ = environment.reset()
                place = 0
    finally:
        environment.close()
    mean = total / max(count, 1)
    variance = np.maximum(squares / max(count, 1) - np.square(mean), 0.0)
    return mean.astype(np.float32), variance.astype(np.float32)

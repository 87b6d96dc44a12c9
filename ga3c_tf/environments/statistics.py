"""Mean and variance of an environment's states, for `--normalize-observations`."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.environments.atari import AtariEnvironment
from ga3c_tf.environments.environment import make_environment
from ga3c_tf.environments.random_streams import STATISTICS, global_generators_seeded
from ga3c_tf.host.process_state import WorkingFolder
from ga3c_tf.plugins.errors import users_errors

STEPS = 10_000
"""Number of steps of the random policy: about ten games of Pong, 4 s."""
MOST_SECONDS = 60.0
"""Seconds after which no more steps are taken, in an environment of fewer than 167 steps a second."""
SAY_SECONDS = 10.0


def observation_statistics(
    config: Config, steps: int = STEPS, say: Callable[[str], None] = lambda line: None
) -> tuple[np.ndarray, np.ndarray]:
    """Measure mean and variance of the states under the random policy.

    The first `frame_stack` states of an Atari episode are not counted. Their stacks contain frames from
    before the game, which would cause most of the variance of pixels that never change during a game.

    Args:
        config: settings of the run; the same settings, including the seed, give the same result, unless a
            slow environment takes fewer steps within `MOST_SECONDS`.
        steps: number of steps to take.
        say: called with one line every `SAY_SECONDS`, and if fewer steps are taken.

    Returns:
        Mean and variance of each element of a state, each float32 [*state_shape], in the units of the states
        (squared for the variance).

    Raises:
        UserError: the environment raised an error, or an observation is outside its space; one line.
    """
    rng = np.random.default_rng([config.seed or 0, steps])
    environment: Any
    with (
        global_generators_seeded(config.seed, STATISTICS),
        WorkingFolder(),
        closing(make_environment(config)) as environment,
        users_errors(f"{config.env_id} does not work with random actions"),
    ):
        left_out = config.frame_stack if isinstance(environment, AtariEnvironment) else 0
        state, _ = environment.reset(seed=int(rng.integers(2**31)))
        total = np.zeros(state.shape)
        squares = np.zeros(state.shape)
        count = 0
        place = 0  # position in the episode, in steps
        progress = _Progress(steps, say)
        for step in range(steps):
            if count > 1 and progress.is_over(step):
                break
            if place >= left_out:
                values = state.astype(np.float64)
                total += values
                squares += np.square(values)
                count += 1
            place += 1
            state, _, terminated, truncated, _ = environment.step(
                int(rng.integers(environment.action_space.n))
            )
            if terminated or truncated:
                state, _ = environment.reset()
                place = 0
    mean = total / max(count, 1)
    variance = np.maximum(squares / max(count, 1) - np.square(mean), 0.0)
    return mean.astype(np.float32), variance.astype(np.float32)


class _Progress:
    """Says how far the steps are, and when they have taken `MOST_SECONDS`."""

    def __init__(self, steps: int, say: Callable[[str], None]):
        self._steps = steps
        self._say = say
        self._begin = time.monotonic()
        self._due = self._begin + SAY_SECONDS

    def is_over(self, step: int) -> bool:
        """Return whether no more steps should be taken after this number of them."""
        now = time.monotonic()
        if now >= self._begin + MOST_SECONDS:
            self._say(
                f"--normalize-observations: the environment is slow, so mean and deviation are of {step:,} "
                f"steps instead of {self._steps:,}, and another run of this seed may have others"
            )
            return True
        if now >= self._due:
            self._due = now + SAY_SECONDS
            self._say(
                f"--normalize-observations: step {step:,} of {self._steps:,} of the random policy; the "
                f"training begins within {self._begin + MOST_SECONDS - now:.0f} s"
            )
        return False

"""Environments whose observations are the states that the network takes.

Atari frames become uint8 (84, 84, frame_stack) with the newest frame last. Other screens and planes of 0 and
1 stay uint8. Other bytes become float32 images or vectors, and everything else becomes a float32 vector.
Rewards stay raw, actions are 0..n-1, and reaching a time limit is reported as truncated.

A state is valid until the next `step` or `reset` of its environment, which may overwrite it. Copy a state to
keep it. Importing this module loads neither OpenCV nor the emulator, so that a CartPole agent needs little
memory.
"""

from __future__ import annotations

import contextlib
import functools
import math
import multiprocessing
from typing import Any

import gymnasium
from gymnasium import spaces

from ga3c_tf.config import Config
from ga3c_tf.console import warn
from ga3c_tf.environments.atari import AtariEnvironment
from ga3c_tf.environments.ids import resolve_env_id
from ga3c_tf.environments.registered import is_made_by_class, make_passed, make_registered
from ga3c_tf.environments.states import on_one_line, state_reader
from ga3c_tf.errors import UserError
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.host.process_state import WorkingFolder
from ga3c_tf.host.processes import offspring_ends_with_program
from ga3c_tf.plugins import OBJECT, one_line, users_errors
from ga3c_tf.processes import allow_children


def make_environment(config: Config, render_mode: str | None = None) -> gymnasium.Env:
    """Make the environment that `config` names, with states as observations.

    Args:
        config: the settings; those marked 'Atari' are used for ALE ids only.
        render_mode: None, 'rgb_array' (`render()` returns uint8 (height, width, 3)) or 'human' (a window).

    Returns:
        An environment with Gymnasium's interface. `reset(seed=s)` starts the same episode whenever s is the
        same.

    Raises:
        UserError: the id is unknown, the environment cannot be made (such as for a missing package), actions
            are not Discrete, observations do not have a fixed size, or the environment does not offer the
            render mode.
    """
    allow_children()
    env_id, _ = resolve_env_id(config.env_id)
    if env_id.startswith("ALE/"):
        return AtariEnvironment(config.resolved(env_id=env_id), render_mode)
    module, _, name = env_id.rpartition(":")
    env = make_passed(env_id, render_mode) if module == OBJECT else make_registered(name, render_mode)
    try:
        with users_errors(f"{env_id} cannot be used"):  # spaces of the user's own may raise anything
            return StateEnvironment(env, env_id)
    except UserError:
        env.close()
        raise


def make_limited_environment(
    config: Config, most_steps: int, render_mode: str | None = None
) -> gymnasium.Env:
    """Make the environment of `make_environment`, with episodes truncated after `most_steps` steps.

    The limit is needed because not every environment has a time limit, and an agent may never end an episode.
    """
    return gymnasium.wrappers.TimeLimit(make_environment(config, render_mode), most_steps)


def describe_environment(config: Config) -> EnvironmentSpec:
    """Return the shape and dtype of states and the number of actions.

    The environment is made, reset and closed again. Environments other than Atari games are also tried for
    one step.

    Raises:
        UserError: an error of `make_environment`, or the environment cannot be reset or stepped, or its
            observations do not match its observation space.
    """
    with (
        offspring_ends_with_program(),
        WorkingFolder(),
        contextlib.closing(make_environment(config)) as env,
    ):
        states: Any = env.observation_space
        actions: Any = env.action_space
        stacked = 1
        if isinstance(env, StateEnvironment):
            env.try_out()
        else:
            env.reset()
            stacked = config.frame_stack
        return EnvironmentSpec(tuple(states.shape), states.dtype.name, int(actions.n), stacked)


def check_separate(config: Config) -> None:
    """Refuse a function that does not make a new environment each time: agents would share one, and its
    episodes.

    Raises:
        UserError: it returned the same environment twice, or an error of `make_environment`.
    """
    env_id, _ = resolve_env_id(config.env_id)
    if is_made_by_class(env_id):
        return
    environments = []
    for _ in range(2):
        with (
            offspring_ends_with_program(),
            WorkingFolder(),
            contextlib.closing(make_environment(config)) as environment,
        ):
            # Closed before the next one, which may need the same device.
            environments.append(environment.unwrapped)
    if environments[0] is environments[1]:
        raise UserError(
            f"{env_id} returned the same environment twice; it must make a new one each time it is called"
        )


class StateEnvironment(gymnasium.Wrapper):
    """Wraps an environment other than an Atari game: observations become states, and actions start at 0."""

    def __init__(self, env: gymnasium.Env, env_id: str):
        """Wrap `env`, which error messages call `env_id`.

        Raises:
            UserError: actions are not Discrete, or observations do not have a fixed size.
        """
        super().__init__(env)
        self._env_id = env_id
        if not isinstance(env.action_space, spaces.Discrete):
            raise UserError(
                f"{env_id} has actions {on_one_line(env.action_space)}; this needs Discrete actions (one of "
                "n), as CartPole-v1 and Acrobot-v1 have"
            )
        self._first_action = int(env.action_space.start)
        self.action_space = spaces.Discrete(int(env.action_space.n))
        self.observation_space, self._to_state = state_reader(env.observation_space, env_id)

    def try_out(self) -> None:
        """Reset and take one step, so that an environment that does not work is refused before training
        begins.

        Raises:
            UserError: the environment does not work; the message is one line.
        """
        with users_errors(f"{self._env_id} does not work as a Gymnasium environment"):
            self.reset(seed=0)
            self.step(0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Start an episode. Return the state and the environment's info."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._to_state(observation), info

    def step(self, action: int):
        """Take one step. Return the state, raw reward, terminated, truncated and the environment's info.

        Raises:
            UserError: the reward is not finite. Clipped, not-a-number would be a reward of -1.
        """
        observation, reward, terminated, truncated, info = self.env.step(int(action) + self._first_action)
        reward = float(reward)
        if not math.isfinite(reward):
            raise UserError(f"{self._env_id} gave the reward {reward}; it must be finite")
        return self._to_state(observation), reward, bool(terminated), bool(truncated), info

    def render(self):
        """Return what the environment's `render` returns.

        Raises:
            UserError: a package that the environment needs for rendering is missing.
        """
        try:
            return self.env.render()
        except gymnasium.error.DependencyNotInstalled as error:
            raise UserError(f"cannot draw: {on_one_line(error)}") from None

    def close(self) -> None:
        """Close the environment. An error is no reason to lose what it was for, and gives a line at most."""
        try:
            self.env.close()
        except (Exception, SystemExit) as error:  # an environment may raise anything, and may end the program
            if multiprocessing.parent_process() is None:  # the processes of agents would repeat it
                _warn_once(f"{self._env_id} cannot be closed: {one_line(error)}; this is ignored")


@functools.cache
def _warn_once(text: str) -> None:
    warn(text)


def modules_used(config: Config) -> list[str]:
    """Return the modules `config`'s environment imports. Loaded once, they are shared by agent processes."""
    if not config.env_id.startswith("ALE/"):
        return []
    return ["ale_py", "cv2" if config.preprocessing == "standard" else "PIL.Image"]

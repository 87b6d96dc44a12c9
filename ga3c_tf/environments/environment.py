"""Environments whose observations are the states that the network takes.

Atari frames become uint8 (84, 84, frame_stack) with the newest frame last. Other screens and planes of 0 and 1 stay
uint8. Other bytes become float32 images or vectors, and everything else becomes a float32 vector. Rewards stay raw,
actions are 0..n-1, and reaching a time limit is reported as truncated.

A state is valid until the next `step` or `reset` of its environment, which may overwrite it. Copy a state to keep it.
Importing this module loads neither OpenCV nor the emulator, so that a CartPole agent needs little memory.
"""

from __future__ import annotations

import functools
import multiprocessing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ga3c_tf.config import ATARI, SMALLEST_SCREEN, Config, option_of
from ga3c_tf.console import warn
from ga3c_tf.environments.atari import AtariEnvironment
from ga3c_tf.environments.ids import resolve_env_id
from ga3c_tf.environments.registered import make_passed, make_registered
from ga3c_tf.errors import UserError
from ga3c_tf.plugins import OBJECT, one_line


@dataclass(frozen=True)
class EnvironmentSpec:
    """Holds what the network and the shared memory need to know about an environment.

    Attributes:
        state_shape: shape of one state, without a batch axis.
        state_dtype: 'uint8' (images) or 'float32' (vectors and other images).
        num_actions: number of actions, which are 0..num_actions-1.
    """

    state_shape: tuple[int, ...]
    state_dtype: str
    num_actions: int

    @property
    def is_screen(self) -> bool:
        """Whether states are images at least as high and wide as `SMALLEST_SCREEN`."""
        return len(self.state_shape) == 3 and min(self.state_shape[:2]) >= SMALLEST_SCREEN


def make_environment(config: Config, render_mode: str | None = None) -> gymnasium.Env:
    """Make the environment that `config` names, with states as observations.

    Args:
        config: the settings; those marked 'Atari' are used for ALE ids only.
        render_mode: None, 'rgb_array' (`render()` returns uint8 (height, width, 3)) or 'human' (a window).

    Returns:
        An environment with Gymnasium's interface. `reset(seed=s)` starts the same episode whenever s is the same.

    Raises:
        UserError: the id is unknown, the environment cannot be made (such as for a missing package), actions are not
            Discrete, observations do not have a fixed size, or the environment does not offer the render mode.
    """
    env_id, _ = resolve_env_id(config.env_id)
    if env_id.startswith("ALE/"):
        return AtariEnvironment(config.replace(env_id=env_id), render_mode)
    module, _, name = env_id.rpartition(":")
    env = make_passed(env_id, render_mode) if module == OBJECT else make_registered(name, render_mode)
    try:
        return StateEnvironment(env, env_id)
    except Exception as error:  # spaces of the user's own may raise anything
        env.close()
        if isinstance(error, UserError):
            raise
        raise UserError(f"{env_id} cannot be used: {one_line(error)}") from error


def make_limited_environment(config: Config, most_steps: int, render_mode: str | None = None) -> gymnasium.Env:
    """Make the environment of `make_environment`, with episodes truncated after `most_steps` steps.

    The limit is needed because not every environment has a time limit, and an agent may never end an episode.
    """
    return gymnasium.wrappers.TimeLimit(make_environment(config, render_mode), most_steps)


def describe_environment(config: Config) -> EnvironmentSpec:
    """Return the shape and dtype of states and the number of actions.

    The environment is made, reset and closed again. Environments other than Atari games are also tried for one step.

    Raises:
        UserError: an error of `make_environment`, or the environment cannot be reset or stepped, or its observations do
            not match its observation space.
    """
    env = make_environment(config)
    states: Any = env.observation_space
    actions: Any = env.action_space
    try:
        if isinstance(env, StateEnvironment):
            env.try_out()
        else:
            env.reset()
        return EnvironmentSpec(tuple(states.shape), states.dtype.name, int(actions.n))
    finally:
        env.close()


def check_effects(env_id: str, given: Iterable[str]) -> None:
    """Refuse settings for Atari games that a user gave for another environment, where they have no effect.

    Args:
        env_id: current id of the environment, as `resolve_env_id` returns it.
        given: names of the settings that the user gave.

    Raises:
        UserError: a given setting has no effect; the message names it.
    """
    for name in given:
        if name in ATARI and not env_id.startswith("ALE/"):
            raise UserError(
                f"--{option_of(name)} has no effect on {env_id}; it is for Atari games, such as ALE/Pong-v5"
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
                f"{env_id} has actions {_one_line(env.action_space)}; this needs Discrete actions (one of "
                "n), as LunarLander-v3 or CartPole-v1 have"
            )
        self._first_action = int(env.action_space.start)
        self.action_space = spaces.Discrete(int(env.action_space.n))
        self.observation_space, self._to_state = _state_reader(env.observation_space, env_id)

    def try_out(self) -> None:
        """Reset and take one step, so that an environment that does not work is refused before training begins.

        Raises:
            UserError: the environment does not work; the message is one line.
        """
        try:
            observation, _ = self.env.reset(seed=0)
            self._check(observation, "reset")
            self._to_state(observation)
            observation, reward, _, _, _ = self.env.step(self._first_action)
            self._check(observation, "step")
            self._to_state(observation)
            float(reward)
        except UserError:
            raise
        except Exception as error:  # an environment may raise anything
            raise UserError(f"{self._env_id} does not work as a Gymnasium environment: {one_line(error)}") from error

    def _check(self, observation: Any, method: str) -> None:
        """Refuse an observation that has another shape than its space, or fractions where the space has integers."""
        space = self.env.observation_space
        if not isinstance(space, spaces.Box):
            return
        given = np.asarray(observation)
        fraction = given.dtype.kind == "f" and space.dtype.kind in "iub"
        if given.shape != space.shape or fraction:
            raise UserError(
                f"{self._env_id}: {method} gives an observation of shape {given.shape} and type {given.dtype}; "
                f"its observation_space says {space.shape} and {space.dtype}"
            )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Start an episode. Return the state and the environment's info."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._to_state(observation), info

    def step(self, action: int):
        """Take one step. Return the state, raw reward, terminated, truncated and the environment's info."""
        observation, reward, terminated, truncated, info = self.env.step(int(action) + self._first_action)
        return self._to_state(observation), float(reward), bool(terminated), bool(truncated), info

    def render(self):
        """Return what the environment's `render` returns.

        Raises:
            UserError: a package that the environment needs for rendering is missing.
        """
        try:
            return self.env.render()
        except gymnasium.error.DependencyNotInstalled as error:
            raise UserError(f"cannot draw: {_one_line(error)}") from None

    def close(self) -> None:
        """Close the environment. An error is no reason to lose what it was used for, and gives a line at most."""
        try:
            self.env.close()
        except (Exception, SystemExit) as error:  # an environment may raise anything, and may end the program
            if multiprocessing.parent_process() is None:  # the processes of agents would repeat it
                _warn_once(f"{self._env_id} cannot be closed: {one_line(error)}; this is ignored")


@functools.cache
def _warn_once(text: str) -> None:
    warn(text)


def _state_reader(space: spaces.Space, env_id: str) -> tuple[spaces.Box, Callable[[Any], np.ndarray]]:
    """Return the space of states for observations of `space`, and a function that converts observations to states.

    - Screens (bytes or bools of rank 3, or of rank 2 as one channel) become uint8, spread over 0 to 255, with channels
      last. The frames of a stack of screens (rank 4) become channels.
    - Smaller images (rank 2 or 3) with values of 0 and 1 become uint8 images.
    - Other bytes are divided by the highest value of their space, and become float32 images or vectors.
    - Other Boxes become float32 vectors.
    - All other spaces that Gymnasium can flatten become float32 vectors, one-hot where they are discrete.

    Raises:
        UserError: observations vary in size, or have no elements.
    """
    if not _is_flattenable(space) or spaces.flatdim(space) == 0:
        raise UserError(f"{env_id} has observations {_one_line(space)}; this needs ones of a fixed size, such as Box")
    vector = spaces.Box(-np.inf, np.inf, (spaces.flatdim(space),), np.float32)
    if not isinstance(space, spaces.Box):
        return vector, lambda value: _finite_vector(spaces.flatten(space, value))
    if space.dtype not in (np.uint8, np.bool_):
        return vector, _finite_vector
    states, read = _byte_reader(space)
    return states, lambda values: read(np.asarray(values, space.dtype))


def _finite_vector(values: Any) -> np.ndarray:
    """Return an observation as float32 [elements].

    Raises:
        ValueError: an element is not finite. Otherwise every update with this state would be skipped.
    """
    vector = np.asarray(values, np.float32).reshape(-1)
    if np.count_nonzero(np.isfinite(vector)) < len(vector):  # half the time of `isfinite(vector).all()`
        raise ValueError("the environment gave an observation with an element that is not finite")
    return vector


def _is_flattenable(space: spaces.Space) -> bool:
    """Return whether Gymnasium can flatten observations of `space`; it raises an error for spaces unknown to it."""
    try:
        return space.is_np_flattenable
    except NotImplementedError:
        return False


def _byte_reader(space: spaces.Box) -> tuple[spaces.Box, Callable[[np.ndarray], np.ndarray]]:
    """Return the same as `_state_reader` for a Box of bytes or bools; its function takes arrays of the Box's dtype."""
    highest = float(space.high.max())
    if len(space.shape) == 4 and min(space.shape[1:3]) >= SMALLEST_SCREEN:  # a stack of frames with channels
        frames, height, width, channels = space.shape
        box, read = _screen((height, width, frames * channels), int(highest))
        return box, lambda images: read(np.moveaxis(images, 0, 2))
    shape = {2: (*space.shape, 1), 3: space.shape}.get(len(space.shape), (space.high.size,))
    if len(shape) == 3 and shape[0] < SMALLEST_SCREEN <= min(shape[1:]):  # channels first, as Gymnasium stacks frames
        box, read = _screen((*shape[1:], shape[0]), int(highest))
        return box, lambda image: read(np.moveaxis(image, 0, -1))
    if len(shape) == 3 and min(shape[:2]) >= SMALLEST_SCREEN:
        return _screen(shape, int(highest))
    if len(shape) == 3 and highest <= 1:
        return spaces.Box(0, 1, shape, np.uint8), lambda image: image.view(np.uint8).reshape(shape)
    scale = np.float32(1 / max(1.0, highest))
    return spaces.Box(0, 1, shape, np.float32), lambda values: values.reshape(shape) * scale


def _screen(shape: tuple[int, ...], highest: int) -> tuple[spaces.Box, Callable[[Any], np.ndarray]]:
    """Return the space of states for screens [height, width, channels], and a function from screen to state.

    The network takes gray levels of 0 to 255. Screens with a lower highest value are spread over this range.
    """
    states = spaces.Box(0, 255, shape, np.uint8)
    times = np.uint8(255 // max(1, highest))
    if times == 1:
        return states, lambda image: image.reshape(shape)
    return states, lambda image: image.view(np.uint8).reshape(shape) * times


def _one_line(text: Any) -> str:
    return " ".join(str(text).split())


def modules_used(config: Config) -> list[str]:
    """Return the modules that an environment of `config` imports. Loaded once, they are shared by agent processes."""
    if not config.env_id.startswith("ALE/"):
        return []
    return ["ale_py", "cv2" if config.preprocessing == "standard" else "PIL.Image"]

"""Makes environments registered with Gymnasium, and those passed as Python functions."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
from gymnasium.envs.registration import load_env_creator

from ga3c_tf.environments.minatar import make_minatar
from ga3c_tf.errors import UserError
from ga3c_tf.plugins import KNOWN_EVERYWHERE, OBJECT, passed_object, users_errors

gymnasium.register(
    "GA3C/CartPoleMemory-v0", "ga3c_tf.environments.cartpole_memory:CartPoleMemory", max_episode_steps=500
)


def make_registered(env_id: str, render_mode: str | None, **kwargs: Any) -> gymnasium.Env:
    """Make a registered environment, without Gymnasium's checker and without warnings.

    Args:
        env_id: registered id of the environment.
        render_mode: render mode of the environment, or None.
        kwargs: further arguments of `gymnasium.make`; not used for MinAtar.

    Raises:
        UserError: the environment cannot be made, or does not offer the render mode.
    """
    with users_errors(f"{env_id} cannot be made"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if env_id.startswith("MinAtar/"):
            return make_minatar(env_id, render_mode)
        if render_mode is not None:  # an environment without rendering need not have the argument
            kwargs["render_mode"] = render_mode
        env = gymnasium.make(env_id, disable_env_checker=True, **kwargs)
    if render_mode is not None and render_mode not in env.metadata.get("render_modes", ()):
        offered = ", ".join(env.metadata.get("render_modes", ())) or "none"
        env.close()
        raise UserError(f"{env_id} has no render mode {render_mode!r}; it offers: {offered}")
    return env


def make_passed(name: str, render_mode: str | None) -> gymnasium.Env:
    """Make an environment with a function that was passed as a Python object.

    Args:
        name: name of the function in the settings.
        render_mode: passed to the function as the keyword argument `render_mode`, unless it is None.

    Raises:
        UserError: the environment cannot be made, or the function does not return a Gymnasium environment.
    """
    make = passed_object(name, "the environment")
    with users_errors(f"{name} cannot be made"):
        env = make() if render_mode is None else make(render_mode=render_mode)
    if not isinstance(env, gymnasium.Env):
        raise UserError(f"{name} returned {type(env).__name__}, which is no gymnasium.Env")
    return env


def is_made_by_class(env_id: str) -> bool:
    """Return whether the environment is made by calling a class, which makes a new one each time."""
    if env_id.startswith(KNOWN_EVERYWHERE):
        return True
    module, _, name = env_id.rpartition(":")
    make = (
        passed_object(env_id, "the environment") if module == OBJECT else gymnasium.registry[name].entry_point
    )
    return isinstance(load_env_creator(make) if isinstance(make, str) else make, type)

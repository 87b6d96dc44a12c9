"""Makes what Gymnasium has registered, and what a Python program makes by itself."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium

from ga3c_tf.environments.minatar import make_minatar
from ga3c_tf.errors import UserError
from ga3c_tf.plugins import one_line, passed_object


def make_registered(env_id: str, render_mode: str | None, **kwargs: Any) -> gymnasium.Env:
    """Make a registered environment, without checkers and without warnings.

    Raises:
        UserError: it cannot be made, or does not offer the render mode.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if env_id.startswith("MinAtar/"):
                return make_minatar(env_id, render_mode)
            if render_mode is not None:  # an environment without pictures need not know the word
                kwargs["render_mode"] = render_mode
            env = gymnasium.make(env_id, disable_env_checker=True, **kwargs)
    except Exception as error:  # whatever the maker of an environment raises
        raise UserError(f"{env_id} cannot be made: {one_line(error)}") from error
    if render_mode is not None and render_mode not in env.metadata.get("render_modes", ()):
        offered = ", ".join(env.metadata.get("render_modes", ())) or "none"
        env.close()
        raise UserError(f"{env_id} has no render mode {render_mode!r}; it offers: {offered}")
    return env


def make_passed(name: str, render_mode: str | None) -> gymnasium.Env:
    """Make an environment with the function that was passed as a Python object.

    Args:
        name: the function's name in the settings.
        render_mode: handed to the function by this name, where it is not None.

    Raises:
        UserError: it cannot be made, or what is returned is no Gymnasium environment.
    """
    make = passed_object(name, "the environment")
    try:
        env = make() if render_mode is None else make(render_mode=render_mode)
    except Exception as error:  # whatever the maker of an environment raises
        raise UserError(f"{name} cannot be made: {one_line(error)}") from error
    if not isinstance(env, gymnasium.Env):
        raise UserError(f"{name} returned {type(env).__name__}, which is no gymnasium.Env")
    return env

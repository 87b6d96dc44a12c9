"""Settings that are given as Python functions or objects: `env`, `network` and `loss`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.plugins import OBJECT, name_of
from ga3c_tf.plugins.copies import as_name_or_function

SETTING_OF = {"env": "env_id", "network": "network", "loss": "loss"}
"""Names of the arguments that may be functions, and of their settings in `Config`."""

WANTED = {
    "env": (
        "the id of an environment, a gymnasium.Env, or a function that makes one, such as "
        "lambda render_mode=None: gymnasium.make('CartPole-v1', render_mode=render_mode)"
    ),
    "network": "the name of a network, a keras.Model, or a function (state_shape, state_dtype, num_actions) "
    "that returns one",
    "loss": (
        "the name of a loss, or a function (batch, config) that returns (policy loss, value loss, entropy)"
    ),
}
"""Values of these arguments, in words."""


def by_config_name(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings under their names in `Config`, with each function or object replaced by its name.

    Raises:
        UserError: a setting is given under both of its names, or a function or object cannot be used.
    """
    for short, name in SETTING_OF.items():
        if short != name and {short, name} <= settings.keys():
            raise UserError(f"{short} and {name} are the same setting; give one of them")
    named = {SETTING_OF.get(name, name): value for name, value in settings.items()}
    for short, name in SETTING_OF.items():
        value = as_name_or_function(short, named.get(name))
        if value is not None and not isinstance(value, str):
            if not callable(value):
                raise UserError(f"{short} is of the type {type(value).__name__}; it must be {WANTED[short]}")
            value = name_of(value)
        if name in named:
            named[name] = value
    return named


def split_functions(
    config: Config, given: dict[str, Any]
) -> tuple[dict[str, Callable[..., Any]], dict[str, Any]]:
    """Split `given` into the functions that the run was trained with, and all other arguments."""
    functions = {}
    for argument, name in SETTING_OF.items():
        value = as_name_or_function(argument, given.get(argument))
        if callable(value) and getattr(config, name).startswith(f"{OBJECT}:"):
            functions[argument] = value
    return functions, {name: value for name, value in given.items() if name not in functions}

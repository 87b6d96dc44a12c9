"""Settings that are given as Python functions: `env`, `network` and `loss`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.plugins import OBJECT, name_of

SETTING_OF = {"env": "env_id", "network": "network", "loss": "loss"}
"""Names of the arguments that may be functions, and of their settings in `Config`."""

WANTED = {
    "env": (
        "the id of an environment, or a function that makes one, such as lambda: "
        "gymnasium.make('CartPole-v1')"
    ),
    "network": "the name of a network, or a function (state_shape, state_dtype, num_actions) that returns a "
    "keras.Model",
    "loss": (
        "the name of a loss, or a function (batch, config) that returns (policy loss, value loss, entropy)"
    ),
}
"""Values of these arguments, in words."""


def by_config_name(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings under their names in `Config`, with each function replaced by its name.

    Raises:
        UserError: a setting is given under both of its names, or a function cannot be used.
    """
    for short, name in SETTING_OF.items():
        if short != name and {short, name} <= settings.keys():
            raise UserError(f"{short} and {name} are the same setting; give one of them")
    named = {SETTING_OF.get(name, name): value for name, value in settings.items()}
    for short, name in SETTING_OF.items():
        value = named.get(name)
        if value is not None and not isinstance(value, str):
            if not callable(value) or _is_model(value):
                raise UserError(f"{short} is of the type {type(value).__name__}; it must be {WANTED[short]}")
            named[name] = name_of(value)
    return named


def _is_model(value: Any) -> bool:
    """Return whether a value is a Keras model, which can be called too; Keras is not imported for this."""
    keras = sys.modules.get("keras")
    return keras is not None and isinstance(value, keras.Model)


def split_functions(
    config: Config, given: dict[str, Any]
) -> tuple[dict[str, Callable[..., Any]], dict[str, Any]]:
    """Split `given` into the functions that the run was trained with, and all other arguments."""
    functions = {
        argument: given[argument]
        for argument, name in SETTING_OF.items()
        if callable(given.get(argument)) and getattr(config, name).startswith(f"{OBJECT}:")
    }
    return functions, {name: value for name, value in given.items() if name not in functions}

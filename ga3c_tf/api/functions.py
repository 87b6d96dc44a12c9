"""Settings that are given as Python functions: `env`, `network` and `loss`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.plugins import OBJECT, name_of

SETTING_OF = {"env": "env_id", "network": "network", "loss": "loss"}
"""Names of the arguments that may be functions, and of their settings in `Config`."""


def by_config_name(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings under their names in `Config`, with each function replaced by its name.

    Raises:
        UserError: a setting is given under both of its names, or a function cannot be used.
    """
    for short, name in SETTING_OF.items():
        if short != name and {short, name} <= settings.keys():
            raise UserError(f"{short} and {name} are the same setting; give one of them")
    named = {SETTING_OF.get(name, name): value for name, value in settings.items()}
    for name in SETTING_OF.values():
        value = named.get(name)
        if value is not None and not isinstance(value, str):
            named[name] = name_of(value)
    return named


def split_functions(config: Config, given: dict[str, Any]) -> tuple[dict[str, Callable[..., Any]], dict[str, Any]]:
    """Split `given` into the functions that the run was trained with, and all other arguments."""
    functions = {
        argument: given[argument]
        for argument, name in SETTING_OF.items()
        if callable(given.get(argument)) and getattr(config, name).startswith(f"{OBJECT}:")
    }
    return functions, {name: value for name, value in given.items() if name not in functions}

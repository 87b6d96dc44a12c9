"""User code in modules: `module:function` for a network or a loss, `module:Name-v0` for an environment."""

from __future__ import annotations

import importlib
import os
import sys
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ga3c_tf.config import Config
from ga3c_tf.errors import UserError, did_you_mean
from ga3c_tf.plugins.errors import users_errors
from ga3c_tf.plugins.objects import OBJECT, passed_object

PLACES = "GA3C_TF_PLACES"
"""Environment variable with folders that are searched for user modules, besides the current folder."""


def users_function(name: str, wanted_by: str) -> Callable[..., Any]:
    """Return the function called `name`, which is 'module:function' or 'object:NAME'.

    Raises:
        UserError: the function does not exist; the text names `wanted_by`, the setting that needs it.
    """
    module_name, _, function_name = name.partition(":")
    if module_name == OBJECT:
        return passed_object(name, wanted_by)
    module = import_users_module(module_name, wanted_by)
    function = getattr(module, function_name, None)
    if not callable(function):
        raise UserError(
            f"{wanted_by}: module {module_name!r} has no function {function_name!r}"
            f"{did_you_mean(function_name, dir(module))}"
        )
    return function


def import_users_module(module: str, wanted_by: str) -> types.ModuleType:
    """Import a user module, which may be in the current folder or in the folders of `PLACES`.

    Raises:
        UserError: the module cannot be imported, or has the name of one of Python's; the text names
            `wanted_by`, the setting that needs it.
    """
    places = (os.getcwd(), *filter(None, os.environ.get(PLACES, "").split(os.pathsep)))
    for place in places:
        if place not in sys.path:
            sys.path.append(place)  # last, so that nothing in it hides a module of the standard library
    os.environ["KERAS_BACKEND"] = "tensorflow"  # the module may import Keras, which reads this only once
    with users_errors(f"{wanted_by}: the module {module!r} cannot be imported"):
        imported = importlib.import_module(module)
    _check_not_hidden(module.partition(".")[0], places, wanted_by)
    return imported


def _check_not_hidden(name: str, places: Iterable[str], wanted_by: str) -> None:
    """Check that a module which was imported is not one of Python's, with a user's file of the same name.

    Raises:
        UserError: it is.
    """
    if name not in sys.stdlib_module_names and name != "test":
        return
    loaded = os.path.realpath(getattr(sys.modules[name], "__file__", None) or "")
    for file in (
        os.path.join(place, end)
        for place in places
        for end in (f"{name}.py", os.path.join(name, "__init__.py"))
    ):
        if os.path.isfile(file) and os.path.realpath(file) != loaded:
            raise UserError(
                f"{wanted_by}: Python has a module {name!r} of its own, which hides {file}; rename the file"
            )


def check_trust(config: Config, run: Path, trusted: bool) -> None:
    """Reject a run folder whose settings name code to import, unless the user trusts it.

    A run folder may come from somebody else.

    Raises:
        UserError: the settings name a module, and `trusted` is False.
    """
    named = named_code(config)
    if named and not trusted:
        raise UserError(
            f"the settings of {run} name code to run: {', '.join(named)}; if it is yours, or you have read "
            "it, add --trust-code, or from Python trust_code=True"
        )


def named_code(config: Config) -> list[str]:
    """Return the settings that name user code to import, as 'module:function' or 'module:id'."""
    settings = (config.env_id, config.network, config.loss)
    return [value for value in settings if ":" in value and not value.startswith(f"{OBJECT}:")]

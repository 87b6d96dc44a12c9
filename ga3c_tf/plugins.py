"""Modules that users name: `module:function` for a network or a loss, `module:Name-v0` for an environment."""

from __future__ import annotations

import importlib
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ga3c_tf.config import Config, did_you_mean
from ga3c_tf.errors import UserError

PLACES = "GA3C_TF_PLACES"
"""Environment variable with folders in which modules of the user are looked for, besides the current one."""


def import_users_module(module: str, wanted_by: str) -> types.ModuleType:
    """Imports the module called `module`, which may lie in the current folder or in those of `PLACES`.

    Raises:
        UserError: it cannot be imported; the text names `wanted_by`, the setting that asked for it.
    """
    for place in (os.getcwd(), *filter(None, os.environ.get(PLACES, "").split(os.pathsep))):
        if place not in sys.path:
            sys.path.append(place)  # last, so that nothing in it is taken for a module of Python's own
    os.environ["KERAS_BACKEND"] = "tensorflow"  # it may import Keras, which asks only then
    try:
        return importlib.import_module(module)
    except Exception as error:  # whatever a user's module raises
        raise UserError(f"{wanted_by}: the module {module!r} cannot be imported: {one_line(error)}") from error


def check_trust(config: Config, run: Path, trusted: bool) -> None:
    """Refuses to import what the settings of a run folder name, which may be somebody else's, without consent.

    Raises:
        UserError: they name a module, and it is not `trusted`.
    """
    named = [value for value in (config.env_id, config.network, config.loss) if ":" in value]
    if named and not trusted:
        raise UserError(
            f"the settings of {run} name code to run: {', '.join(named)}; if it is yours, or you have read it, add "
            "--trust-code"
        )


def users_function(name: str, wanted_by: str) -> Callable[..., Any]:
    """The function that `name`, 'module:function', says.

    Raises:
        UserError: there is none; the text names `wanted_by`, the setting that asked for it.
    """
    module_name, _, function_name = name.partition(":")
    module = import_users_module(module_name, wanted_by)
    function = getattr(module, function_name, None)
    if not callable(function):
        raise UserError(
            f"{wanted_by}: module {module_name!r} has no function {function_name!r}"
            f"{did_you_mean(function_name, dir(module))}"
        )
    return function


def one_line(error: BaseException) -> str:
    """An error's kind and text on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"

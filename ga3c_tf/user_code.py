"""Modules that users name: `module:function` for a network, `module:Name-v0` for an environment."""

from __future__ import annotations

import importlib
import os
import sys
import types

from ga3c_tf.config import UserError


def import_users_module(module: str, wanted_by: str) -> types.ModuleType:
    """The module called `module`, looked for in the current folder too, as `python -m` does.

    Raises:
        UserError: it cannot be imported; the text names `wanted_by`, the setting that asked for it.
    """
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.append(os.getcwd())
    try:
        return importlib.import_module(module)
    except Exception as error:  # whatever a user's module raises
        raise UserError(f"{wanted_by}: the module {module!r} cannot be imported: {one_line(error)}") from error


def one_line(error: BaseException) -> str:
    """An error's kind and text on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"

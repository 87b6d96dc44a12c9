"""Code of the user's own: `module:function` for a network or a loss, `module:Name-v0` for an environment.

A Python program may pass functions instead. They are called `object:NAME` in the settings of the run, which do not hold
them: whoever resumes such a run passes them again.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle

from ga3c_tf.config import Config
from ga3c_tf.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec

OBJECT = "object"
"""Stands for the module in the name of a function that was passed as a Python object."""
_objects: dict[str, Callable[..., Any]] = {}
KNOWN_EVERYWHERE = ("gymnasium", "ale_py", "minatar")
"""Packages whose environments a new process registers by itself."""
PLACES = "GA3C_TF_PLACES"
"""Environment variable with folders in which modules of the user are looked for, besides the current one."""


def name_of(function: Callable[..., Any]) -> str:
    """Keep a function of the user's for this process and those that it starts; return its name in the settings.

    Functions of the same name are told apart by a number.

    Raises:
        UserError: it cannot be called, or not be handed to another process.
    """
    if not callable(function):
        raise UserError(f"{function!r} is neither a name nor a function")
    called = f"{OBJECT}:{getattr(function, '__name__', type(function).__name__)}"
    names = (called if number == 1 else f"{called}-{number}" for number in itertools.count(1))
    name = next(name for name in names if _objects.get(name, function) is function)
    _check_copyable(name, function)
    _objects[name] = function
    return name


@contextlib.contextmanager
def objects_called(functions: Mapping[str, Callable[..., Any]]) -> Iterator[None]:
    """Let names in the settings of a run mean these functions during the block; those that were free keep them.

    Raises:
        UserError: one cannot be handed to another process.
    """
    for name, function in functions.items():
        _check_copyable(name, function)
    before = {name: _objects[name] for name in functions if name in _objects}
    _objects.update(functions)
    try:
        yield
    finally:
        _objects.update(before)


def _check_copyable(name: str, thing: Any) -> None:
    """Refuse, with a UserError, what cannot be handed to another process."""
    try:
        cloudpickle.dumps(thing)
    except Exception as error:  # whatever keeps an object from being copied
        raise UserError(f"{name} cannot be handed to another process: {one_line(error)}") from None


def passed_object(name: str, wanted_by: str) -> Callable[..., Any]:
    """Return the function that `name_of` has named.

    Raises:
        UserError: this program has not passed it.
    """
    if name not in _objects:
        raise UserError(f"{wanted_by} was passed as a Python object: pass it again, from Python")
    return _objects[name]


def installer(names: Iterable[str]) -> Callable[[], None] | None:
    """Return what a new process calls first, so that it knows what only this program knows; None for nothing.

    Args:
        names: settings that may name a function passed as an object, or an environment that this program registered.

    Raises:
        UserError: an environment that cannot be handed to another process.
    """
    wanted = {name: _objects[name] for name in names if name in _objects}
    registered = {name: spec for name in names if (spec := _registered_here(name))}
    for name, spec in registered.items():
        _check_copyable(name, spec)
    return functools.partial(_install, wanted, registered) if wanted or registered else None


def _registered_here(env_id: str) -> EnvSpec | None:
    """Return Gymnasium's entry of an environment; None for one that every process knows, or that there is not."""
    import gymnasium  # an agent's process has it, the help texts of the command do without

    spec = gymnasium.registry.get(env_id)
    entry = getattr(spec, "entry_point", None)
    known = isinstance(entry, str) and entry.partition(".")[0] in KNOWN_EVERYWHERE
    return None if known else spec


def _install(objects: dict[str, Callable[..., Any]], registered: dict[str, EnvSpec]) -> None:
    _objects.update(objects)
    if registered:
        import gymnasium

        gymnasium.registry.update(registered)


def import_users_module(module: str, wanted_by: str) -> types.ModuleType:
    """Import the module called `module`, which may lie in the current folder or in those of `PLACES`.

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
    """Refuse to import what the settings of a run folder name, which may be somebody else's, without consent.

    Raises:
        UserError: they name a module, and it is not `trusted`.
    """
    named = named_code(config)
    if named and not trusted:
        raise UserError(
            f"the settings of {run} name code to run: {', '.join(named)}; if it is yours, or you have read it, add "
            "--trust-code, or from Python trust_code=True"
        )


def named_code(config: Config) -> list[str]:
    """Return what the settings name of the user's own code, 'module:function' or 'module:id', that can be imported."""
    settings = (config.env_id, config.network, config.loss)
    return [value for value in settings if ":" in value and not value.startswith(f"{OBJECT}:")]


def users_function(name: str, wanted_by: str) -> Callable[..., Any]:
    """Return the function that `name`, 'module:function', names.

    Raises:
        UserError: there is none; the text names `wanted_by`, the setting that asked for it.
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


def one_line(error: BaseException) -> str:
    """Return an error's type and text on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"

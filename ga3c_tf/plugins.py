"""User code: `module:function` for a network or a loss, `module:Name-v0` for an environment.

A Python program may pass functions instead. The settings of the run hold only their names, `object:NAME`, so they must
be passed again to resume such a run.
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
from ga3c_tf.host.signals import EndedBySignal

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec

OBJECT = "object"
"""Takes the place of the module in the name of a function that was passed as a Python object."""
_objects: dict[str, Callable[..., Any]] = {}
KNOWN_EVERYWHERE = ("ALE/", "MinAtar/")
"""Prefixes of the ids of environments that this package makes by itself in every process."""
PLACES = "GA3C_TF_PLACES"
"""Environment variable with folders that are searched for user modules, besides the current folder."""


def name_of(function: Callable[..., Any]) -> str:
    """Register a user function for this process and the processes it starts; return its name in the settings.

    Functions of the same name are distinguished by a number.

    Raises:
        UserError: the function cannot be sent to another process.
    """
    called = f"{OBJECT}:{getattr(function, '__name__', type(function).__name__)}"
    _check_copyable(called, function)
    names = (called if number == 1 else f"{called}-{number}" for number in itertools.count(1))
    name = next(name for name in names if _objects.get(name, function) is function)
    _objects[name] = function
    return name


@contextlib.contextmanager
def objects_called(functions: Mapping[str, Callable[..., Any]]) -> Iterator[None]:
    """Bind names in the settings of a run to these functions during the block.

    Names that had a function before get it back at the end; the others keep the new one.

    Raises:
        UserError: a function cannot be sent to another process.
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
    """Check that an object can be sent to another process.

    Raises:
        UserError: it cannot be pickled.
    """
    with users_errors(f"{name} cannot be handed to another process"):
        cloudpickle.dumps(thing)


def passed_object(name: str, wanted_by: str) -> Callable[..., Any]:
    """Return the function that `name_of` registered under `name`.

    Raises:
        UserError: this program has not passed the function; the text names `wanted_by`, the setting that needs it.
    """
    if name not in _objects:
        raise UserError(f"{wanted_by} was passed as a Python object: pass it again, from Python")
    return _objects[name]


def installer(names: Iterable[str]) -> Callable[[], None] | None:
    """Return a function that a new process calls first, to register objects that only this program has.

    None if there are no such objects.

    Args:
        names: settings that may name a function passed as an object, or an environment that this program registered.

    Raises:
        UserError: an environment cannot be sent to another process.
    """
    wanted = {name: _objects[name] for name in names if name in _objects}
    registered = {name: spec for name in names if (spec := _registered_here(name))}
    for name, spec in registered.items():
        _check_copyable(name, spec)
    return functools.partial(_install, wanted, registered) if wanted or registered else None


def _registered_here(env_id: str) -> EnvSpec | None:
    """Return Gymnasium's spec of an environment; None if every process knows it or it does not exist.

    An id of Gymnasium itself may have been registered anew by this program, so its spec is returned too.
    """
    import gymnasium  # agent processes have it anyway; the help texts of the command are shown without it

    return None if env_id.startswith(KNOWN_EVERYWHERE) else gymnasium.registry.get(env_id)


def _install(objects: dict[str, Callable[..., Any]], registered: dict[str, EnvSpec]) -> None:
    _objects.update(objects)
    if registered:
        import gymnasium

        gymnasium.registry.update(registered)


def import_users_module(module: str, wanted_by: str) -> types.ModuleType:
    """Import a user module, which may be in the current folder or in the folders of `PLACES`.

    Raises:
        UserError: the module cannot be imported, or has the name of one of Python's; the text names `wanted_by`, the
            setting that needs it.
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
    there = os.path.realpath(getattr(sys.modules[name], "__file__", None) or "")
    for file in (
        os.path.join(place, end) for place in places for end in (f"{name}.py", os.path.join(name, "__init__.py"))
    ):
        if os.path.isfile(file) and os.path.realpath(file) != there:
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
            f"the settings of {run} name code to run: {', '.join(named)}; if it is yours, or you have read it, add "
            "--trust-code, or from Python trust_code=True"
        )


def named_code(config: Config) -> list[str]:
    """Return the settings that name user code to import, as 'module:function' or 'module:id'."""
    settings = (config.env_id, config.network, config.loss)
    return [value for value in settings if ":" in value and not value.startswith(f"{OBJECT}:")]


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


@contextlib.contextmanager
def users_errors(text: str) -> Iterator[None]:
    """Raise a UserError, with `text` and the error in one line, for whatever user code in the block raises.

    User code may also end the program, which would otherwise look like success. UserErrors pass as they are.
    """
    try:
        yield
    except (UserError, EndedBySignal):
        raise
    except (Exception, SystemExit) as error:
        raise UserError(f"{text}: {one_line(error)}") from error


def one_line(error: BaseException) -> str:
    """Format an error's type, and its text if it has one, as one line."""
    return ": ".join(filter(None, (type(error).__name__, " ".join(str(error).split()))))

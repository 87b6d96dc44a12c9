"""Functions and environments that a Python program passes as objects, for the processes that it starts.

The settings of the run hold only their names, `object:NAME`, so they must be passed again to resume such a
run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import cloudpickle

from ga3c_tf.errors import UserError
from ga3c_tf.plugins.errors import users_errors

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec

OBJECT = "object"
"""Takes the place of the module in the name of a function that was passed as a Python object."""
_objects: dict[str, Callable[..., Any]] = {}
KNOWN_EVERYWHERE = ("ALE/", "MinAtar/", "GA3C/")
"""Prefixes of the ids of environments that this package makes by itself in every process."""


def name_of(function: Callable[..., Any]) -> str:
    """Register a user function for this process and the processes it starts; return its name in the settings.

    Functions of the same name are distinguished by a number; equal copies of an object have one name.

    Raises:
        UserError: the function cannot be sent to another process.
    """
    called = f"{OBJECT}:{getattr(function, '__name__', type(function).__name__)}"
    _check_copyable(called, function)
    names = (called if number == 1 else f"{called}-{number}" for number in itertools.count(1))
    name = next(name for name in names if _objects.get(name, function) == function)
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
        UserError: this program has not passed the function; the text names `wanted_by`, the setting that
            needs it.
    """
    if name not in _objects:
        raise UserError(f"{wanted_by} was passed as a Python object: pass it again, from Python")
    return _objects[name]


def installer(names: Iterable[str]) -> Callable[[], None] | None:
    """Return a function that a new process calls first, to register objects that only this program has.

    None if there are no such objects.

    Args:
        names: settings that may name a function passed as an object, or an environment that this program
            registered.

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
    if env_id.startswith(KNOWN_EVERYWHERE):
        return None
    import gymnasium  # agent processes have it anyway; the help texts of the command are shown without it
    from gymnasium.envs.registration import load_env_creator

    spec = gymnasium.registry.get(env_id)
    if spec and str(spec.entry_point).startswith("__main__:"):  # which other processes cannot import
        made_by: Any = load_env_creator(str(spec.entry_point))
        return dataclasses.replace(spec, entry_point=made_by)
    return spec


def _install(objects: dict[str, Callable[..., Any]], registered: dict[str, EnvSpec]) -> None:
    _objects.update(objects)
    if registered:
        import gymnasium

        gymnasium.registry.update(registered)

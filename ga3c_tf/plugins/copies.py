"""Environments and networks that a program passes as objects: functions that make copies of them."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import cloudpickle

from ga3c_tf.errors import UserError
from ga3c_tf.plugins.errors import one_line


class Copies:
    """Makes a copy of an object at each call, whatever the arguments.

    Args:
        thing: an environment or a Keras model.
        instead: what to pass if it cannot be copied, in words.

    Raises:
        UserError: the object cannot be copied.
    """

    def __init__(self, thing: Any, instead: str):
        self.__name__ = type(thing).__name__
        try:
            self._content = cloudpickle.dumps(thing)
        except Exception as error:  # an object may raise anything
            raise UserError(
                f"this {self.__name__} cannot be copied, and each process needs one of its own "
                f"({one_line(error)}); pass {instead}"
            ) from error

    def __call__(self, *_: Any, **__: Any) -> Any:
        return cloudpickle.loads(self._content)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Copies) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)


class Remade:
    """Makes a Gymnasium environment anew by its spec at each call, with its wrappers.

    Args:
        spec: spec of the environment.
    """

    def __init__(self, spec: Any):
        self.__name__ = spec.id.rpartition("/")[2]
        options = {name: value for name, value in spec.kwargs.items() if name != "render_mode"}
        self._spec = dataclasses.replace(spec, kwargs=options)

    def __call__(self, render_mode: str | None = None) -> Any:
        import gymnasium

        options: dict[str, Any] = {} if render_mode is None else {"render_mode": render_mode}
        return gymnasium.make(self._spec, disable_env_checker=True, **options)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Remade):
            return False
        return cloudpickle.dumps(self._spec) == cloudpickle.dumps(other._spec)  # they may have arrays

    def __hash__(self) -> int:
        return hash(self._spec.id)


def as_name_or_function(argument: str, value: Any) -> Any:
    """Return a function, or an id, in place of an environment or a Keras model; any other value as it is.

    Args:
        argument: 'env', 'network' or 'loss'.
        value: value of this argument.

    Raises:
        UserError: the object cannot be copied, or is a vector of environments.
    """
    if argument == "env":
        return _of_environment(value)
    keras = sys.modules.get("keras")  # whoever has a model has imported it
    if argument == "network" and keras is not None and isinstance(value, keras.Model):
        return Copies(value, "a function (state_shape, state_dtype, num_actions) that returns a keras.Model")
    return value


def _of_environment(value: Any) -> Any:
    gymnasium = sys.modules.get("gymnasium")
    if gymnasium is None:
        return value
    if isinstance(value, gymnasium.vector.VectorEnv):
        raise UserError(
            f"env is a {type(value).__name__}; pass one environment, whose copies the agents play in, and "
            "num_agents"
        )
    if not isinstance(value, gymnasium.Env):
        return value
    spec = _spec_of(value)
    if spec is None:
        if value.render_mode == "human":
            raise UserError(
                "env opens a window, and so would each copy of it; make it without render_mode='human'"
            )
        return Copies(value, "a function that makes one")
    return spec.id if _is_registered(spec) else Remade(spec)


def _spec_of(env: Any) -> Any:
    """Return the spec by which `gymnasium.make` makes an environment with all its wrappers; None without."""
    spec = env.spec
    if spec is None or spec.entry_point is None:
        return None
    # Other processes cannot import what is defined in the main program; a wrapper without arguments on record
    # cannot be made again.
    places = [spec.entry_point, *(wrapper.entry_point for wrapper in spec.additional_wrappers)]
    is_in_main = any(str(place).startswith("__main__:") for place in places)
    has_all = all(wrapper.kwargs is not None for wrapper in spec.additional_wrappers)
    return spec if has_all and not is_in_main else None


def _is_registered(spec: Any) -> bool:
    """Return whether `gymnasium.make(spec.id)` makes this environment too."""
    import gymnasium

    registered = gymnasium.registry.get(spec.id)
    if registered is None or spec.additional_wrappers:
        return False
    options = {name: value for name, value in spec.kwargs.items() if name != "render_mode"}
    try:
        same = options == registered.kwargs
    except ValueError:  # of arrays, which may differ
        same = False
    return (
        same
        and spec.max_episode_steps == registered.max_episode_steps
        and spec.entry_point == registered.entry_point
    )

"""How a setting is declared: its meaning, its bounds, and its rules beside the other settings."""

from __future__ import annotations

import dataclasses
import math
import numbers
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ga3c_tf.errors import UserError

SYSTEM_CLASSES = {
    "ga3c": "ga3c_tf.systems.ga3c.system:GA3C",
    "a2c": "ga3c_tf.systems.a2c:A2C",
    "a3c": "ga3c_tf.systems.a3c.system:A3C",
    "serial": "ga3c_tf.systems.serial:SerialGA3C",
}
"""Class of each training system, as 'module:class'."""
SYSTEMS = tuple(SYSTEM_CLASSES)
ALGORITHM_MODELS = {
    "actor-critic": "ga3c_tf.algorithms.actor_critic.model:Model",
    "pqn": "ga3c_tf.algorithms.q_learning.pqn:PQN",
    "dqn": "ga3c_tf.algorithms.q_learning.dqn:DQN",
}
"""Class of each algorithm's model, as 'module:class'."""
ALGORITHMS = tuple(ALGORITHM_MODELS)
ACTOR_CRITIC = ("actor-critic",)
PQN = ("pqn",)
DQN = ("dqn",)
Q_LEARNING = (*PQN, *DQN)
WITH_SEGMENTS = (*ACTOR_CRITIC, *PQN)
"""Algorithms that train on segments as agents send them, and not on samples of a replay memory."""
RECURRENT = ("small-lstm", "minatar-lstm", "mlp-lstm", "mlp-two-trunks-lstm")
"""Built-in networks with memory: those of these names, with an LSTM behind the last hidden layer."""
READERS = {"system": "systems", "algorithm": "algorithms"}
"""The settings that decide which of the others are read, with the names of their lists in a declaration."""
GROUPS = {
    "budget": "when a training ends",
    "environment": "what is played",
    "workers": "the system, and its agents, predictors and trainers",
    "algorithm": "returns, losses and batches",
    "optimizer": "learning rate, gradients and statistics",
    "network": "the network, its inputs and its initial weights",
    "run": "seed, device, folder and curves",
    "advanced": "details that most trainings leave as they are",
}
"""The groups of the settings and what they are about, in the order in which help and reference show them."""
ATARI_GAMES: Final = "Atari games, such as ALE/Pong-v5"
SCREENS: Final = "states that are screens; for other states there is --normalize-observations"
"""Environments that some settings are for; all others are for any environment."""
SET: Final = "any value but the default"
OWN: Final = "module:function"
"""In place of a value: the name of a user's function."""


@dataclass(frozen=True)
class Beside:
    """Values of other settings that a setting has a relation to.

    Attributes:
        cases: the values by name of setting; a setting with no values has any but its default.
        when: values of the setting itself that have this relation, or `SET`; empty: any.
        because: the reason in words, for messages.
    """

    cases: dict[str, tuple[Any, ...]]
    when: tuple[Any, ...] = ()
    because: str = ""


def beside(*, when: Sequence[Any] = (), because: str = "", **cases: Any) -> Beside:
    """Return a relation to other settings, by name: `SET`, one value, or a tuple of values.

    Where several settings are named, any one of them will do. The correction is the one in use, see `chosen`.
    """
    values = {}
    for name, value in cases.items():
        if value is SET:
            values[name] = ()
        else:
            values[name] = value if isinstance(value, tuple) else (value,)
    return Beside(values, tuple(when), because)


def declare(
    default: Any,
    group: str,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    choices: tuple[str, ...] | None = None,
    problem: Callable[[str], str | None] | None = None,
    option: str | None = None,
    systems: tuple[str, ...] = SYSTEMS,
    algorithms: tuple[str, ...] = ALGORITHMS,
    refused_elsewhere: bool = False,
    environments: str | None = None,
    read_with: Sequence[Beside] = (),
    needs: Sequence[Beside] = (),
    excludes: Sequence[Beside] = (),
    fixed: str | None = None,
) -> Any:
    """Declare a setting as a dataclass field.

    What has no effect is refused where a user gives it, and left out of a preset. What conflicts is always
    refused.

    Args:
        default: value of the setting where none is given.
        group: group under which the setting is listed, one of `GROUPS`.
        help: meaning of the setting, with symbol and unit.
        low, high: inclusive bounds of the value.
        above: exclusive lower bound of the value.
        choices: allowed values; None where they are not restricted to a list.
        problem: returns why a text is not allowed, in words, or None; None where there is no such rule.
        option: command-line option (without dashes); None where it follows from the setting's name.
        systems: systems that read the setting.
        algorithms: algorithms that read the setting.
        refused_elsewhere: whether any value but the default conflicts with the other systems and algorithms,
            where the default holds.
        environments: `ATARI_GAMES` or `SCREENS` where only these environments read the setting.
        read_with: relations that must all hold for the setting to have an effect.
        needs: relations that must all hold, else the setting conflicts with the others.
        excludes: relations none of which may hold, else the setting conflicts with the others.
        fixed: why the setting cannot change when a run is resumed; None where it can.
    """
    metadata = {name: value for name, value in locals().items() if name != "default"}
    return dataclasses.field(default=default, metadata=metadata)


def checked(setting: dataclasses.Field, kind: type, value: Any) -> Any:
    """Return `value` converted to the setting's type and checked.

    Args:
        setting: the dataclass field, made by `declare`.
        kind: type of the setting: bool, int, float or str.
        value: value to check.

    Raises:
        UserError: the value has the wrong type or is not allowed; the message says what is.
    """
    rule = setting.metadata
    name = both_names(setting)
    value = _plain(kind, value)
    if type(value) is not kind:
        words = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
        raise UserError(f"{name} is {value!r}; it must be {words[kind]}")
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{name} is {value}; it must be finite")
    if rule["choices"] and value not in rule["choices"]:
        raise UserError(f"{name} is {value!r}; it must be one of {', '.join(rule['choices'])}")
    if rule["problem"] and (problem := rule["problem"](value)):
        raise UserError(f"{name} is {value!r}: {problem}")
    if rule["low"] is not None and value < rule["low"]:
        raise UserError(f"{name} is {value}; it must be at least {rule['low']}")
    if rule["above"] is not None and value <= rule["above"]:
        raise UserError(f"{name} is {value}; it must be above {rule['above']}")
    if rule["high"] is not None and value > rule["high"]:
        raise UserError(f"{name} is {value}; it must be at most {rule['high']}")
    return value


def _plain(kind: type, value: Any) -> Any:
    """Convert numbers of libraries such as NumPy to Python's and paths to text; leave other values as is."""
    if kind is str and isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, bool):
        return value
    if kind is int and isinstance(value, numbers.Integral):
        return int(value)
    if kind is int and isinstance(value, float) and value.is_integer():  # such as 4e6
        return int(value)
    if kind is float and isinstance(value, numbers.Real):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    return value


def both_names(setting: dataclasses.Field) -> str:
    """Return the names of a setting in Python and on the command line, for messages to users of both."""
    return f"{setting.name} (--{option_name(setting)})"


def option_name(setting: dataclasses.Field) -> str:
    """Return the command-line option of a setting, without dashes."""
    return setting.metadata["option"] or setting.name.replace("_", "-")


def plain_text(value: Any) -> str:
    """Format a value for the command line; whole floats get no decimal point."""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)

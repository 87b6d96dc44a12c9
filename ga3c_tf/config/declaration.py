"""How a setting is declared and checked: help text, group, bounds or choices, option and systems."""

from __future__ import annotations

import dataclasses
import math
import numbers
import os
from typing import Any

from ga3c_tf.errors import UserError

SYSTEM_CLASSES = {
    "ga3c": "ga3c_tf.systems.ga3c.system:GA3C",
    "a2c": "ga3c_tf.systems.a2c:A2C",
    "a3c": "ga3c_tf.systems.a3c.system:A3C",
}
"""Class of each training system, as 'module:class'."""
SYSTEMS = tuple(SYSTEM_CLASSES)
NOT_SERIAL = (
    "agent_processes",
    "agents_per_actor",
    "num_predictors",
    "num_trainers",
    "scheduling",
    "adjustment_seconds",
    "max_agents",
    "agent_timeout",
)
"""Settings that have no effect with --serial, where everything runs in one process."""


def declare(
    default,
    group,
    help,
    *,
    low=None,
    high=None,
    above=None,
    choices=None,
    option=None,
    systems=SYSTEMS,
):
    """Declare a setting as a dataclass field.

    Args:
        default: value of the setting where none is given.
        group: group under which the setting is listed.
        help: meaning of the setting, with symbol and unit.
        low, high: inclusive bounds of the value.
        above: exclusive lower bound of the value.
        choices: allowed values; None where they are not restricted to a list.
        option: command-line option (without dashes); None where it follows from the setting's name.
        systems: systems on which the setting has an effect.
    """
    metadata = {
        "group": group,
        "help": help,
        "low": low,
        "high": high,
        "above": above,
        "choices": choices,
        "option": option,
        "systems": systems,
    }
    return dataclasses.field(default=default, metadata=metadata)


def option_name(setting: dataclasses.Field) -> str:
    """Return the command-line option of a setting, without dashes."""
    return setting.metadata["option"] or setting.name.replace("_", "-")


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
    name = f"{setting.name} (--{option_name(setting)})"
    value = _plain(kind, value)
    if type(value) is not kind:
        words = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
        raise UserError(f"{name} is {value!r}; it must be {words[kind]}")
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{name} is {value}; it must be finite")
    if rule["choices"] and value not in rule["choices"]:
        raise UserError(f"{name} is {value!r}; it must be one of {', '.join(rule['choices'])}")
    if rule["low"] is not None and value < rule["low"]:
        raise UserError(f"{name} is {value}; it must be at least {rule['low']}")
    if rule["above"] is not None and value <= rule["above"]:
        raise UserError(f"{name} is {value}; it must be above {rule['above']}")
    if rule["high"] is not None and value > rule["high"]:
        raise UserError(f"{name} is {value}; it must be at most {rule['high']}")
    return value


def _plain(kind: type, value: Any) -> Any:
    """Convert numbers of other libraries, such as NumPy, to Python's and paths to text; leave other values as is."""
    if kind is str and isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, bool):
        return value
    if kind is int and isinstance(value, numbers.Integral):
        return int(value)
    if kind is float and isinstance(value, numbers.Real):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    return value


def plain_text(value: Any) -> str:
    """Format a value for the command line; whole floats get no decimal point."""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)

"""How a setting is declared and checked: its help, group, bounds or choices, option, and the systems it is for."""

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
"""The class of each training system."""
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
"""Settings that have no effect where everything runs in one process."""


def declare(default, group, help, *, low=None, high=None, above=None, choices=None, option=None, systems=SYSTEMS):
    """Declare a setting.

    Args:
        default: its value where none is given.
        group: that it is listed under.
        help: its meaning, with symbol and unit.
        low, high: bounds of its value, both allowed.
        above: a bound of its value that is not allowed.
        choices: its values.
        option: name of its command-line option (without dashes), where that is not its own.
        systems: that it has an effect on.
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
    """Return `value` as the setting's type, or raise a UserError that says what would be right."""
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
    """Return numbers of other libraries, such as NumPy's, as Python's and paths as text; other values as they are."""
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
    """Format a value as on a command line, a whole number without a point."""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)

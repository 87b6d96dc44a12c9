"""The schema of recorded settings: its version, and how settings that an earlier version recorded are read.

A setting that is renamed or removed, or whose values change, gets an entry at the end of `MIGRATIONS`. All
that reads the settings of a run folder, of published weights or of a results folder goes through `migrated`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from ga3c_tf.errors import UserError

SCHEMA = "schema_version"
"""Name of the version among recorded settings. Those of ga3c-tf 0.2.0 and before lack it: version 1."""
Use = Literal["training", "playing"]
Values = dict[str, Any]
"""Values of settings by name."""


class Renamed(NamedTuple):
    """A setting has another name. No other setting takes the name that it had before."""

    before: str
    after: str


class Removed(NamedTuple):
    """A setting no longer exists.

    Attributes:
        name: name of the setting.
        value: value that every run has in effect now.
        affects: uses of a run that another value changes. A run that was recorded with one then says so.
    """

    name: str
    value: Any
    affects: tuple[Use, ...] = ("training",)


class Changed(NamedTuple):
    """The values of a setting, or of several that belong together, are others.

    Attributes:
        forward: turns recorded settings, whatever JSON they are, into those of the next version, in place.
        back: the opposite, for valid settings; None if the values of the next version were valid before too.
    """

    forward: Callable[[Values], None]
    back: Callable[[Values], None] | None = None


Change = Renamed | Removed | Changed


def _raise_log_seconds(settings: Values) -> None:
    value = settings.get("log_seconds")
    if isinstance(value, int | float) and 0 < value < 0.01:
        settings["log_seconds"] = 0.01


def _serial_to_system(settings: Values) -> None:
    serial = settings.get("serial")
    if isinstance(serial, bool):
        del settings["serial"]
        if serial:
            settings["system"] = "serial"


def _system_to_serial(settings: Values) -> None:
    if settings.get("system") == "serial":
        settings.update(system="ga3c", serial=True)


MIGRATIONS: list[list[Change]] = [
    [Changed(_raise_log_seconds)],  # version 1, of ga3c-tf 0.2.0, had any --log-seconds above 0
    [
        Changed(_serial_to_system, _system_to_serial),  # version 2 had a switch beside the system ga3c
        Removed("training_queue_order", "fifo"),  # no run had another, and no published method has
    ],
]
"""The changes from each version of the schema to the next, beginning with version 1."""


def schema_version() -> int:
    """Return the version of today's settings."""
    return len(MIGRATIONS) + 1


class Recorded(NamedTuple):
    """Recorded settings as this version reads them.

    Attributes:
        settings: values under the names of today.
        removed: values of settings that no longer exist.
    """

    settings: Values
    removed: Values

    def unsupported(self, use: Use) -> list[str]:
        """Return a line for each removed setting whose value changed this use and has no effect any more."""
        lines = []
        for change in _changes_since(1):
            if isinstance(change, Removed) and use in change.affects and change.name in self.removed:
                value = self.removed[change.name]
                if value != change.value:
                    now = f"it is now {change.value!r}"
                    lines.append(f"{change.name}={value!r} is no longer supported; {now}")
        return lines


def migrated(recorded: Mapping[str, Any]) -> Recorded:
    """Return recorded settings as this version reads them. Their values are not checked.

    Args:
        recorded: values by name; the version is that under `SCHEMA`, or else 1.

    Raises:
        UserError: this version of the package cannot read the version of the settings.
    """
    settings = dict(recorded)
    version = settings.pop(SCHEMA, 1)
    if type(version) is not int or not 1 <= version <= schema_version():
        raise UserError(f"{SCHEMA} is {version!r}; this version of ga3c-tf reads 1 to {schema_version()}")
    removed = {}
    for change in _changes_since(version):
        if isinstance(change, Changed):
            change.forward(settings)
        elif isinstance(change, Renamed):
            _rename(settings, change.before, change.after)
        elif change.name in settings:
            removed[change.name] = settings.pop(change.name)
    return Recorded(settings, removed)


def migrated_json(text: str) -> Recorded:
    """Return the settings recorded in JSON text as this version reads them. Their values are not checked.

    Raises:
        UserError: the text is not a JSON object, or an error of `migrated`.
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"not valid JSON ({error})") from None
    if not isinstance(values, dict):
        raise UserError("not a JSON object of settings")
    return migrated(values)


def first_form(settings: Mapping[str, Any]) -> Values:
    """Return today's settings under the first names that they had, with the values of that time.

    This form stays the same whatever the settings are called later. `migrated` is the opposite. Removed
    settings among them stay as they are.
    """
    values = dict(settings)
    for change in reversed(_changes_since(1)):
        if isinstance(change, Renamed):
            _rename(values, change.after, change.before)
        elif isinstance(change, Changed) and change.back is not None:
            change.back(values)
    return values


def removed_names() -> set[str]:
    """Return the names of the settings that no longer exist."""
    return {change.name for change in _changes_since(1) if isinstance(change, Removed)}


def _changes_since(version: int) -> list[Change]:
    return [change for changes in MIGRATIONS[version - 1 :] for change in changes]


def _rename(settings: Values, before: str, after: str) -> None:
    if before in settings:
        settings[after] = settings.pop(before)

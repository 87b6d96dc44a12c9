"""The checked settings of a run: made from a preset or from JSON, and changed when a run is resumed."""

from __future__ import annotations

import copy
import dataclasses
import json
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ga3c_tf.config.declaration import both_names, checked, plain_text
from ga3c_tf.config.elsewhere import setting_called
from ga3c_tf.config.migrations import SCHEMA, migrated_json, schema_version
from ga3c_tf.config.presets import BUDGETS, PRESETS, USUAL_PRESET, preset_beside
from ga3c_tf.config.rules import check_conflicts, check_effects, spelled
from ga3c_tf.config.settings import Settings
from ga3c_tf.errors import UserError, did_you_mean
from ga3c_tf.host.machine import usable_cores


@dataclass(frozen=True)
class Config(Settings):
    """The settings of one run. Section and table numbers refer to the paper (ICLR 2017).

    Raises:
        UserError: a value is outside its bounds, has the wrong type, or conflicts with another setting.
    """

    def __post_init__(self):
        for setting in dataclasses.fields(self):
            value = getattr(self, setting.name)
            if value is not setting.default:
                object.__setattr__(self, setting.name, _checked(setting.name, value))
        check_conflicts(self)

    @classmethod
    def from_preset(cls, preset: str, given: dict[str, Any]) -> Config:
        """Return the settings of a preset, overridden by `given`.

        Preset values that conflict with given ones, or that nothing reads beside them, are dropped. The
        algorithm is not: a given value that conflicts with it is refused. Any given
        budget replaces the preset's budget. A3C, whose agents are processes with TensorFlow, has one per
        core, unless `given` or the preset says how many.

        Args:
            preset: name of the preset.
            given: values by name of setting; None means that the setting is not given.

        Raises:
            UserError: the preset is unknown, a given setting has no effect, or an error of `from_values`.
        """
        if preset not in PRESETS:
            hint = did_you_mean(preset, list(PRESETS)) or f"; it must be one of {', '.join(PRESETS)}"
            raise UserError(f"unknown preset {preset!r}{hint}")
        given = {name: value for name, value in given.items() if value is not None}
        _check_names(given)
        values = preset_beside(preset, {name: _checked(name, value) for name, value in given.items()})
        if values.get("system") == "a3c":
            values.setdefault("num_agents", usable_cores())
        if "algorithm" in PRESETS[preset]:  # what a preset is for is refused, not dropped
            values.setdefault("algorithm", PRESETS[preset]["algorithm"])
        config = cls(**values)
        check_effects(config, given)
        return config

    def changed(self, changes: dict[str, Any]) -> Config:
        """Return the settings with which a run continues after `changes`.

        Args:
            changes: new values by name. A budget other than None replaces all budgets of the run. None
                removes only the budget that it is given for. The target score stays unless it is given.

        Raises:
            UserError: a setting is unknown, cannot change within a run or has no effect here, or a value is
                invalid.
        """
        _check_names(changes)
        given = {name: value for name, value in changes.items() if value != getattr(self, name)}
        for name in given:
            if name in FIXED:
                setting = self.__dataclass_fields__[name]
                raise UserError(f"{both_names(setting)} cannot change within a run: {FIXED[name]}")
        if any(changes.get(budget) is not None for budget in BUDGETS):
            changes = {**dict.fromkeys(BUDGETS), **changes}
        if all(value == getattr(self, name) for name, value in changes.items()):
            return self
        after = self.replace(**changes)
        check_effects(after, given)
        adjusted = [name for name in ("num_agents", "num_predictors", "num_trainers") if name in given]
        if adjusted and "off" not in (self.adjustment, after.adjustment):
            setting = self.__dataclass_fields__[adjusted[0]]
            raise UserError(
                f"{both_names(setting)} is what the run's dynamic adjustment has found; "
                "set adjustment=off with it"
            )
        return after

    def replace(self, **changes) -> Config:
        """Return a copy with `changes` applied and all settings checked again."""
        return dataclasses.replace(self, **changes)

    def resolved(self, **values: Any) -> Config:
        """Return a copy with values the program found for given ones, such as an id; nothing is checked."""
        config = copy.copy(self)
        config.__dict__.update(values)
        return config

    def arguments(self) -> list[str]:
        """Return the arguments of `ga3c-tf train` that make this config: environment and options needed."""
        usual = self.from_preset(USUAL_PRESET, {"system": self.system})
        words = [self.env_id]
        for setting in dataclasses.fields(self):
            value = getattr(self, setting.name)
            named = setting.name == "system" and value != setting.default
            # Its default depends on the machine.
            named |= setting.name == "num_agents" and self.system == "a3c"
            if setting.name == "env_id" or (value == getattr(usual, setting.name) and not named):
                continue
            words.append(spelled(setting.name, value if isinstance(value, bool) else None))
            if not isinstance(value, bool):
                words.append(plain_text(value))
        return words

    def to_json(self) -> str:
        """Return all settings and their version as indented JSON, the content of a run's config.json."""
        return json.dumps({SCHEMA: schema_version(), **dataclasses.asdict(self)}, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Config:
        """Read the settings from JSON text written by `to_json`, of this version or an earlier one.

        Raises:
            UserError: the text is no JSON object or of a later version, a setting is unknown, or a value is
                invalid.
        """
        return cls.from_values(migrated_json(text).settings)

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> Config:
        """Make a Config from `values`; settings that are not named keep their defaults.

        Raises:
            UserError: a setting is unknown (the message suggests similar names), or a value is invalid.
        """
        _check_names(values)
        return cls(**values)


FIXED: dict[str, str] = {
    setting.name: setting.metadata["fixed"]
    for setting in dataclasses.fields(Config)
    if setting.metadata["fixed"]
}
"""Settings that cannot change within a run, each with the reason."""

_TYPES = {
    name: tuple(typing.get_args(hint)) or (hint,) for name, hint in typing.get_type_hints(Config).items()
}


def _check_names(values: Iterable[str]) -> None:
    """Raise a UserError for a name that is not that of a setting; the message suggests similar names."""
    names = [setting.name for setting in dataclasses.fields(Config)]
    for name in values:
        if name not in names:
            meant = setting_called(name)
            raise UserError(
                f"unknown setting {name!r}{f'; it is {meant} here' if meant else did_you_mean(name, names)}"
            )


def _checked(name: str, value: Any) -> Any:
    """Return the value of a setting in its type; see `declaration.checked`."""
    if value is None and is_optional(name):
        return None
    return checked(Config.__dataclass_fields__[name], setting_type(name), value)


def is_optional(name: str) -> bool:
    """Return whether the setting `name` may be None."""
    return type(None) in _TYPES[name]


def setting_type(name: str) -> type:
    """Return the type of the setting `name`, apart from None: bool, int, float or str."""
    return next(kind for kind in _TYPES[name] if kind is not type(None))

"""The checked settings of a run: made from a preset or from JSON, and changed when a run is resumed."""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ga3c_tf.config.conflicts import check_conflicts, check_effects
from ga3c_tf.config.declaration import NOT_SERIAL, checked, option_name, plain_text
from ga3c_tf.config.elsewhere import setting_called
from ga3c_tf.config.migrations import SCHEMA, migrated_json, schema_version
from ga3c_tf.config.presets import BUDGETS, PRESETS, USUAL_PRESET, preset_beside
from ga3c_tf.config.settings import ATARI, Settings
from ga3c_tf.errors import UserError, did_you_mean
from ga3c_tf.host.machine import usable_cores

HELD: dict[str, str] = {
    **dict.fromkeys(("env_id", *ATARI), "with another the run's scores would be of two environments"),
    **dict.fromkeys(("network", "dual_rmsprop", "optimizer"), "the checkpoint holds the variables that it gives"),
    **dict.fromkeys(
        ("initialization", "normalize_images", "normalize_observations"), "the run's weights began with it"
    ),
    **dict.fromkeys(("system", "serial"), "the run's speeds and lags would be of two systems"),
    "seed": "the run has begun with it",
    "rolling_episodes": "checkpoints are compared by means over so many episodes",
    "initial_weights": "the run has begun with them",
    "run_dir": "the run is in its folder, which may be moved or renamed",
    "max_agents": "the adjustment may have started as many",
}
"""Settings that cannot change within a run, each with the reason."""


@dataclass(frozen=True)
class Config(Settings):
    """The settings of one run. Section and table numbers refer to the paper (ICLR 2017).

    Raises:
        UserError: a value is outside its bounds, has the wrong type, or conflicts with another setting.
    """

    def __post_init__(self):
        for setting in dataclasses.fields(self):
            value = getattr(self, setting.name)
            if value is None and is_optional(setting.name):
                continue
            object.__setattr__(self, setting.name, checked(setting, setting_type(setting.name), value))
        check_conflicts(self)

    def check_effect(self, given: Iterable[str]) -> None:
        """Refuse settings that a user gave and that have no effect; see `conflicts.check_effects`."""
        check_effects(self, given)

    @classmethod
    def from_preset(cls, preset: str, given: dict[str, Any]) -> Config:
        """Return the settings of a preset, overridden by `given`.

        Preset values that conflict with given ones are dropped. Any given budget replaces the preset's budget. Dynamic
        adjustment and other preset values that have no effect on the given system, or with `serial`, are dropped too.
        A3C, whose agents are processes with TensorFlow, has one per core, unless `given` or the preset says how many.

        Args:
            preset: name of the preset.
            given: values by name of setting; None means that the setting is not given.

        Raises:
            UserError: the preset is unknown, or an error of `from_values`.
        """
        if preset not in PRESETS:
            hint = did_you_mean(preset, list(PRESETS)) or f"; it must be one of {', '.join(PRESETS)}"
            raise UserError(f"unknown preset {preset!r}{hint}")
        given = {name: value for name, value in given.items() if value is not None}
        system = given.get("system", cls.system)
        dropped = {"adjustment"} if given.get("serial") or system != cls.system else set()
        dropped.update(NOT_SERIAL if given.get("serial") else ())
        values = {
            name: value
            for name, value in preset_beside(preset, given).items()
            if name in given or (has_effect(name, system) and name not in dropped)
        }
        if system == "a3c":
            values.setdefault("num_agents", usable_cores())
        return cls.from_values(values)

    def changed(self, changes: dict[str, Any]) -> Config:
        """Return the settings with which a run continues after `changes`.

        Args:
            changes: new values by name. A budget other than None replaces all budgets of the run. None removes only the
                budget that it is given for. The target score stays unless it is given.

        Raises:
            UserError: a setting is unknown, cannot change within a run or has no effect here, or a value is invalid.
        """
        _check_known(changes)
        given = {name: value for name, value in changes.items() if value != getattr(self, name)}
        for name in given:
            if name in HELD:
                raise UserError(f"{name} (--{option_of(name)}) cannot change within a run: {HELD[name]}")
        dropped = dict.fromkeys(BUDGETS) if any(changes.get(budget) is not None for budget in BUDGETS) else {}
        after = self.replace(**{**dropped, **changes})
        after.check_effect(given)
        adjusted = [name for name in ("num_agents", "num_predictors", "num_trainers") if name in given]
        if adjusted and "off" not in (self.adjustment, after.adjustment):
            raise UserError(
                f"{adjusted[0]} (--{option_of(adjusted[0])}) is what the run's dynamic adjustment has found; "
                "set adjustment=off with it"
            )
        return after

    def replace(self, **changes) -> Config:
        """Return a copy with `changes` applied and all settings checked again."""
        return dataclasses.replace(self, **changes)

    def arguments(self) -> list[str]:
        """Return the arguments of `ga3c-tf train` that produce this config: the environment and the options needed."""
        usual = self.from_preset(USUAL_PRESET, {"system": self.system, "serial": self.serial})
        words = [self.env_id]
        for setting in dataclasses.fields(self):
            value = getattr(self, setting.name)
            option = option_of(setting.name)
            named = setting.name in ("system", "serial") and value != setting.default
            named |= setting.name == "num_agents" and self.system == "a3c"  # its default depends on the machine
            if setting.name == "env_id" or (value == getattr(usual, setting.name) and not named):
                continue
            if isinstance(value, bool):
                words.append(f"--{option}" if value else f"--no-{option}")
            else:
                words += [f"--{option}", plain_text(value)]
        return words

    def to_json(self) -> str:
        """Return all settings and their version as indented JSON, the content of a run's config.json."""
        return json.dumps({SCHEMA: schema_version(), **dataclasses.asdict(self)}, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Config:
        """Read the settings from JSON text written by `to_json`, of this version or an earlier one.

        Raises:
            UserError: the text is no JSON object or of a later version, a setting is unknown, or a value is invalid.
        """
        return cls.from_values(migrated_json(text).settings)

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> Config:
        """Make a Config from `values`; settings that are not named keep their defaults.

        Raises:
            UserError: a setting is unknown (the message suggests similar names), or a value is invalid.
        """
        _check_known(values)
        return cls(**values)


def option_of(name: str) -> str:
    """Return the command-line option (without dashes) of the setting `name`."""
    return option_name(Config.__dataclass_fields__[name])


def has_effect(name: str, system: str) -> bool:
    """Return whether the setting `name` has an effect on `system`; True for unknown names, which are refused later."""
    setting = Config.__dataclass_fields__.get(name)
    return setting is None or system in setting.metadata["systems"]


_TYPES = {name: tuple(typing.get_args(hint)) or (hint,) for name, hint in typing.get_type_hints(Config).items()}


def _check_known(names: Iterable[str]) -> None:
    """Refuse names that are not settings; the message suggests similar names."""
    known = [setting.name for setting in dataclasses.fields(Config)]
    for name in names:
        if name not in known:
            meant = setting_called(name)
            raise UserError(
                f"unknown setting {name!r}{f'; it is {meant} here' if meant else did_you_mean(name, known)}"
            )


def is_optional(name: str) -> bool:
    """Return whether the setting `name` may be None."""
    return type(None) in _TYPES[name]


def setting_type(name: str) -> type:
    """Return the type of the setting `name`, apart from None: bool, int, float or str."""
    return next(kind for kind in _TYPES[name] if kind is not type(None))

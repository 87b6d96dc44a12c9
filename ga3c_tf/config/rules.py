"""What the declarations of the settings imply: conflicts, settings without effect, and both in words.

A rule that belongs to one setting stands in its declaration. Those of several settings stand in `RULES`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ga3c_tf.config.corrections import parts_of
from ga3c_tf.config.declaration import (
    ATARI_GAMES,
    OWN,
    READERS,
    SCREENS,
    SET,
    Beside,
    option_name,
    plain_text,
)
from ga3c_tf.config.settings import Settings
from ga3c_tf.errors import UserError


class Rule(NamedTuple):
    """A rule of several settings.

    Attributes:
        settings: names of the settings, beginning with the one that a preset leaves out first.
        is_broken: whether the settings of a run break the rule.
        message: what is wrong, and what would be right.
    """

    settings: tuple[str, ...]
    is_broken: Callable[[Settings], bool]
    message: Callable[[Settings], str]


class Conflict(NamedTuple):
    """A rule that settings break: their names, first the one a preset leaves out first, and a message."""

    settings: tuple[str, ...]
    message: str


RULES = (
    Rule(
        ("num_agents", "max_agents"),
        lambda config: config.num_agents > config.most_agents,
        lambda config: f"{_given(config, 'num_agents')} is more than {_given(config, 'max_agents')}",
    ),
    Rule(
        ("device",),
        lambda config: config.system == "a3c" and config.device.startswith("gpu"),
        lambda config: (
            f"--system a3c computes on the CPU; it cannot be combined with {_given(config, 'device')}"
        ),
    ),
    Rule(
        ("devices",),
        lambda config: not re.fullmatch(r"(cpu:[1-9]\d?|gpu:\d+(,gpu:\d+)*)", config.devices or "cpu:1"),
        lambda config: f"{_given(config, 'devices')} must be like gpu:0,gpu:1 or cpu:4 (at most cpu:99)",
    ),
    Rule(
        ("devices",),
        lambda config: bool(re.search(r"(gpu:\d+)(,.*)?,\1(,|$)", config.devices or "")),
        lambda config: f"{_given(config, 'devices')} names a device twice",
    ),
    Rule(
        ("sync", "devices"),
        lambda config: config.sync == "none" and bool(re.fullmatch(r"cpu:1|gpu:\d+", config.devices or "")),
        lambda config: (
            f"--sync none is for several devices, and {_given(config, 'devices')} is one; give --sync mean"
        ),
    ),
    Rule(
        ("t_max", "num_agents"),
        lambda config: (
            config.system == "a2c"
            and config.algorithm != "dqn"
            and config.num_agents * config.t_max > 100_000
        ),
        lambda config: (
            f"--system a2c trains on --agents x --t-max states at once, {config.num_agents * config.t_max} "
            "here; it must be at most 100000"
        ),
    ),
    Rule(
        ("replay_size",),
        lambda config: config.algorithm == "dqn" and config.replay_size < config.smallest_replay,
        lambda config: (
            f"{_given(config, 'replay_size')} is too small for {_given(config, 'num_agents')}, "
            f"{_given(config, 't_max')} and {_given(config, 'n_step')}; it must be at least "
            f"{config.smallest_replay}"
        ),
    ),
    Rule(
        ("episodes",),
        lambda config: (
            config.target_score is not None
            and config.episodes is not None
            and config.episodes < config.rolling_episodes
        ),
        lambda config: (
            f"--target-score is for the mean of {config.rolling_episodes} episodes, and "
            f"{_given(config, 'episodes')} are fewer; give more, or fewer --rolling-episodes"
        ),
    ),
)


def spelled(name: str, value: Any = None) -> str:
    """Return the option of a setting as a user types it, such as '--agents', '--agents 8' or
    '--no-clip-rewards'.

    Args:
        name: name of the setting.
        value: its value; None for the option alone.
    """
    option = option_name(Settings.__dataclass_fields__[name])
    if value is False:
        return f"--no-{option}"
    if value is None or value is True:
        return f"--{option}"
    return f"--{option} {plain_text(value)}"


def conflicts(config: Settings) -> Iterator[Conflict]:
    """Yield the rules that the settings break; values need not have been checked."""
    for setting in dataclasses.fields(config):
        if getattr(config, setting.name) != setting.default:
            yield from _conflicts_of(config, setting)
    for rule in RULES:
        if rule.is_broken(config):
            yield Conflict(rule.settings, rule.message(config))


def _conflicts_of(config: Settings, setting: dataclasses.Field) -> Iterator[Conflict]:
    """Yield the rules of one setting that it breaks with its value."""
    name, rule, value = setting.name, setting.metadata, getattr(config, setting.name)
    option = spelled(name, value)
    chooser = config.not_read_by(name)
    if rule["refused_elsewhere"] and chooser:
        readers = _listed(rule[READERS[chooser]], "or")
        usual = f"{_given(config, chooser)} requires {spelled(name, setting.default)}"
        if setting.default is None:
            usual = f"leave it out with {_given(config, chooser)}"
        yield Conflict((name,), f"{option} is for {spelled(chooser)} {readers}; {usual}")
    for needed in rule["needs"]:
        if _applies(needed, setting, value) and not _holds(config, needed):
            message = f"{option} needs {_in_words(needed)}"
            if lacking := _lacking_all(config, needed):
                message += f", which {_given(config, lacking)} does not have"
            elif any(needed.cases.values()):
                defaults = {field.name: field.default for field in dataclasses.fields(config)}
                given = [other for other in needed.cases if getattr(config, other) != defaults[other]]
                message += "".join(f", not {_given(config, other)}" for other in given)
            yield Conflict((name, *needed.cases), _with_reason(message, needed))
    for excluded in rule["excludes"]:
        if _applies(excluded, setting, value) and _holds(config, excluded):
            others = [
                other for other in excluded.cases if _holds(config, Beside({other: excluded.cases[other]}))
            ]
            message = (
                f"{option} cannot be combined with {' or '.join(_given(config, other) for other in others)}"
            )
            yield Conflict((name, *others), _with_reason(message, excluded))


def check_conflicts(config: Settings) -> None:
    """Refuse settings that conflict with one another.

    Raises:
        UserError: settings conflict; the message names them and what would be valid.
    """
    for conflict in conflicts(config):
        raise UserError(conflict.message)


def has_effect(name: str, system: str) -> bool:
    """Return whether `system` reads the setting `name`; True for unknown names, which are refused later."""
    setting = Settings.__dataclass_fields__.get(name)
    return setting is None or system in setting.metadata["systems"]


def unread(config: Settings, name: str, own_loss_reads: bool = False) -> str | None:
    """Return why nothing reads a setting with its value and beside the others; None if something does.

    Args:
        config: all settings of the run.
        name: name of the setting.
        own_loss_reads: whether a user's loss is taken to read the settings of every correction, as it may.
    """
    setting = Settings.__dataclass_fields__[name]
    value = getattr(config, name)
    if setting.metadata["refused_elsewhere"] and value == setting.default:
        return None  # it says what holds everywhere
    if chooser := config.not_read_by(name):
        readers = _listed(setting.metadata[READERS[chooser]], "and")
        return f"{spelled(name)} has no effect with {_given(config, chooser)}; it is for {readers}"
    for wanted in setting.metadata["read_with"]:
        of_correction = ":" in config.loss and "correction" in wanted.cases
        is_read = own_loss_reads if of_correction else _holds(config, wanted)
        if _applies(wanted, setting, value) and not is_read:
            option = spelled(name, value) if wanted.when else spelled(name)
            return _with_reason(f"{option} does nothing without {_in_words(wanted)}", wanted)
    return None


def check_effects(config: Settings, given: Iterable[str]) -> None:
    """Refuse settings that a user gave and that have no effect beside the others.

    Raises:
        UserError: a given setting has no effect; the message names it and what it needs.
    """
    for name in given:
        if reason := unread(config, name, own_loss_reads=True):
            raise UserError(reason)


def without_effect_on(env_id: str, is_screen: bool) -> dict[str, str]:
    """Return the settings that have no effect on an environment, each with the environments that it is for.

    Args:
        env_id: current id of the environment.
        is_screen: whether its states are screens.
    """
    here = {None: True, ATARI_GAMES: env_id.startswith("ALE/"), SCREENS: is_screen}
    environments = {
        setting.name: setting.metadata["environments"] for setting in dataclasses.fields(Settings)
    }
    return {name: needed for name, needed in environments.items() if not here[needed]}


def check_environment(env_id: str, is_screen: bool, given: Iterable[str]) -> None:
    """Refuse settings that a user gave and that have no effect on the environment.

    Args:
        env_id: current id of the environment.
        is_screen: whether its states are screens.
        given: names of the settings that the user gave; unknown ones are ignored.

    Raises:
        UserError: a given setting has no effect; the message names it.
    """
    unread = without_effect_on(env_id, is_screen)
    for name in given:
        if name in unread:
            raise UserError(f"{spelled(name)} has no effect on {env_id}; it is for {unread[name]}")


def only_with(name: str) -> list[str]:
    """Return the options with which alone a setting has an effect, for the help; [] if it always has one."""
    rule = Settings.__dataclass_fields__[name].metadata
    options = []
    for chooser, readers in READERS.items():
        if rule[readers] != Settings.__dataclass_fields__[chooser].metadata["choices"]:
            options.append(f"{spelled(chooser)} {_listed(rule[readers], 'or')}")
    for wanted in rule["read_with"]:
        if not wanted.when or SET in wanted.when:
            options.append(_in_words(wanted))
    return options


def _lacking_all(config: Settings, relation: Beside) -> str | None:
    """Return what reads none of the relation's settings, 'system' or 'algorithm'; None if one is read."""
    choosers = [config.not_read_by(name) for name in relation.cases]
    return choosers[0] if all(choosers) else None


def _applies(relation: Beside, setting: dataclasses.Field, value: Any) -> bool:
    """Return whether a setting has this relation with its value, or with a part of its correction."""
    values = parts_of(value) if setting.name == "correction" and value else [value]
    if SET in relation.when and value != setting.default:
        return True
    return not relation.when or any(value in relation.when for value in values)


def _holds(config: Settings, relation: Beside) -> bool:
    """Return whether any of the other settings has a value of the relation."""
    for name, values in relation.cases.items():
        value = getattr(config, name)
        used = config.correction_parts if name == "correction" else (value,)
        if any(part in values for part in used) or (OWN in values and ":" in str(value)):
            return True
        if not values and value != config.__dataclass_fields__[name].default:
            return True
    return False


def _in_words(relation: Beside) -> str:
    """Return a relation's options, like '--anneal-steps or --anneal-fraction' or '--correction one-step'."""
    options = []
    for name, values in relation.cases.items():
        first = spelled(name, values[0] if values else None)
        options.append(" or ".join([first, *map(plain_text, values[1:])]))
    return " or ".join(options)


def _with_reason(message: str, relation: Beside) -> str:
    return f"{message}: {relation.because}" if relation.because else message


def _given(config: Settings, name: str) -> str:
    """Return the option of a setting with the value that it has."""
    return spelled(name, getattr(config, name))


def _listed(names: Sequence[str], conjunction: str) -> str:
    """Return names as in a sentence, such as 'ga3c, a2c and serial'."""
    *others, last = names
    return f"{', '.join(others)} {conjunction} {last}" if others else last

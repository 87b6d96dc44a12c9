"""The typed keyword arguments of `train` and `resume` are the settings."""

import dataclasses
import inspect
import typing
from collections.abc import Callable
from os import PathLike

import ga3c_tf
from ga3c_tf.api.keywords import ChangeableSettings, RunChanges, TrainSettings
from ga3c_tf.config import FIXED, Config

FUNCTION = str | Callable[..., typing.Any]
PLACE = str | PathLike[str] | None
WIDER = {"network": FUNCTION, "loss": FUNCTION, "run_dir": PLACE, "initial_weights": PLACE}
"""Settings that take more in Python than they hold."""
ELSEWHERE = {"env_id", "remote_agents", "agents_per_actor"}
"""Settings that are no such arguments: the first argument, and what needs the option --ray."""


def type_of(setting):
    hint = WIDER.get(setting.name) or typing.get_type_hints(Config)[setting.name]
    if choices := setting.metadata["choices"]:
        is_optional = type(None) in typing.get_args(hint)
        return typing.Literal[tuple(choices)] | None if is_optional else typing.Literal[tuple(choices)]
    return hint


def test_each_setting_has_its_type():
    settings = {
        setting.name: type_of(setting)
        for setting in dataclasses.fields(Config)
        if setting.name not in ELSEWHERE
    }
    assert typing.get_type_hints(TrainSettings) == {**settings, "serial": bool}
    changeable = typing.get_type_hints(ChangeableSettings)
    assert changeable.keys() == {name for name in settings if name not in FIXED or name == "network"}
    assert typing.get_type_hints(RunChanges) == {**changeable, "env": typing.Any}


def test_train_and_resume_have_them():
    for function, settings in ((ga3c_tf.train, TrainSettings), (ga3c_tf.resume, RunChanges)):
        [*_, keywords] = inspect.signature(function).parameters.values()
        assert keywords.annotation == f"Unpack[{settings.__name__}]"

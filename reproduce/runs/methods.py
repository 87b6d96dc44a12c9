"""A method of the user's own: another loss, network or algorithm in the place of a figure's."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ga3c_tf.config import Config
from ga3c_tf.config.declared.workers import ONE_MODEL
from ga3c_tf.config.presets import PRESETS, preset_beside

NAMES = ("algorithm", "loss", "network")
"""The settings that name a method, in the order in which it is described."""
OF_THE_FIGURE = ("budget", "environment", "run")
"""Groups of settings that a figure decides; those of the others are of the algorithm's preset."""
SUFFIXES = {"ALE": "-atari", "MinAtar": "-small"}
"""What a preset for an environment is called besides its algorithm, by the namespace of the environment."""


def has_system(method: Mapping[str, Any], system: str) -> bool:
    """Return whether a system can have a method: A3C has the actor-critic alone."""
    return "algorithm" not in method or system in ONE_MODEL


def changes_of(method: Mapping[str, Any], plan: Config) -> dict[str, Any]:
    """Return the settings by which a method differs from a figure's run.

    An algorithm has the settings of its preset for the environment. The figure decides the environment, the
    budget and what is logged.

    Args:
        method: values by name of setting, of `NAMES`.
        plan: settings of the figure's run.
    """
    if "algorithm" not in method:
        return dict(method)
    fields = dataclasses.fields(plan)
    names = {setting.name for setting in fields if setting.metadata["group"] in OF_THE_FIGURE} | {"system"}
    given = {name: getattr(plan, name) for name in names if getattr(plan, name) != getattr(Config, name)}
    values = preset_beside(preset_of(method["algorithm"], plan.env_id), {**given, **method})
    usual = {setting.name: setting.default for setting in fields}
    return {name: value for name, value in {**usual, **values}.items() if value != getattr(plan, name)}


def preset_of(algorithm: str, env_id: str) -> str:
    """Return the name of an algorithm's preset for an environment; for vectors it is the algorithm's."""
    preset = algorithm + SUFFIXES.get(env_id.partition("/")[0], "")
    return preset if preset in PRESETS else algorithm

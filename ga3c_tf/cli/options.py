"""Command-line options that several commands share, and options generated from the settings of `Config`."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import rich_click as click
from click.types import IntParamType, convert_type

from ga3c_tf.config import MOST_EPISODE_STEPS, Config, is_optional, setting_type, spelled
from ga3c_tf.config.declaration import GROUPS
from ga3c_tf.config.presets import PRESETS, USUAL_PRESET
from ga3c_tf.config.rules import only_with
from ga3c_tf.config.settings import BEYOND_PAPER
from ga3c_tf.errors import UserError

FIRST = ("steps", "minutes", "episodes", "target_score", "seed", "run_dir")
"""Settings that most runs need, which the help shows in its first panel."""


class FiniteRange(click.FloatRange):
    """A range of finite numbers; click's own lets not-a-number through."""

    def convert(self, value, param, ctx):
        """Return the number, or fail with a message for the user."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


class WholeNumber(IntParamType):
    """A whole number, which may be written as 4e6."""

    def convert(self, value, param, ctx):
        """Return the number, or fail with a message for the user."""
        if isinstance(value, str) and "e" in value.lower():
            with contextlib.suppress(ValueError):
                if (number := float(value)).is_integer():
                    return int(number)
        return super().convert(value, param, ctx)


def setting_param(name: str) -> click.ParamType:
    """Return how the words of the command line give a setting."""
    kind = setting_type(name)
    return WholeNumber() if kind is int else convert_type(kind)


def number_in_words(kind: click.ParamType) -> str | None:
    """Return what a number must be, such as 'a whole number from 1 to 1000'; None if `kind` is no number."""
    words = {"integer": "a whole number", "float": "a number"}.get(kind.name.removesuffix(" range"))
    least, most = getattr(kind, "min", None), getattr(kind, "max", None)
    if words and most is not None:
        return f"{words} from {least} to {most}"
    if words and least is not None:
        return f"{words} of at least {least}"
    return words


def config_options(command):
    """Add one option per setting of the Config except the environment, in a panel per group of settings."""
    fields = dataclasses.fields(Config)
    names = [setting.name for group in GROUPS for setting in fields if setting.metadata["group"] == group]
    names.remove("env_id")
    return setting_options(names, PRESETS[USUAL_PRESET])(command)


def setting_options(names: Sequence[str], usual: Mapping[str, Any]):
    """Return a decorator that adds the options of these settings; an option that is not given is None.

    Args:
        names: names of the settings in `Config`.
        usual: values of settings with which the command starts, where they are not those of `Config`.
    """

    def add(command):
        for name in reversed(names):
            setting = Config.__dataclass_fields__[name]
            rule = setting.metadata
            kind = setting_type(name)
            value = usual.get(name, setting.default)
            text = rule["help"]
            if kind is bool:
                value = "on" if value else "off"
            if value is not None:
                text += f" [default: {value}]"
            if options := only_with(name):
                text += f" [only with {' and '.join(options)}]"
            if name in BEYOND_PAPER:
                text += " [not in the paper]"
            declaration = f"{spelled(name, True)}/{spelled(name, False)}" if kind is bool else spelled(name)
            command = click.option(
                declaration,
                name,
                type=click.Choice(rule["choices"]) if rule["choices"] else setting_param(name),
                default=None,
                help=text,
                panel="Options" if name in FIRST else rule["group"].capitalize(),
            )(command)
        return command

    return add


def run_argument(command):
    """Add the argument RUN, a run folder."""
    return click.argument("run", type=click.Path(path_type=Path))(command)


def changes_option(command):
    """Add the option --set, which changes settings of a run; the command gets a dict of values by name."""
    text = (
        "Change a setting, named as in the run's config.json ('learning_rate=3e-4'); 'none' clears an "
        "optional one, except the correction, which has a value of this name. May be given several times. "
        "Settings that hold for a whole run, such as the environment, the system, the network and the seed, "
        "cannot be changed."
    )
    return click.option(
        "--set", "changes", multiple=True, metavar="NAME=VALUE", callback=_changes, help=text
    )(command)


def _changes(context: click.Context, parameter: click.Parameter, words: Sequence[str]) -> dict[str, Any]:
    """Parse NAME=VALUE words into values by name; the Config rejects unknown names later."""
    changes: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise click.BadParameter(f"{word!r} is not NAME=VALUE.", context, parameter)
        setting = Config.__dataclass_fields__.get(name)
        if setting and text == "none" and is_optional(name) and name != "correction":
            changes[name] = None
        elif setting:
            try:
                changes[name] = setting_param(name).convert(text, parameter, context)
            except click.BadParameter as error:
                raise click.BadParameter(f"{name}: {error.message}", context, parameter) from None
        else:
            changes[name] = text
    return changes


def ray_option(command):
    """Add the option that names the Ray cluster of the remote agents."""
    text = "Address of the Ray cluster that the remote agents live in: 'auto', or 'host:6379'."
    return click.option("--ray", help=text)(command)


def trust_option(command):
    """Add the option that allows a run folder to name code to import."""
    text = "Allow importing the modules of a custom environment, network or loss that the settings name."
    return click.option("--trust-code", is_flag=True, help=text)(command)


def agent_argument(command):
    """Add the argument RUN, and the option --pretrained that names published weights instead."""
    text = (
        "Name of published weights, such as pong, or hf:OWNER/NAME on the Hugging Face Hub, instead of RUN. "
        "RUN may be such a name too."
    )
    command = click.option("--pretrained", help=text)(command)
    return click.argument("run", required=False, type=click.Path(path_type=Path))(command)


MOST_DIGITS = 18
"""Maximum number of digits in the agent steps of a checkpoint."""


def _which_checkpoint(context: click.Context, option: click.Parameter, given: str) -> str | int:
    """Return 'best', 'latest' or the agent steps."""
    if given in ("best", "latest"):
        return given
    if given.isdecimal() and len(given) <= MOST_DIGITS:
        return int(given)
    raise UserError(f"--checkpoint is {given!r}; it must be 'best', 'latest' or the agent steps of one")


checkpoint_option = click.option(
    "--checkpoint",
    default="best",
    callback=_which_checkpoint,
    show_default=True,
    help="'best' by rolling score, 'latest', or a number of agent steps.",
)


def agent_options(command):
    """Add the options that choose a trained agent and how it acts."""
    for option in (
        click.option("--device", default="cpu", show_default=True, help="'auto', 'cpu', 'gpu' or 'gpu:N'."),
        click.option(
            "--max-episode-steps",
            type=click.IntRange(1),
            default=MOST_EPISODE_STEPS,
            show_default=True,
            help="Maximum number of agent steps in an episode.",
        ),
        click.option(
            "--seed",
            type=click.IntRange(0, 2**31 - 1),
            default=0,
            show_default=True,
            help="Seed of the environments and of the sampled actions.",
        ),
        click.option(
            "--sample/--greedy",
            default=True,
            show_default=True,
            help="Sample actions from the policy, or take the most probable one.",
        ),
        checkpoint_option,
    ):
        command = option(command)
    return trust_option(command)


def cluster_options(command):
    """Add the options for running on a Ray cluster."""
    for option in (
        click.option(
            "--detach",
            is_flag=True,
            help="With --ray: Ctrl-C ends this command only; the same command finds the runs again.",
        ),
        click.option(
            "--gpus-per-run",
            type=FiniteRange(0),
            help="With --ray: GPUs, or the share of one, for each run [default: "
            "1 if run and cluster can use one].",
        ),
        click.option(
            "--cpus-per-run",
            type=click.IntRange(1),
            help="With --ray: cores that each run gets for itself [default: one core per 8 agents].",
        ),
        click.option(
            "--storage",
            help="With --ray: path or URL that all nodes see, for the runs [default: the results folder].",
        ),
        click.option(
            "--ray",
            "address",
            help="Run on the Ray cluster at this host:port or 'auto'; 'local' starts one here.",
        ),
    ):
        command = option(command)
    return command

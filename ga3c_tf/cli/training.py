"""The commands that train: `train` and `resume`."""

from __future__ import annotations

import functools
import os
import secrets
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import rich_click as click
from click.core import ParameterSource
from click.globals import get_current_context

from ga3c_tf.cli.options import (
    WholeNumber,
    changes_option,
    config_options,
    ray_option,
    run_argument,
    trust_option,
)
from ga3c_tf.cli.terminal import command_line, signals_to_answer
from ga3c_tf.config import Config
from ga3c_tf.config.presets import PRESETS, USUAL_PRESET, left_out
from ga3c_tf.console import OutputClosed, discard_unwritten, say, warn
from ga3c_tf.errors import BudgetReached, DeviceStopped, Diverged, UserError
from ga3c_tf.files import json_text
from ga3c_tf.host.signals import ENDING
from ga3c_tf.plugins import named_code
from ga3c_tf.runs import outcomes

TUNED = {"small": "tuned", "minatar": "tuned-small", "mlp-two-trunks": "tuned-vector"}
"""Preset that is tuned for some kind of observations, by the network that fits them."""


def _refusals_as_json(command: Callable[..., int]) -> Callable[..., int]:
    """Decorate a command so that with --json it also prints rejected input as a JSON object."""

    @functools.wraps(command)
    def with_json(*arguments, as_json: bool, **named) -> int:
        try:
            return command(*arguments, as_json=as_json, **named)
        except BudgetReached:
            _print_ended(outcomes.BUDGET_REACHED, as_json)
            raise
        except UserError:
            _print_ended(outcomes.BAD_INPUT, as_json)
            raise

    return with_json


@click.command()
@click.argument("env_id")
@click.option(
    "--preset",
    type=click.Choice(list(PRESETS)),
    default=USUAL_PRESET,
    show_default=True,
    help="Settings to start from: 'default' (the paper's, where it gives them), 'paper' (the same, but the "
    "adjustment changes one number at a time), 'nvlabs' (the authors' code), 'tuned' (PPO-like, for Atari), "
    "'tuned-small' (for MinAtar), 'tuned-vector' (for vectors, such as CartPole's), 'pqn' and 'dqn' "
    "(Q-learning for vectors), 'pqn-small' and 'dqn-small' (for MinAtar), 'dqn-atari' (for Atari) or 'smoke' "
    "(seconds, learns nothing). Options override them, and any budget option replaces the preset's budget.",
)
@config_options
@click.option(
    "--json", "as_json", is_flag=True, help="Print the summary as one JSON object on the last line."
)
@ray_option
@click.option_panel("Options")  # first
@_refusals_as_json
def train(env_id: str, preset: str, as_json: bool, ray: str | None, **settings) -> int:
    """Train an agent on the Gymnasium environment ENV_ID, such as ALE/Pong-v5 or CartPole-v1.

    Without a budget (--steps, --minutes or --episodes, or the preset's own) or --target-score, training
    continues until Ctrl-C.

    \b
    ga3c-tf train ALE/Pong-v5 --preset tuned
    ga3c-tf train MinAtar/Breakout-v1 --preset tuned-small --minutes 5 --run-dir runs/breakout
    ga3c-tf train CartPole-v1 --preset tuned-vector --steps 100000 --seed 1
    """  # noqa: D301 - click keeps the lines of a paragraph that begins with a backspace
    from ga3c_tf.runner import new_training

    given = {name: value for name, value in settings.items() if value is not None}
    config = Config.from_preset(preset, {"seed": secrets.randbelow(2**31), **given, "env_id": env_id})
    training, run = new_training(config, command_line(), warn, ray, given)
    by_default = get_current_context().get_parameter_source("preset") == ParameterSource.DEFAULT
    learns_policy = run.config.algorithm == "actor-critic"
    if by_default and learns_policy and (tuned := TUNED.get(run.config.network)):
        say(
            "ga3c-tf: the default preset has the paper's settings; "
            f"--preset {tuned} is tuned for such observations"
        )
    elif not by_default and (left := left_out(preset, run.config, given)):
        say(f"ga3c-tf: left out of --preset {preset}, as they conflict or do nothing here: {', '.join(left)}")
    return _run(training, run, as_json)


@click.command()
@run_argument
@click.option("--steps", type=WholeNumber(), help="Total agent steps to reach, including earlier sessions.")
@click.option("--minutes", type=float, help="Total minutes of training to reach, including earlier sessions.")
@click.option("--episodes", type=WholeNumber(), help="Total episodes to reach, including earlier sessions.")
@click.option("--target-score", type=float, help="Rolling score to reach; the budget stays.")
@changes_option
@click.option(
    "--json", "as_json", is_flag=True, help="Print the summary as one JSON object on the last line."
)
@trust_option
@ray_option
@_refusals_as_json
def resume(run: Path, changes: dict, as_json: bool, trust_code: bool, ray: str | None, **ends) -> int:
    """Continue the training in the folder RUN from its newest checkpoint.

    Without --steps, --minutes or --episodes, the run's own budget applies. Those that are given replace it,
    and include what has been trained already.
    """
    from ga3c_tf.runner import resumed_training

    changes |= {name: value for name, value in ends.items() if value is not None}
    return _run(*resumed_training(run, changes, command_line(), warn, trust_code, ray), as_json)


def _run(training, run, as_json: bool) -> int:
    from ga3c_tf.status import beginning, status_for

    received = _answer_signals(training)
    say(beginning(run.config, run.path))
    try:
        with status_for(f"{run.config.env_id}  {run.path}") as status:
            summary = training.run(status.show)
    except OutputClosed:
        raise
    except (Exception, SystemExit) as error:  # user code may end the program
        return _failed(error, run.path, as_json)
    finally:
        run.close()
    for number in ENDING:  # everything is saved, so a late signal must not change the exit code
        signal.signal(number, signal.SIG_IGN)
    say(json_text(summary) if as_json else _ending(summary, run.config))
    discard_unwritten()
    return 128 + received[0] if received else 0


def _answer_signals(training) -> list[int]:
    """Return a list that gets the first signal to end, which stops the training. A second one kills it."""
    received: list[int] = []

    def on_signal(number, frame):
        if received:
            training.kill()
            if sys.stdout.isatty():
                os.write(sys.stdout.fileno(), b"\x1b[?25h\n")  # the live panel hid the cursor
            os._exit(128 + number)
        received.append(number)
        training.stop(outcomes.INTERRUPTED)

    for number in signals_to_answer():
        signal.signal(number, on_signal)
    return received


def _failed(error: BaseException, run: Path, as_json: bool) -> int:
    """Say why a training ended early, and return the exit code."""
    from ga3c_tf.runs.folder import has_checkpoint
    from ga3c_tf.systems.saving import NotSaved

    if isinstance(error, Diverged):
        _print_ended(outcomes.DIVERGED, as_json)
        warn(f"the training diverged and was stopped, the last checkpoint remains. {error}")
        return 1
    _print_ended(outcomes.NOT_SAVED if isinstance(error, NotSaved) else outcomes.FAILED, as_json)
    if not isinstance(error, NotSaved | DeviceStopped):
        say(traceback.format_exc().rstrip(), sys.stderr)
    elif has_checkpoint(run):
        warn(f"{error}; what was saved before remains")
    else:
        warn(f"{error}; nothing was saved; remove {run}")
    return 1


def _ending(summary: dict, config: Config) -> str:
    from ga3c_tf.status import ending
    from ga3c_tf.trained.pretrained import random_score

    return ending(summary, bool(named_code(config)), random_score(config))


def _print_ended(ended: str, as_json: bool) -> None:
    """Print why a training ended early as one JSON object, if `as_json`; a readable message follows."""
    if as_json:
        say(json_text({"ended": ended}))

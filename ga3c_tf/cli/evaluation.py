"""The command `evaluate`."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from click.core import ParameterSource
from click.globals import get_current_context

from ga3c_tf.cli.agents import named_agent
from ga3c_tf.cli.options import FiniteRange, agent_argument, agent_options
from ga3c_tf.cli.terminal import exit_on_signals
from ga3c_tf.errors import UserError
from ga3c_tf.files import check_writable, json_text, write_aside

if TYPE_CHECKING:
    from ga3c_tf.trained.policies import ModelAgent, RandomAgent


@click.command()
@agent_argument
@click.option(
    "--episodes",
    type=click.IntRange(1, 100_000),
    default=30,
    show_default=True,
    help="Number of whole episodes.",
)
@agent_options
@click.option(
    "--repeat-action-probability",
    type=FiniteRange(0, 1),
    help="Atari: probability that a frame repeats the previous action.  [default: as in training]",
)
@click.option(
    "--noop-max",
    type=click.IntRange(0, 10_000),
    help="Atari: at most this many random no-op frames at reset.  [default: as in training]",
)
@click.option(
    "--epsilon",
    type=FiniteRange(0, 1),
    default=0.0,
    show_default=True,
    help="Q-learning: probability of a random action instead of the best one.",
)
@click.option(
    "--random", is_flag=True, help="Score a uniformly random policy in the run's environment instead."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write the result to this file, as JSON.",
)
def evaluate(
    run: Path | None,
    pretrained: str | None,
    episodes: int,
    checkpoint: str | int,
    sample: bool,
    seed: int,
    max_episode_steps: int,
    device: str,
    trust_code: bool,
    repeat_action_probability: float | None,
    noop_max: int | None,
    epsilon: float,
    random: bool,
    as_json: bool,
    output: Path | None,
) -> None:
    """Evaluate the trained agent of the folder RUN, or published weights, over whole episodes with raw
    scores.
    """
    from ga3c_tf.runs.folder import read_config
    from ga3c_tf.trained.environments import atari_changes
    from ga3c_tf.trained.opening import open_agent, open_random_agent

    if output is not None and not output.name:
        raise UserError(f"--output {str(output)!r} is no file to write to; name one")
    given_device = get_current_context().get_parameter_source("device") != ParameterSource.DEFAULT
    if random and (checkpoint != "best" or not sample or given_device or epsilon):
        raise UserError(
            "--random is a policy of its own; it cannot be combined with --checkpoint, --greedy, --device or "
            "--epsilon"
        )
    if output is not None:
        _check_output(output)
    run = named_agent(run, pretrained, fetch=not random)
    changes = atari_changes(
        read_config(run).env_id, repeat_action_probability=repeat_action_probability, noop_max=noop_max
    )
    agent: ModelAgent | RandomAgent
    if random:
        agent = open_random_agent(run, seed, trust_code, changes)
    else:
        agent = open_agent(run, checkpoint, not sample, seed, device, trust_code, changes, epsilon)
    exit_on_signals()

    from ga3c_tf.trained.evaluation import evaluate as play_episodes
    from ga3c_tf.trained.evaluation import summary
    from ga3c_tf.trained.pretrained import random_score

    result = summary(agent, play_episodes(agent, episodes, seed, max_episode_steps), not sample, seed)
    policy = "random policy" if random else f"after {result['agent_steps']:,} agent steps"
    other = None if random or result["episodes_cut"] else random_score(agent.config)
    print(json_text(result) if as_json else _in_words(result, policy, other))
    if output:
        _write(output, result)


def _in_words(result: dict[str, Any], policy: str, random_score: float | None) -> str:
    """Format the summary of an evaluation in three lines.

    Args:
        result: summary from `evaluation.summary`.
        policy: description of the policy that was evaluated.
        random_score: mean score of the random policy, if it is known and another one.
    """
    from ga3c_tf.status import beside_random
    from ga3c_tf.trained.evaluation import interval_in_words

    return (
        f"{result['env_id']}, {policy}: mean {result['mean']:.2f} ({interval_in_words(result)}), "
        f"standard deviation {result['std']:.2f}, median {result['median']:.2f}"
        f"{beside_random(random_score)}\n"
        f"mean length: {result['mean_length']:,.0f} steps\n"
        f"protocol: {result['protocol']}"
    )


def _check_output(file: Path) -> None:
    """Check that a file can be written, before the episodes are played.

    Raises:
        UserError: it cannot be written.
    """
    try:
        if not _is_device(file):
            check_writable(Path(os.path.realpath(file)).parent)  # where it is written beside itself
        elif not os.access(file, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.filename}: {error.strerror}") from None


def _write(file: Path, result: dict[str, Any]) -> None:
    """Write a result as JSON; create the file's folder if it does not exist.

    A link stays one, and a pipe or device is written to.
    """
    text = json_text(result, indent=2) + "\n"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if _is_device(file):
            file.write_text(text)
        else:
            write_aside(Path(os.path.realpath(file)), text)
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror}") from None


def _is_device(file: Path) -> bool:
    """Return whether a file is a pipe or a device, such as /dev/stdout, which is not replaced."""
    return file.exists() and not file.is_file()

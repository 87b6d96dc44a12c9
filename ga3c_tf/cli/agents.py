"""The commands about trained agents: `evaluate`, `play`, `publish` and `export`."""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import rich_click as click
from click.core import ParameterSource
from click.globals import get_current_context

from ga3c_tf.cli.options import FiniteRange, agent_argument, agent_options, run_argument, trust_option
from ga3c_tf.cli.terminal import command_line, exit_on_signals
from ga3c_tf.config import spelled
from ga3c_tf.config.declaration import ATARI_GAMES
from ga3c_tf.console import counted, warn
from ga3c_tf.errors import UserError
from ga3c_tf.files import check_writable, json_text, write_aside

MOST_DIGITS = 18
"""Maximum number of digits in the agent steps of a checkpoint."""


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
    checkpoint: str,
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
    run = _agent_folder(run, pretrained, fetch=not random)
    _check_agent(run, checkpoint, trust_code)
    changes = _atari_changes(
        run, {"repeat_action_probability": repeat_action_probability, "noop_max": noop_max}
    )

    from ga3c_tf.trained.baselines import random_score
    from ga3c_tf.trained.evaluation import evaluate as play_episodes
    from ga3c_tf.trained.evaluation import summary
    from ga3c_tf.trained.policies import RandomAgent

    if random:
        agent = RandomAgent(run, seed, changes)
    else:
        agent = _trained_agent(run, checkpoint, sample, seed, device, changes, epsilon)
    exit_on_signals()
    result = summary(agent, play_episodes(agent, episodes, seed, max_episode_steps), not sample, seed)
    policy = "random policy" if random else f"after {result['agent_steps']:,} agent steps"
    other = None if random else random_score(agent.config)
    print(json_text(result) if as_json else _in_words(result, policy, other))
    if output:
        _write(output, result)


@click.command()
@agent_argument
@click.option("--video", type=click.Path(path_type=Path, dir_okay=False), help="File to write: .mp4 or .gif.")
@click.option("--window", is_flag=True, help="Show a window instead; needs a display.")
@click.option(
    "--episodes", type=click.IntRange(1, 1000), default=1, show_default=True, help="Number of whole episodes."
)
@agent_options
def play(
    run: Path | None,
    pretrained: str | None,
    video: Path | None,
    window: bool,
    episodes: int,
    checkpoint: str,
    sample: bool,
    seed: int,
    max_episode_steps: int,
    device: str,
    trust_code: bool,
) -> None:
    """Show episodes of the trained agent of the folder RUN, or of published weights, in a video file or a
    window.
    """
    if video is not None and window:
        raise UserError("play takes --video FILE or --window, not both")
    if video is None and not window:
        raise UserError("play needs either --video FILE or --window")
    run = _agent_folder(run, pretrained)
    _check_agent(run, checkpoint, trust_code)

    from ga3c_tf.trained.playback import play_window, record

    agent = _trained_agent(run, checkpoint, sample, seed, device)
    exit_on_signals()

    def report(scores: list[float]) -> None:
        values = f"score{'s' if len(scores) > 1 else ''} {', '.join(f'{score:g}' for score in scores)}"
        print(
            f"{'shown' if video is None else video}: {counted(len(scores), 'episode')}, {values}", flush=True
        )

    if video is None:
        play_window(agent, episodes, seed, max_episode_steps, report)
    else:
        record(agent, episodes, seed, video, max_episode_steps, report)


@click.command()
@run_argument
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--episodes",
    type=click.IntRange(1, 100_000),
    default=30,
    show_default=True,
    help="Number of whole episodes.",
)
@click.option(
    "--checkpoint", default="best", show_default=True, help="'best', 'latest', or a number of agent steps."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["numpy", "huggingface"]),
    default="numpy",
    show_default=True,
    help="'numpy': weights as a NumPy archive of at most 5 MB. 'huggingface': a folder for the Hugging Face "
    "Hub, with weights as safetensors of any size, a video, and a card with metadata.",
)
@trust_option
def publish(run: Path, folder: Path, episodes: int, checkpoint: str, form: str, trust_code: bool) -> None:
    """Score the run RUN, and write its weights, settings, scores and a model card to FOLDER.

    With --format huggingface, RUN may also be published weights, whose scores and card are kept.
    """
    from ga3c_tf.trained.export import check_packages
    from ga3c_tf.trained.pretrained import agent_folder
    from ga3c_tf.trained.weights import check_free, file_of

    for_hub = form == "huggingface"
    if for_hub:
        check_packages("--format huggingface", ["safetensors", "huggingface_hub"])
        run = agent_folder(run)
    _check_agent(run, checkpoint, trust_code)
    check_free(folder)

    from ga3c_tf.cli.figures import draw_learning_curve
    from ga3c_tf.trained.publishing.publish import publish as write
    from ga3c_tf.trained.publishing.publish import publish_weights

    agent = _trained_agent(run, checkpoint, True, 0, "cpu")
    exit_on_signals()
    if for_hub and file_of(run):
        score = publish_weights(run, folder, agent)
    else:
        command = shlex.join(command_line())
        score = write(run, folder, agent, episodes, 0, command, draw_learning_curve, for_hub)
    print(f"{folder}: {score['env_id']}, mean {score['mean']:.2f} of {counted(score['episodes'], 'episode')}")
    if for_hub:
        print(f"to upload it: hf upload USER/{folder.resolve().name} {shlex.quote(str(folder))}")


@click.command()
@agent_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["onnx", "savedmodel", "keras"]),
    help="ONNX, TensorFlow's SavedModel (a folder), or Keras.  [default: by the suffix of --output]",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File to write.  [default: RUN.onnx, RUN-savedmodel or RUN.keras in the current folder]",
)
@click.option(
    "--episodes",
    type=click.IntRange(0, 100_000),
    default=0,
    show_default=True,
    help="Episodes to play for a score in the metadata; published weights already have one.",
)
@click.option(
    "--checkpoint", default="best", show_default=True, help="'best', 'latest', or a number of agent steps."
)
@trust_option
def export(
    run: Path | None,
    pretrained: str | None,
    form: str | None,
    output: Path | None,
    episodes: int,
    checkpoint: str,
    trust_code: bool,
) -> None:
    """Export the network of the trained agent of RUN for use without this package, with a JSON file of
    metadata.
    """
    from ga3c_tf.trained.export import check_export, default_file, export_agent, form_of, metadata_of

    if form is None:
        if output is None:
            raise UserError("name a --format, or an --output that ends in .onnx or .keras")
        form = form_of(output)
    run = _agent_folder(run, pretrained)
    file = output or default_file(run, form)
    check_export(file, form)
    _check_agent(run, checkpoint, trust_code)

    from ga3c_tf.trained.evaluation import evaluate as play_episodes
    from ga3c_tf.trained.evaluation import summary

    agent = _trained_agent(run, checkpoint, True, 0, "cpu")
    exit_on_signals()
    score = summary(agent, play_episodes(agent, episodes, 0), False, 0) if episodes else None
    export_agent(agent, file, form, score)
    print(f"{file}: policy and value of {agent.config.env_id}; {metadata_of(file)} says how to use it")


def _agent_folder(run: Path | None, pretrained: str | None, fetch: bool = True) -> Path:
    """Return the folder of the agent: a run folder or published weights.

    Args:
        run: RUN of the command line; the name of published weights if no such path exists.
        pretrained: name of published weights.
        fetch: whether published weights that are not here are fetched; otherwise the folder may only have
            their card.
    """
    from ga3c_tf.trained.pretrained import agent_folder, published_card, published_folder

    if run is not None and pretrained is None:
        return agent_folder(run, fetch)
    if run is None and pretrained is not None:
        return published_folder(pretrained) if fetch else published_card(pretrained)
    raise UserError("name either a folder RUN or --pretrained weights")


def _check_agent(run: Path, checkpoint: str, trust_code: bool) -> None:
    """Check the arguments that name a trained agent, and prepare TensorFlow for its states.

    Raises:
        UserError: `checkpoint` is invalid, `run` is not a run folder, or its settings name code that is not
            trusted.
    """
    from ga3c_tf.environments.environment import describe_environment
    from ga3c_tf.host.libraries import enable_onednn
    from ga3c_tf.plugins import check_trust
    from ga3c_tf.runs.folder import read_config

    if checkpoint not in ("best", "latest") and not (
        checkpoint.isdecimal() and len(checkpoint) <= MOST_DIGITS
    ):
        raise UserError(
            f"--checkpoint is {checkpoint!r}; it must be 'best', 'latest' or the agent steps of one"
        )
    config = read_config(run)
    check_trust(config, run, trust_code)
    if describe_environment(config).is_screen:
        enable_onednn()


def _atari_changes(run: Path, values: Mapping[str, float | None]) -> dict[str, float]:
    """Return the settings of Atari games that are given, by name.

    Raises:
        UserError: one is given, and the agent plays something else.
    """
    from ga3c_tf.runs.folder import read_config

    given = {name: value for name, value in values.items() if value is not None}
    env_id = read_config(run).env_id
    if given and not env_id.startswith("ALE/"):
        raise UserError(f"{spelled(next(iter(given)))} is for {ATARI_GAMES}; this agent plays {env_id}")
    return given


def _trained_agent(
    run: Path,
    checkpoint: str,
    sample: bool,
    seed: int,
    device: str,
    changes: Mapping[str, Any] = MappingProxyType({}),
    epsilon: float = 0.0,
):
    from ga3c_tf.model.device import configure_device
    from ga3c_tf.trained.policies import TrainedAgent

    which = int(checkpoint) if checkpoint.isdecimal() else checkpoint
    return TrainedAgent(run, which, not sample, seed, configure_device(device), warn, changes, epsilon)


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
        if not file.exists():
            check_writable(file.parent)
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
        target = Path(os.path.realpath(file))
        if target.exists() and not target.is_file():
            target.write_text(text)
        else:
            write_aside(target, text)
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror}") from None

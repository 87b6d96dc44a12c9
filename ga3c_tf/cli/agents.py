"""The commands `play`, `publish` and `export`, and the folder of the agent that a command line names."""

from __future__ import annotations

import shlex
from pathlib import Path

import rich_click as click

from ga3c_tf.cli.options import (
    agent_argument,
    agent_options,
    checkpoint_option,
    run_argument,
    trust_option,
)
from ga3c_tf.cli.terminal import command_line, exit_on_signals
from ga3c_tf.console import counted
from ga3c_tf.errors import UserError


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
    checkpoint: str | int,
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

    from ga3c_tf.trained.opening import open_agent
    from ga3c_tf.trained.video import check_display, check_video

    if video is None:
        check_display()
    else:
        check_video(video)
    run = named_agent(run, pretrained)

    agent = open_agent(run, checkpoint, not sample, seed, device, trust_code)
    exit_on_signals()

    from ga3c_tf.trained.playback import play_window, record

    def report(scores: list[float]) -> None:
        values = f"score{'s' if len(scores) > 1 else ''} {', '.join(f'{score:,.10g}' for score in scores)}"
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
    help="Number of whole episodes for the score; published weights already have one.  [default: 30]",
)
@checkpoint_option
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
def publish(
    run: Path, folder: Path, episodes: int | None, checkpoint: str | int, form: str, trust_code: bool
) -> None:
    """Score the run RUN, and write its weights, settings, scores and a model card to FOLDER.

    With --format huggingface, RUN may also be published weights, whose scores and card are kept.
    """
    from ga3c_tf.trained.exporting.export import check_packages
    from ga3c_tf.trained.opening import open_agent
    from ga3c_tf.trained.pretrained import agent_folder
    from ga3c_tf.trained.weights import check_free, file_of

    for_hub = form == "huggingface"
    if for_hub:
        check_packages("--format huggingface", ["safetensors", "huggingface_hub"])
        run = agent_folder(run)
        if file_of(run) and episodes is not None:
            raise UserError(f"{run} has weights, whose score is kept; leave --episodes out")
    elif file_of(run):
        raise UserError(
            f"{run} has weights only; publish the run that they are of, which has checkpoints to choose from"
        )
    check_free(folder)
    agent = open_agent(run, checkpoint, False, 0, "cpu", trust_code)
    exit_on_signals()

    from ga3c_tf.cli.figures import draw_learning_curve
    from ga3c_tf.trained.publishing.publish import publish as write
    from ga3c_tf.trained.publishing.publish import publish_weights

    if for_hub and file_of(run):
        score = publish_weights(run, folder, agent)
    else:
        command = shlex.join(command_line())
        score = write(run, folder, agent, episodes or 30, 0, command, draw_learning_curve, for_hub)
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
@checkpoint_option
@trust_option
def export(
    run: Path | None,
    pretrained: str | None,
    form: str | None,
    output: Path | None,
    episodes: int,
    checkpoint: str | int,
    trust_code: bool,
) -> None:
    """Export the network of the trained agent of RUN for use without this package, with a JSON file of
    metadata.
    """
    from ga3c_tf.trained.exporting.export import (
        check_export,
        default_file,
        export_agent,
        form_of,
        metadata_of,
    )
    from ga3c_tf.trained.opening import open_agent

    if form is None:
        if output is None:
            raise UserError("name a --format, or an --output that ends in .onnx or .keras")
        form = form_of(output)
    run = named_agent(run, pretrained)
    file = output or default_file(run, form)
    check_export(file, form)
    agent = open_agent(run, checkpoint, False, 0, "cpu", trust_code)
    exit_on_signals()

    from ga3c_tf.trained.evaluation import evaluate as play_episodes
    from ga3c_tf.trained.evaluation import summary

    score = summary(agent, play_episodes(agent, episodes, 0), False, 0) if episodes else None
    export_agent(agent, file, form, score)
    print(f"{file}: policy and value of {agent.config.env_id}; {metadata_of(file)} says how to use it")


def named_agent(run: Path | None, pretrained: str | None, fetch: bool = True) -> Path:
    """Return the folder of the agent: a run folder or published weights.

    Args:
        run: RUN of the command line; the name of published weights if no such path exists.
        pretrained: name of published weights.
        fetch: whether published weights that are not here are fetched; otherwise the folder may only have
            their card.
    """
    from ga3c_tf.trained.pretrained import agent_folder, published_folder

    if run is not None and pretrained is None:
        return agent_folder(run, fetch)
    if run is None and pretrained is not None:
        return published_folder(pretrained, fetch)
    raise UserError("name either a folder RUN or --pretrained weights")

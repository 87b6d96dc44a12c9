"""The command `ga3c-tf`. Whatever a command needs is imported inside it, so that `--help` answers at once.

What starts TensorFlow, which takes seconds, is imported after the checks, so that bad input is refused at once too.
"""

from __future__ import annotations

import errno
import functools
import json
import math
import os
import secrets
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import rich_click as click
from click.exceptions import Exit, NoArgsIsHelpError

from ga3c_tf import __version__
from ga3c_tf.cli.options import (
    agent_argument,
    agent_options,
    changes_option,
    cluster_options,
    config_options,
    ray_option,
    run_argument,
    setting_options,
    trust_option,
)
from ga3c_tf.config import PRESETS, USUAL_PRESET, Config
from ga3c_tf.console import discard_unwritten, open_closed_output, say
from ga3c_tf.errors import BudgetReached, UserError
from ga3c_tf.runs import outcomes
from ga3c_tf.signals import ENDING

BENCH_SETTINGS = (
    "num_agents",
    "agent_processes",
    "num_predictors",
    "num_trainers",
    "min_training_batch",
    "t_max",
    "network",
)

OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What keeps output from being written though nothing is wrong with the command: full disks, a terminal that closed."""


def main() -> None:
    """Run the command. Exit codes: 0 done, 1 internal error, 2 bad input, 128 + n ended by signal n."""
    open_closed_output()
    try:
        code = cli.main(standalone_mode=False) or 0
        sys.stdout.flush()
        sys.exit(code)
    except Exit as stop:
        sys.exit(stop.exit_code)
    except NoArgsIsHelpError as error:
        print(error.format_message())
        sys.exit(2)
    except click.UsageError as error:
        hint = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
        fail(f"{error.format_message()}{hint}")
    except (click.ClickException, UserError) as error:
        fail(str(error))
    except (click.Abort, KeyboardInterrupt):
        _warn("interrupted")
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        if error.errno not in OUTPUT_ERRORS:
            raise
        _warn(f"cannot write the output: {error.strerror}")
        sys.exit(1)
    finally:
        discard_unwritten()


def fail(message: str) -> None:
    """Print one line and end with exit code 2."""
    _warn(" ".join(message.split()))
    sys.exit(2)


def _refusals_as_json(command: Callable[..., int]) -> Callable[..., int]:
    """Make a command with --json also print, as JSON, that its input was refused."""

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


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="ga3c-tf")
def cli() -> None:
    """GA3C: reinforcement learning through asynchronous advantage actor-critic on a GPU (ICLR 2017)."""


@cli.command()
@click.argument("env_id")
@click.option(
    "--preset",
    type=click.Choice(list(PRESETS)),
    default=USUAL_PRESET,
    show_default=True,
    help="Settings to start from; options given here come on top, and any budget replaces the preset's.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object on the last line.")
@ray_option
@config_options
@_refusals_as_json
def train(env_id: str, preset: str, as_json: bool, ray: str | None, **settings) -> int:
    """Train an agent on the Gymnasium environment ENV_ID, such as ALE/Pong-v5 or CartPole-v1."""
    from ga3c_tf.runner import new_training

    given = {name: value for name, value in settings.items() if value is not None}
    config = Config.from_preset(preset, {"seed": secrets.randbelow(2**31), **given, "env_id": env_id})
    config.check_effect(given)
    if "agents_per_actor" in given and not config.remote_agents:
        raise UserError("--agents-per-actor does nothing without --remote-agents")
    return _run(*new_training(config, _command(), _warn, ray), as_json)


@cli.command()
@run_argument
@click.option("--steps", type=int, help="Agent steps to reach, those done included.")
@click.option("--minutes", type=float, help="Minutes of training to reach, those done included.")
@click.option("--episodes", type=int, help="Episodes to reach, those done included.")
@changes_option
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object on the last line.")
@trust_option
@ray_option
@_refusals_as_json
def resume(run: Path, changes: dict, as_json: bool, trust_code: bool, ray: str | None, **budgets) -> int:
    """Continue the training in the folder RUN from its newest checkpoint.

    Without --steps, --minutes or --episodes the run's own budget holds; with one, those given replace it.
    """
    from ga3c_tf.runner import resumed_training

    changes |= {name: value for name, value in budgets.items() if value is not None}
    return _run(*resumed_training(run, changes, _command(), _warn, trust_code, ray), as_json)


@cli.command()
@agent_argument
@click.option("--episodes", type=click.IntRange(1, 100_000), default=30, show_default=True, help="Whole episodes.")
@agent_options
@click.option("--random", is_flag=True, help="Act at random instead, in the run's environment: what a score is worth.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
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
    random: bool,
    as_json: bool,
) -> None:
    """Score the trained agent of the folder RUN, or published weights: raw scores of whole episodes, their mean."""
    run = _agent_folder(run, pretrained)
    _check_agent(run, checkpoint, trust_code)

    from ga3c_tf.evaluation import RandomAgent, summary
    from ga3c_tf.evaluation import evaluate as play_episodes

    agent = RandomAgent(run, seed) if random else _trained_agent(run, checkpoint, sample, seed, device)
    _exit_on_signals()
    result = summary(agent, play_episodes(agent, episodes, seed, max_episode_steps), not sample, seed)
    if as_json:
        print(json.dumps(result))
        return
    low, high = result["interval_95"]
    print(
        f"{result['env_id']} after {result['agent_steps']} agent steps: mean {result['mean']:.2f} "
        f"(95 % interval {low:.2f} to {high:.2f}), standard deviation {result['std']:.2f}, "
        f"median {result['median']:.2f}"
    )
    print(f"protocol: {result['protocol']}")


@cli.command()
@agent_argument
@click.option("--video", type=click.Path(path_type=Path, dir_okay=False), help="File to write: .mp4 or .gif.")
@click.option("--window", is_flag=True, help="Show a window instead; needs a display.")
@click.option("--episodes", type=click.IntRange(1, 1000), default=1, show_default=True, help="Whole episodes.")
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
    """Watch the trained agent of the folder RUN, or published weights, play, in a video file or a window."""
    if (video is None) == (not window):
        raise UserError("play needs either --video FILE or --window")
    run = _agent_folder(run, pretrained)
    _check_agent(run, checkpoint, trust_code)

    from ga3c_tf.evaluation import play_window, record

    agent = _trained_agent(run, checkpoint, sample, seed, device)
    if video is None:
        scores = play_window(agent, episodes, seed, max_episode_steps)
    else:
        scores = record(agent, episodes, seed, video, max_episode_steps)
    print(
        f"{'shown' if video is None else video}: {len(scores)} episodes, scores "
        f"{', '.join(f'{score:g}' for score in scores)}"
    )


@cli.command()
@run_argument
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--episodes", type=click.IntRange(1, 100_000), default=30, show_default=True, help="Whole episodes.")
@click.option("--checkpoint", default="best", show_default=True, help="'best', 'latest', or the agent steps of one.")
@trust_option
def publish(run: Path, folder: Path, episodes: int, checkpoint: str, trust_code: bool) -> None:
    """Write the weights of the run RUN to FOLDER, scored, with a card: to be handed on, played and scored elsewhere."""
    from ga3c_tf.runs.weights import check_free

    _check_agent(run, checkpoint, trust_code)
    check_free(folder)

    from ga3c_tf.reproduce.results.publish import publish as write

    agent = _trained_agent(run, checkpoint, True, 0, "cpu")
    _exit_on_signals()
    score = write(run, folder, agent, episodes, 0, " ".join(_command()))
    print(f"{folder}: {score['env_id']}, mean {score['mean']:.2f} of {episodes} episodes")


@cli.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Picture to write: .png, .svg or .pdf.",
)
def plot(runs: tuple[Path, ...], output: Path) -> None:
    """Draw score, PPS, TPS, policy lag and queues of one or more run folders RUNS."""
    from ga3c_tf.reproduce.drawing.run_plots import plot_runs

    plot_runs(list(runs), output)
    print(output)


@cli.command()
@click.option("--env", "env_id", default=Config.env_id, show_default=True, help="Gymnasium id of the environment.")
@setting_options(BENCH_SETTINGS, Config())
@click.option(
    "--device",
    default="auto",
    show_default=True,
    help="'auto', 'cpu', 'gpu' or 'gpu:N', or 'cpu,gpu' to measure both and compare them.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(2, 3600),
    default=60,
    show_default=True,
    help="Seconds of the whole system's work that are measured; on each device it takes about twice as long in all.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def bench(env_id: str, device: str, seconds: float, as_json: bool, **settings) -> None:
    """Measure the speed of this machine: components alone, the limit they imply, the whole system against it."""
    from ga3c_tf.bench.report import report
    from ga3c_tf.bench.run import run_bench
    from ga3c_tf.environments.ids import resolve_env_id

    given = {name: value for name, value in settings.items() if value is not None}
    today, note = resolve_env_id(env_id)
    if note:
        _warn(note)
    config = Config.from_values({**given, "env_id": today, "seed": 0, "adjustment": "off"})
    _exit_on_signals()
    result = run_bench(config, device.split(","), seconds, _warn)
    print(json.dumps(result) if as_json else report(result))


@cli.command()
@click.option("--figure", "name", help="Table or figure of the paper, or 'all'; --list names them.")
@click.option(
    "--budget",
    type=click.Choice(("smoke", "quick", "paper")),
    default="quick",
    show_default=True,
    help="Seconds, to see that it works (no results); minutes a run, for 2 cores; or what the paper spent.",
)
@click.option("--seeds", type=click.IntRange(1, 1000), help="Seeds of each run [default: the figure's own].")
@click.option(
    "--games",
    default="",
    help="Games, such as pong,breakout, or Gymnasium ids of other environments [default: the figure's own].",
)
@click.option("--loss", help="Run everything with this loss too, as `train` takes it, and compare the two.")
@click.option("--network", help="The same with this network.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Results folder [default: results; for smoke, whose runs are no results, runs/smoke].",
)
@click.option("--force", is_flag=True, help="Repeat runs that are finished.")
@cluster_options
@click.option("--dry-run", is_flag=True, help="Print the commands of the runs that are left, and run nothing.")
@click.option("--list", "show_list", is_flag=True, help="Say what each figure shows, what it costs, what is measured.")
def reproduce(
    name: str | None,
    budget: str,
    seeds: int | None,
    games: str,
    loss: str | None,
    network: str | None,
    out: Path | None,
    force: bool,
    dry_run: bool,
    show_list: bool,
    **cluster,
) -> int:
    """Run what a table or figure of the paper needs, record it, draw it and write the results page.

    Finished runs are not repeated, interrupted ones are resumed, and a failed one does not end the rest.
    """
    from ga3c_tf.reproduce import command

    chosen = [game.strip() for game in games.split(",") if game.strip()]
    changes = {name: value for name, value in (("loss", loss), ("network", network)) if value}
    if show_list:
        print("\n".join(command.listing(out)))
        return 0
    if name is None:
        raise UserError("name a --figure, or ask for the --list")
    _check_users_names(chosen, changes)
    executor = _executor(say, **cluster)
    if dry_run:
        print("\n".join(command.commands(name, budget, seeds, chosen, changes, out)))
        return 0
    _exit_on_signals()
    runs = command.reproduce(name, budget, seeds, chosen, changes, out, force, executor, say)
    unfinished = [run for run in runs if not run.finished]
    for run in unfinished:
        _warn(f"{run.spec.id}: {run.status_text}")
    return 1 if unfinished else 0


@cli.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results"),
    show_default=True,
    help="Results folder.",
)
@click.option("--check", is_flag=True, help="Write nothing; exit code 1 if a page is not what it should be.")
def report(out: Path, check: bool) -> int:
    """Write the results page, README.md of the results folder, from the records and the runs."""
    from ga3c_tf.reproduce.pages.report import stale_pages, write_pages
    from ga3c_tf.reproduce.results.folder import ResultsFolder

    folder = ResultsFolder(out)
    if not check:
        print(write_pages(folder))
    elif stale := stale_pages(folder):
        _warn(f"{' and '.join(map(str, stale))} is stale: write it anew with ga3c-tf report --out {out}")
        return 1
    return 0


@cli.command()
def games() -> None:
    """List the Atari ids that can be played here."""
    from ga3c_tf.environments.ids import atari_ids

    print("\n".join(atari_ids()))


def _command() -> list[str]:
    name = Path(sys.argv[0]).name
    return [*(["python", "-m", "ga3c_tf"] if name == "__main__.py" else [name]), *sys.argv[1:]]


def _exit_on_signals() -> None:
    """End by SystemExit at a signal that ends programs, so that whatever is open is closed."""
    for number in _signals_to_answer():
        signal.signal(number, lambda number, frame: sys.exit(128 + number))


def _signals_to_answer() -> list[signal.Signals]:
    """Return the signals that end a program, without SIGHUP where it is ignored, as under `nohup`."""
    return [each for each in ENDING if each != signal.SIGHUP or signal.getsignal(each) != signal.SIG_IGN]


def _check_users_names(games: list[str], changes: dict[str, str]) -> None:
    """Refuse environments, losses and networks of the user's own that are not there, before any run begins."""
    from ga3c_tf.environments.ids import resolve_env_id
    from ga3c_tf.plugins import users_function
    from ga3c_tf.reproduce.runs.specs import check_games, env_id_of

    check_games(games)
    for game in games:
        resolve_env_id(env_id_of(game))
    for name, value in changes.items():
        if ":" in value:
            users_function(value, name)


def _executor(say, address, storage, cpus_per_run, gpus_per_run, detach):
    """Return what carries out the runs: this machine, or a Ray cluster.

    Raises:
        UserError: options that do not go together, or Ray is not installed.
    """
    from ga3c_tf.reproduce.runs.executor import LocalExecutor

    if address is None:
        given = {
            "--storage": storage,
            "--cpus-per-run": cpus_per_run,
            "--gpus-per-run": gpus_per_run,
            "--detach": detach or None,
        }
        without = [option for option, value in given.items() if value is not None]
        if without:
            raise UserError(f"{without[0]} is for --ray")
        return LocalExecutor(say)
    try:
        from ga3c_tf.reproduce.cluster.ray_executor import RayExecutor
    except ModuleNotFoundError as error:
        if error.name not in ("ray", "fsspec"):
            raise
        raise UserError("--ray needs pip install 'ga3c-tf[ray]'") from None
    return RayExecutor(address, storage, cpus_per_run, gpus_per_run, detach, say)


def _warn(text: str) -> None:
    say(f"ga3c-tf: {text}", sys.stderr)


def _run(training, run, as_json: bool) -> int:
    from ga3c_tf.status import status_for
    from ga3c_tf.systems.training import NotSaved

    received: list[int] = []

    def on_signal(number, frame):
        if received:
            training.kill()
            if sys.stdout.isatty():
                os.write(sys.stdout.fileno(), b"\x1b[?25h\n")  # the live panel hid the cursor
            os._exit(128 + number)
        received.append(number)
        training.stop(outcomes.INTERRUPTED)

    for number in _signals_to_answer():
        signal.signal(number, on_signal)
    say(f"ga3c-tf: {run.config.env_id} in {run.path}, seed {run.config.seed}")
    try:
        with status_for(f"{run.config.env_id}  {run.path}") as status:
            summary = training.run(status.show)
    except BrokenPipeError:
        raise
    except FloatingPointError as error:
        _print_ended(outcomes.DIVERGED, as_json)
        _warn(f"the training diverged and was stopped, the last checkpoint stands. {error}")
        return 1
    except NotSaved as error:
        _print_ended(outcomes.NOT_SAVED, as_json)
        _warn(f"{error}; what was saved before stands")
        return 1
    except Exception:
        _print_ended(outcomes.FAILED, as_json)
        say(traceback.format_exc().rstrip(), sys.stderr)
        return 1
    finally:
        run.close()
    for number in ENDING:  # all is saved: a late signal changes nothing
        signal.signal(number, signal.SIG_IGN)
    say(_as_json(summary) if as_json else ", ".join(f"{name} {value}" for name, value in summary.items()))
    discard_unwritten()
    return 128 + received[0] if received else 0


def _print_ended(ended: str, as_json: bool) -> None:
    """Print what ended a training early as one JSON object, where that is asked for; the line for people follows."""
    if as_json:
        say(json.dumps({"ended": ended}))


def _as_json(summary: dict) -> str:
    """Format a summary as one JSON object; not-a-number becomes null, since JSON has no such number."""
    return json.dumps(
        {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in summary.items()}
    )


def _agent_folder(run: Path | None, pretrained: str | None) -> Path:
    """Return the folder of the agent that is meant: a run, or published weights."""
    from ga3c_tf.runs.weights import published_folder

    if run is not None and pretrained is None:
        return run
    if run is None and pretrained is not None:
        return published_folder(pretrained)
    raise UserError("name either a folder RUN or --pretrained weights")


def _check_agent(run: Path, checkpoint: str, trust_code: bool) -> None:
    """Refuse what no trained agent can come from."""
    from ga3c_tf.plugins import check_trust
    from ga3c_tf.runs.folder import read_config

    if checkpoint not in ("best", "latest") and not checkpoint.isdecimal():
        raise UserError(f"--checkpoint is {checkpoint!r}; it must be 'best', 'latest' or the agent steps of one")
    check_trust(read_config(run), run, trust_code)


def _trained_agent(run: Path, checkpoint: str, sample: bool, seed: int, device: str):
    from ga3c_tf.evaluation import TrainedAgent
    from ga3c_tf.model.device import configure_device

    which = int(checkpoint) if checkpoint.isdecimal() else checkpoint
    return TrainedAgent(run, which, not sample, seed, configure_device(device), _warn)

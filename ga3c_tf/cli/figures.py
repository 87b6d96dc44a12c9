"""The commands about figures and curves: `reproduce`, `report` and `plot`. Only they import reproduce."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from ga3c_tf.cli.options import cluster_options
from ga3c_tf.cli.terminal import exit_on_signals
from ga3c_tf.config.declaration import Q_LEARNING
from ga3c_tf.console import say, warn
from ga3c_tf.errors import UserError

if TYPE_CHECKING:
    from ga3c_tf.config import Config
    from ga3c_tf.runs.curve import Columns


RESULTS = click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results"),
    show_default=True,
    help="Results folder.",
)


@click.command()
@click.option(
    "--figure", "name", help="Table or figure of the paper, or a question of our own; --list names them."
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="All tables and figures that have this budget and take these games.",
)
@click.option(
    "--budget",
    type=click.Choice(("smoke", "quick", "gpu", "tuned", "paper")),
    default="quick",
    show_default=True,
    help="smoke: seconds, checks that everything works (no results); quick: minutes for each run on 2 cores; "
    "gpu: seconds for each run, for claims that need a GPU; tuned: minutes to hours for each run, with "
    "settings of later actor-critic methods instead of the paper's; paper: about what the paper spent.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    help="Number of seeds for each setting [default: the figure's own].",
)
@click.option(
    "--first-seed",
    type=click.IntRange(0, 2**31 - 1001),
    help="Lowest seed, to confirm a finding on seeds that nobody has looked at [default: the figure's own].",
)
@click.option(
    "--games",
    default="",
    help="Games, such as pong,breakout, or Gymnasium ids of other environments [default: the figure's own].",
)
@click.option(
    "--algorithm",
    type=click.Choice(Q_LEARNING),
    help="Also run everything with this algorithm, with its preset for the environment, and compare. A3C is "
    "left out.",
)
@click.option("--loss", help="Also run everything with this loss, as in `train --loss`, and compare.")
@click.option(
    "--network", help="Also run everything with this network, as in `train --network`, and compare."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Results folder [default: results; with --budget smoke, runs/smoke].",
)
@click.option("--force", is_flag=True, help="Repeat all runs, even finished ones.")
@cluster_options
@click.option(
    "--dry-run", is_flag=True, help="Print the commands of the runs that are left, and run nothing."
)
@click.option(
    "--list", "show_list", is_flag=True, help="List the figures with their content, cost and finished runs."
)
def reproduce(
    name: str | None,
    everything: bool,
    budget: str,
    seeds: int | None,
    first_seed: int | None,
    games: str,
    algorithm: str | None,
    loss: str | None,
    network: str | None,
    out: Path | None,
    force: bool,
    dry_run: bool,
    show_list: bool,
    **cluster,
) -> int:
    """Make the runs of tables or figures, record and draw them, and write the results page.

    Finished runs are not repeated, interrupted ones are resumed, and a failed one does not end the rest. In a
    clone, 'results' has finished runs of other machines; name another folder with --out to make the runs on
    this machine.
    """
    from ga3c_tf.reproduce import command
    from ga3c_tf.reproduce.figures.registry import FIGURES, figure_called, figures_with

    chosen = [game.strip() for game in games.split(",") if game.strip()]
    method = {"algorithm": algorithm, "loss": loss, "network": network}
    changes = {name: value for name, value in method.items() if value}
    if show_list:
        print("\n".join(command.listing(out, [figure_called(name)] if name else FIGURES.values())))
        return 0
    if bool(name) == everything:
        raise UserError("name one --figure, or give --all; --list names the figures")
    chosen = _games_of(chosen)
    _check_names(loss=loss, network=network)
    figures = [figure_called(name)] if name else figures_with(budget, chosen)
    plan = command.Plan(figures, budget, chosen, seeds, first_seed, changes)
    executor = _executor(say, **cluster)
    if dry_run:
        left = command.commands(plan, out, force)
        if left:
            print("\n".join(left))
        else:
            warn("nothing is left to run; --force repeats runs")
        return 0
    exit_on_signals()
    runs = command.reproduce(plan, out, force, executor, say)
    unfinished = [run for run in runs if not run.finished]
    for run in unfinished:
        warn(f"{run.spec.id}: {run.status_text}")
    return 0 if all(run.ended for run in runs) else 1


@click.command()
@RESULTS
@click.option("--check", is_flag=True, help="Write nothing; exit code 1 if a page is out of date.")
def report(out: Path, check: bool) -> int:
    """Write the pages of a results folder from its records and runs."""
    from ga3c_tf.reproduce.pages.report import stale_pages, write_pages
    from ga3c_tf.reproduce.results.folder import ResultsFolder

    folder = ResultsFolder(out)
    if not check:
        print(write_pages(folder, warn))
    elif stale := stale_pages(folder):
        warn(f"{' and '.join(map(str, stale))} is stale: write it anew with ga3c-tf report --out {out}")
        return 1
    return 0


@click.command()
@RESULTS
def pack(out: Path) -> None:
    """Put the records of all run folders of a results folder into its archives, one for each game.

    The archives are beside the run folders, which stay.
    """
    from ga3c_tf.reproduce.results.folder import ResultsFolder
    from ga3c_tf.reproduce.runs.archive import pack as packed

    folder = ResultsFolder(out)
    folder.paper()  # refuses a folder that is no results folder
    with folder.held(warn):
        written = packed(folder.runs)
    for archive, count in written.items():
        print(f"{archive}: {count} new")
    if not written:
        warn("the archives have the records of all run folders already")


@click.command()
@click.argument("run_id")
@RESULTS
@click.option(
    "--to",
    type=click.Path(path_type=Path, file_okay=False),
    help="Run folder to make [default: runs/RUN_ID].",
)
def unpack(run_id: str, out: Path, to: Path | None) -> None:
    """Write the recorded run RUN_ID to a run folder, for `plot`.

    Weights are not recorded. `evaluate` and `resume` need them, so they need the run made again.
    """
    from ga3c_tf.reproduce.runs.archive import unpack as unpacked

    folder = to or Path("runs") / run_id
    unpacked(out / "runs", run_id, folder)
    warn("the record has no weights, which evaluate and resume need; its command.txt makes the run again")
    print(folder)


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Picture to write: .png, .svg or .pdf.  [default: curves.png in the first run folder]",
)
@click.option(
    "--over-seeds",
    is_flag=True,
    help="Draw the score alone, as mean and range of the runs whose settings differ in the seed alone.",
)
def plot(runs: tuple[Path, ...], output: Path | None, over_seeds: bool) -> None:
    """Draw score, PPS, TPS, policy lag, policy divergence and queues of one or more run folders RUNS."""
    from ga3c_tf.reproduce.drawing.run_plots import plot_over_seeds, plot_runs
    from ga3c_tf.runs.folder import check_no_links

    if output is None:
        check_no_links(runs[0])
        output = runs[0] / "curves.png"
    (plot_over_seeds if over_seeds else plot_runs)(list(runs), output)
    print(output)


def draw_learning_curve(curve: Columns, config: Config, stem: Path) -> None:
    """Draw the learning curve of a run, as `publishing.publish.Draw` describes."""
    from ga3c_tf.reproduce.drawing.score_plots import Panel, score_curves

    label = f"mean of the last {config.rolling_episodes} episodes of training, seed {config.seed}"
    score_curves([Panel(config.env_id, {label: [curve]})], stem)


def _games_of(given: list[str]) -> list[str]:
    """Return the games that the user means, each once: by their name in `GAMES` if they have one, else by
    current id.

    Raises:
        UserError: there is no such environment.
    """
    from ga3c_tf.environments.ids import resolve_env_id
    from ga3c_tf.reproduce.runs.specs import GAMES, check_games, env_id_of

    check_games(given)
    names = {env_id: name for name, env_id in GAMES.items()}
    ids = [resolve_env_id(env_id_of(game))[0] for game in given]
    return list(dict.fromkeys(names.get(env_id, env_id) for env_id in ids))


def _check_names(**names: str | None) -> None:
    """Check that losses and networks exist before any run begins.

    Args:
        names: names by setting; None for none.

    Raises:
        UserError: one does not exist.
    """
    from ga3c_tf.config import check_name
    from ga3c_tf.plugins import users_function

    for setting, name in names.items():
        if name:
            check_name(setting, name)
            if ":" in name:
                users_function(name, setting)


def _executor(say, address, storage, cpus_per_run, gpus_per_run, detach):
    """Return the executor of the runs, for this machine or a Ray cluster.

    Raises:
        UserError: an option needs --ray, or Ray is not installed.
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
            raise UserError(f"{without[0]} requires --ray")
        return LocalExecutor(say)
    try:
        from ga3c_tf.reproduce.cluster.ray_executor import RayExecutor
    except ModuleNotFoundError as error:
        if error.name not in ("ray", "fsspec"):
            raise
        raise UserError("--ray needs pip install '.[ray]' in a clone") from None
    return RayExecutor(address, storage, cpus_per_run, gpus_per_run, detach, say)

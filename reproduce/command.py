"""The work of the command `ga3c-tf reproduce`."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.measures.text import duration
from ga3c_tf.reproduce.pages.report import write_pages
from ga3c_tf.reproduce.results.folder import DEFAULT, ResultsFolder
from ga3c_tf.reproduce.runs.executor import Executor
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec, check_games


def specs_of(
    figures: Sequence[Figure],
    budget: str,
    seeds: int | None,
    games: Sequence[str],
    changes: Mapping[str, str],
) -> list[RunSpec]:
    """Return the runs of these figures, each once; with changes, also the runs with the user's own method.

    Among several figures, those that do not support the changes are left out.

    Raises:
        UserError: a game is unknown, a figure does not have the budget, or the changes do not go with the
            only figure or with any of them.
    """
    check_games(games)
    specs = []
    for figure in figures:
        plain = figure.all_specs(budget, seeds, games)
        if len(figures) == 1 or figure.takes(changes, plain):
            specs += plain + figure.changed_specs(budget, changes, seeds, games)
    if not specs:
        raise UserError(f"no figure at the {budget} budget goes with these games, this loss or this network")
    return list(dict.fromkeys(specs))


def reproduce(
    figures: Sequence[Figure],
    budget: str,
    seeds: int | None,
    games: Sequence[str],
    changes: Mapping[str, str],
    out: Path | None,
    force: bool,
    executor: Executor,
    say: Callable[[str], None],
) -> list[RecordedRun]:
    """Make what is missing of these figures: runs, records, pictures and the page.

    Args:
        figures: figures to make.
        budget: a name in `BUDGETS`.
        seeds: number of seeds; None for the default of each figure.
        games: names of games; empty for the default of each figure.
        changes: settings of a method of the user's own, which is run beside the paper's; empty for the
            paper's alone.
        out: the results folder; None for the default of the budget.
        force: whether to repeat finished runs.
        executor: executor of the runs.
        say: called with one line of progress at a time.

    Returns:
        The requested runs.

    Raises:
        UserError: an error of `specs_of`, only an earlier version could make one of the runs, or the results
            folder cannot be used.
    """
    specs = specs_of(figures, budget, seeds, games, changes)
    folder = ResultsFolder(out or DEFAULT[budget])
    for spec in specs if force else [run.spec for run in folder.left(specs)]:
        spec.train_command(folder.runs)  # refuses what cannot be made, before recorded runs are removed
    folder.prepare(budget)
    folder.add_method(changes, say)
    if not force:  # `force` repeats every run, superseded or not
        folder.remove_superseded(specs, say)
    warn_of_changed_code(changes, specs, folder, say)
    # Figures that were made before may share runs with these, so they are recorded and drawn again.
    recorded = [
        figure
        for figure in FIGURES.values()
        if figure in figures or folder.measured_file(figure, budget).exists()
    ]

    def record() -> None:
        for figure in recorded:
            folder.update(figure, budget, *((games, seeds or 0) if figure in figures else ((), 0)), say)

    try:
        runs = executor.execute(specs, folder.runs, force)
    except (KeyboardInterrupt, SystemExit):
        record()
        write_pages(folder, say)
        raise
    record()
    for figure in recorded:
        folder.draw(figure, budget, say)
    say(f"{write_pages(folder, say)} and {folder.figures} are written")
    return runs


def warn_of_changed_code(
    changes: Mapping[str, str], specs: Sequence[RunSpec], folder: ResultsFolder, say: Callable[[str], None]
) -> None:
    """Warn if the code of a method of the user's own has changed since some of its runs were made.

    Args:
        changes: settings of the method.
        specs: the runs.
        folder: the results folder.
        say: called with one line for each file.
    """
    method_runs = [RecordedRun.of(spec, folder.runs) for spec in specs if spec.changes]
    made = [run.started_s for run in method_runs if run.result.get("sessions")]
    for value in changes.values():
        module = sys.modules.get(value.partition(":")[0])
        file = getattr(module, "__file__", None)
        if ":" in value and file:
            changed = os.path.getmtime(file)
            older = sum(started_s < changed for started_s in made)
            if older:
                say(
                    f"{file} has changed since {older} of the runs with {value} were made; they keep their "
                    "results. --force repeats all runs; another --out keeps both"
                )


def commands(
    figures: Sequence[Figure],
    budget: str,
    seeds: int | None,
    games: Sequence[str],
    changes: Mapping[str, str],
    out: Path | None,
    force: bool = False,
) -> list[str]:
    """Return the commands that `reproduce` would run: for all runs with `force`, else for those not ended."""
    folder = ResultsFolder(out or DEFAULT[budget])
    folder.check_kind(budget)
    specs = specs_of(figures, budget, seeds, games, changes)
    runs = [RecordedRun.not_made(spec, folder.runs) for spec in specs] if force else folder.left(specs)
    lines = []
    for run in runs:
        path = folder.runs / run.spec.id
        begin = run.spec.resume_command(path) if run.resumable else run.spec.train_command(path)
        words = [begin, *run.spec.evaluate_commands(path).values()]
        lines += [f"ga3c-tf {shlex.join(arguments)}" for arguments in words]
    return lines


def listing(out: Path | None) -> list[str]:
    """Return lines of text about each figure: what it shows, its cost at each budget, and the runs made so
    far.

    If there is no results folder, the last line says so instead of a line for each figure.
    """
    lines = []
    folders = {budget: ResultsFolder(out or folder) for budget, folder in DEFAULT.items()}
    places = dict.fromkeys(str(folder.path) for folder in folders.values())
    has_results = any(folder.path.is_dir() for folder in folders.values())
    for figure in FIGURES.values():
        costs = [f"{budget} {_cost(figure, budget)}" for budget in figure.games]
        measured = [
            f"{budget} {sum(run.ended for run in results.runs)} of {len(results.runs)} runs"
            for budget in figure.games
            if folders[budget].measured_file(figure, budget).exists()
            for results in [folders[budget].results(figure, budget)]
        ]
        lines += [
            f"{figure.name}: {figure.shows} ({figure.paper})",
            f"    cost: {'; '.join(costs)}",
        ]
        if has_results:
            lines.append(f"    measured: {'; '.join(measured) or 'nothing yet'}")
    if has_results:
        return lines
    return [
        *lines,
        f"measured: unknown, as there is no folder {' or '.join(places)} here; name one with --out",
    ]


def _cost(figure: Figure, budget: str) -> str:
    specs = figure.all_specs(budget)
    return (
        f"{len(specs)} run{'s' if len(specs) > 1 else ''}, about "
        f"{duration(sum(spec.seconds for spec in specs))}"
    )

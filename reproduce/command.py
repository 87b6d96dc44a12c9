"""The work of the command `ga3c-tf reproduce`."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.measures.text import duration
from ga3c_tf.reproduce.pages.report import said, write_pages
from ga3c_tf.reproduce.results.folder import DEFAULT, ResultsFolder
from ga3c_tf.reproduce.runs.executor import Executor
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec, check_games


@dataclass(frozen=True)
class Plan:
    """What `reproduce` is asked for.

    Attributes:
        figures: figures to make.
        budget: a name in `BUDGETS`.
        games: names of games; empty for the default games of each figure.
        seeds: number of seeds; None for the default number of each figure.
        first_seed: lowest seed; None for that of each figure.
        changes: settings of a method of the user's own, which is run beside the paper's; empty for the
            paper's alone.
    """

    figures: Sequence[Figure]
    budget: str
    games: Sequence[str] = ()
    seeds: int | None = None
    first_seed: int | None = None
    changes: Mapping[str, str] = field(default_factory=dict)

    def specs(self) -> list[RunSpec]:
        """Return the runs, each once; with changes, also the runs with the user's own method.

        Among several figures, those that do not support the changes are left out.

        Raises:
            UserError: a game is unknown, a figure does not have the budget, or the changes do not go with the
                only figure or with any of them.
        """
        check_games(self.games)
        asked = (self.seeds, self.games, self.first_seed)
        specs = []
        for figure in self.figures:
            plain = figure.all_specs(self.budget, *asked)
            if len(self.figures) == 1 or figure.takes(self.changes, plain):
                specs += plain + figure.changed_specs(self.budget, self.changes, *asked)
        if not specs:
            raise UserError(f"no figure at the {self.budget} budget goes with these games and this method")
        return list(dict.fromkeys(specs))


def reproduce(
    plan: Plan, out: Path | None, force: bool, executor: Executor, say: Callable[[str], None]
) -> list[RecordedRun]:
    """Make what is missing of a plan: runs, records, pictures and the page.

    Args:
        plan: what is asked for.
        out: the results folder; None for the default of the budget.
        force: whether to repeat finished runs.
        executor: executor of the runs.
        say: called with one line of progress at a time.

    Returns:
        The requested runs.

    Raises:
        UserError: an error of `Plan.specs`, only an earlier version could make one of the runs, or the
            results folder cannot be used.
    """
    specs = plan.specs()
    folder = ResultsFolder(out or DEFAULT[plan.budget])
    for run in _left(specs, folder, force):
        run.spec.train_command(folder.runs)  # refuses what cannot be made, before recorded runs are removed
    folder.prepare(plan.budget)
    folder.add_method(plan.changes, say)
    warn_of_changed_code(plan.changes, specs, folder, say)
    try:
        runs = executor.execute(specs, folder.runs, force)
    except (KeyboardInterrupt, SystemExit):
        _record(plan, folder, say)
        write_pages(folder, say)
        raise
    for figure in _record(plan, folder, say):
        folder.draw(figure, plan.budget, say)
    for line in findings(plan, folder):
        say(line)
    say(f"{write_pages(folder, say)} and {folder.figures} are written")
    return runs


def findings(plan: Plan, folder: ResultsFolder) -> list[str]:
    """Return what the runs of a plan have found, a line for each claim; smoke runs find nothing."""
    return [] if plan.budget == "smoke" else said(folder, plan.figures, plan.budget)


def _record(plan: Plan, folder: ResultsFolder, say: Callable[[str], None]) -> list[Figure]:
    """Write the records of the plan's figures and of those recorded before, which may share runs with them.

    Returns:
        These figures.
    """
    for figure in plan.figures:
        folder.update(figure, plan.budget, plan.games, plan.seeds or 0, say, plan.first_seed)
    others = [figure for figure in FIGURES.values() if figure not in plan.figures]
    before = [figure for figure in others if folder.measured_file(figure, plan.budget).exists()]
    for figure in before:
        folder.renew(figure, plan.budget, say)
    return [*plan.figures, *before]


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


def commands(plan: Plan, out: Path | None, force: bool = False) -> list[str]:
    """Return the commands that `reproduce` would run: for all runs with `force`, else for those not ended."""
    folder = ResultsFolder(out or DEFAULT[plan.budget])
    folder.check_kind(plan.budget)
    lines = []
    for run in _left(plan.specs(), folder, force):
        goes_on = run.resumable and not force
        begin = run.spec.resume_command if goes_on else run.spec.train_command
        words = [begin(run.path), *run.spec.evaluate_commands(run.path).values()]
        lines += [f"ga3c-tf {shlex.join(arguments)}" for arguments in words]
    return lines


def _left(specs: Sequence[RunSpec], folder: ResultsFolder, force: bool) -> list[RecordedRun]:
    """Return the runs that are to be made or resumed: all of them with `force`."""
    runs = [RecordedRun.of(spec, folder.runs) for spec in specs]
    return [run for run in runs if force or not run.ended]


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

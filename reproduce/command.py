"""The work of the command `ga3c-tf reproduce`."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
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

Say = Callable[[str], None]
"""Called with one line of progress at a time."""


@dataclass(frozen=True)
class Plan:
    """What `reproduce` is asked for.

    Attributes:
        figures: figures to make.
        budget: a name in `BUDGETS`.
        games: names of games; empty for the default games of each figure.
        seeds: number of seeds; None for the default number of each figure.
        first_seed: lowest seed; None for that of each figure.
        changes: settings of a method of the user's own, which is run beside the paper's, if any.
    """

    figures: Sequence[Figure]
    budget: str
    games: Sequence[str] = ()
    seeds: int | None = None
    first_seed: int | None = None
    changes: Mapping[str, str] = field(default_factory=dict)

    def specs_of(self, figure: Figure) -> list[RunSpec]:
        """Return the runs of a figure by the paper's method."""
        return figure.all_specs(self.budget, self.seeds, self.games, self.first_seed)

    def specs(self) -> list[RunSpec]:
        """Return the runs, each once; with changes, also the runs with the user's own method.

        Among several figures, those that do not support the changes are left out.

        Raises:
            UserError: a game is unknown, or the budget or the changes go with no figure.
        """
        check_games(self.games)
        specs = []
        for figure in self.taken():
            plain = self.specs_of(figure)
            specs += plain + figure.changed(plain, self.changes)
        if not specs:
            raise UserError(f"no figure at the {self.budget} budget goes with these games and this method")
        return list(dict.fromkeys(specs))

    def taken(self) -> list[Figure]:
        """Return the figures that go with the changes; a single figure is refused later if it does not."""
        if len(self.figures) == 1:
            return [*self.figures]
        return [figure for figure in self.figures if figure.takes(self.changes, self.specs_of(figure))]

    def folder(self, out: Path | None) -> ResultsFolder:
        """Return the results folder `out`, or without it the default of the budget."""
        return ResultsFolder(out or DEFAULT[self.budget])


def reproduce(plan: Plan, out: Path | None, force: bool, executor: Executor, say: Say) -> list[RecordedRun]:
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
        UserError: the plan or the folder cannot be used, or only an earlier version could make a run.
    """
    specs = plan.specs()
    folder = plan.folder(out)
    for run in _left(specs, folder, force):
        run.spec.train_command(folder.runs)  # refuses what cannot be made, before recorded runs are removed
    folder.prepare(plan.budget)
    folder.add_method(plan.changes, say)
    if not force:
        warn_of_changed_code(plan.changes, specs, folder, say)
    try:
        runs = executor.execute(specs, folder.runs, force)
    except (KeyboardInterrupt, SystemExit):
        _record(plan, folder, say)
        write_pages(folder, say)
        raise
    for figure in _record(plan, folder, say):
        folder.draw(figure, plan.budget, say)
    if plan.budget != "smoke":  # such runs find nothing
        for line in said(folder, plan.figures, plan.budget):
            say(line)
    say(f"{write_pages(folder, say)} and {folder.figures} are written")
    return runs


def _record(plan: Plan, folder: ResultsFolder, say: Say) -> list[Figure]:
    """Write the records of the plan's figures and of those recorded before, which may share runs with them.

    Returns:
        These figures.
    """
    asked = {figure.name: plan.specs_of(figure) for figure in plan.taken()}
    before = [figure for figure in FIGURES.values() if folder.has_records(figure, plan.budget)]
    figures = [*plan.taken(), *(figure for figure in before if figure.name not in asked)]
    for figure in figures:
        folder.update(figure, plan.budget, asked.get(figure.name, []), say)
    return figures


def warn_of_changed_code(
    changes: Mapping[str, str], specs: Sequence[RunSpec], folder: ResultsFolder, say: Say
) -> None:
    """Warn if the code of a method of the user's own has changed since some of its runs were made."""
    runs = [RecordedRun.of(spec, folder.runs) for spec in specs if spec.changes]
    made = [run.started_s for run in runs if run.result.get("sessions")]
    for value in filter(lambda value: ":" in value, changes.values()):
        file = getattr(sys.modules.get(value.partition(":")[0]), "__file__", None)
        older = sum(started_s < os.path.getmtime(file) for started_s in made) if file else 0
        if older:
            say(
                f"{file} has changed since {older} of the runs with {value} were made; they keep their "
                "results. --force repeats all runs; another --out keeps both"
            )


def commands(plan: Plan, out: Path | None, force: bool = False) -> list[str]:
    """Return the commands that `reproduce` would run: for all runs with `force`, else for those not ended."""
    folder = plan.folder(out)
    folder.check_kind(plan.budget)
    lines = []
    for run in _left(plan.specs(), folder, force):
        begin = run.spec.resume_command if run.resumable and not force else run.spec.train_command
        words = [begin(run.path), *run.spec.evaluate_commands(run.path).values()]
        lines += [f"ga3c-tf {shlex.join(arguments)}" for arguments in words]
    return lines


def _left(specs: Sequence[RunSpec], folder: ResultsFolder, force: bool) -> list[RecordedRun]:
    """Return the runs that are to be made or resumed: all of them with `force`."""
    if force:  # whatever their results are, even damaged ones
        return [RecordedRun(spec, folder.runs / spec.id, {}) for spec in specs]
    return [run for spec in specs if not (run := RecordedRun.of(spec, folder.runs)).ended]


def listing(out: Path | None, figures: Iterable[Figure] = FIGURES.values()) -> list[str]:
    """Return lines of text about each of these figures: what it shows, its cost at each budget, and the runs
    made so far.

    If there is no results folder, the last line says so instead of a line for each figure.
    """
    folders = {budget: ResultsFolder(out or folder) for budget, folder in DEFAULT.items()}
    has_results = any(folder.path.is_dir() for folder in folders.values())
    lines = []
    for figure in figures:
        costs = [f"{budget} {_cost(figure.all_specs(budget))}" for budget in figure.games]
        lines += [f"{figure.name}: {figure.shows} ({figure.paper})", f"    cost: {'; '.join(costs)}"]
        measured = []
        for budget in figure.games:
            if folders[budget].has_records(figure, budget):
                runs = folders[budget].results(figure, budget).runs
                measured.append(f"{budget} {sum(run.ended for run in runs)} of {len(runs)} runs")
        if has_results:
            lines.append(f"    measured: {'; '.join(measured) or 'nothing yet'}")
    if not has_results:
        places = " or ".join(dict.fromkeys(str(folder.path) for folder in folders.values()))
        lines.append(f"measured: unknown, as there is no folder {places} here; name one with --out")
    return lines


def _cost(specs: Sequence[RunSpec]) -> str:
    seconds = sum(spec.seconds for spec in specs)
    return f"{len(specs)} run{'s' if len(specs) > 1 else ''}, about {duration(seconds)}"

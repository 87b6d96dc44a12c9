"""The results folder: paper/ and measured/ (records), runs/, figures/, logs/ and the page README.md.

superseded.json lists runs that a fault has made invalid, until they are measured again. methods.json lists
the user's own methods that figures were also made with, each as the settings that it changes, in their first
form. Smoke runs only show that everything works. They are no results, so a folder has either smoke records or
records of other budgets.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ga3c_tf.config import Config, spelled
from ga3c_tf.config.migrations import first_form, migrated
from ga3c_tf.errors import UserError
from ga3c_tf.files import check_writable, locked, write_aside
from ga3c_tf.reproduce.figures.figure import Figure, read_paper
from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.measures.records import Record, read_records, write_records
from ga3c_tf.reproduce.results import comparison
from ga3c_tf.reproduce.results.history import History, named
from ga3c_tf.reproduce.runs.archive import forget, has_record
from ga3c_tf.reproduce.runs.run import RecordedRun, remove_run
from ga3c_tf.reproduce.runs.specs import BUDGETS, SYSTEMS, RunSpec, as_file_name

DEFAULT = {**dict.fromkeys(BUDGETS, Path("results")), "smoke": Path("runs/smoke")}
HERE = Path(__file__).resolve().parents[1]
PAPER = next(
    (path for path in (HERE / "paper", HERE.parent / "results" / "paper") if path.is_dir()), HERE / "paper"
)
"""Folder of the paper's records, which are copied into every results folder: a part of the installed package,
or results/paper in a checkout."""
DIFFERENCES = "DIFFERENCES.md"
METHODS = "methods.json"
SUPERSEDED = "superseded.json"
NONE: Mapping[str, str] = MappingProxyType({})
"""No changes: the paper's method."""


class ResultsFolder:
    """One results folder.

    Args:
        path: path of the folder, which need not exist.

    Raises:
        UserError: the path cannot be used.
    """

    def __init__(self, path: Path):
        try:
            with contextlib.suppress(FileNotFoundError):
                path.stat()
        except OSError as error:
            raise UserError(f"cannot use {path} as a results folder: {error.strerror}") from None
        self.path = path
        self.runs = path / "runs"
        self.measured = path / "measured"
        self.figures = path / "figures"
        self.logs = path / "logs"

    @property
    def published(self) -> bool:
        """Whether the folder has the published results, and with them the differences from the paper."""
        return (self.path / DIFFERENCES).exists()

    @property
    def history(self) -> History:
        """The history of the folder's rules."""
        return History.of(self.path)

    def prepare(self, budget: str) -> None:
        """Make the folder, with the paper's records, for runs at this budget.

        Raises:
            UserError: the folder, or one of those in it for records and pictures, cannot be written; or
                `check_kind` refuses the budget.
        """
        self.check_kind(budget)
        # Written after runs that may take hours.
        for folder in filter(os.path.lexists, (self.measured, self.figures)):
            try:
                check_writable(folder)
            except OSError as error:
                raise UserError(f"cannot write {folder}: {error.strerror}") from None
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
            self.logs.mkdir(exist_ok=True)
            if not (self.path / "paper").exists():
                shutil.copytree(PAPER, self.path / "paper", copy_function=shutil.copyfile)
        except OSError as error:
            raise UserError(f"cannot write the results folder {self.path}: {error.strerror}") from None

    def check_kind(self, budget: str) -> None:
        """Refuse to mix smoke runs with runs at other budgets.

        Raises:
            UserError: the folder has smoke records and the budget is another one, or the other way round.
        """
        mixed = [other for other in self.budgets() if (other == "smoke") != (budget == "smoke")]
        if mixed:
            raise UserError(
                f"{self.path} has records of the {mixed[0]} budget, and smoke runs are no results; "
                f"name another --out for the {budget} budget"
            )

    @contextlib.contextmanager
    def held(self, say: Callable[[str], None]) -> Iterator[None]:
        """Keep other commands from writing records, pictures and pages during the block.

        Args:
            say: called with one line before waiting for another command.

        Raises:
            UserError: the folder cannot be written.
        """
        with contextlib.ExitStack() as stack:
            try:
                self.logs.mkdir(exist_ok=True)
                stack.enter_context(locked(self.logs / "update.lock", say))
            except OSError as error:
                raise UserError(f"cannot write the results folder {self.path}: {error.strerror}") from None
            yield

    def budgets(self) -> list[str]:
        """Return the budgets that have records."""
        return [budget for budget in BUDGETS if any(self.measured.glob(f"*-{budget}.csv"))]

    def measured_file(self, figure: Figure, budget: str) -> Path:
        """Return the path of the file with our records of a figure at a budget."""
        return self.measured / f"{figure.name}-{budget}.csv"

    def records(self, figure: Figure, budget: str) -> list[Record]:
        """Return our records of a figure at a budget; [] if there is no file."""
        return self._records(figure.name, budget)

    def _records(self, name: str, budget: str) -> list[Record]:
        file = self.measured / f"{name}-{budget}.csv"
        return read_records(file, measured=True) if file.exists() else []

    def paper(self) -> list[Record]:
        """Return the paper's records.

        Raises:
            UserError: the folder has no records of the paper.
        """
        records = read_paper(self.path / "paper")
        if not records:
            raise UserError(f"{self.path} is no results folder: it has no paper/*.csv")
        return records

    def methods(self) -> list[dict[str, str]]:
        """Return the user's own methods, each as the settings that it changes.

        Raises:
            UserError: methods.json is damaged.
        """
        file = self.path / METHODS
        try:
            methods = [migrated(changes).settings for changes in json.loads(file.read_text(encoding="utf-8"))]
            for changes in methods:
                Config.from_values(changes)
            return methods
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"{file} is damaged: {' '.join(str(error).split())}") from None

    def superseded(self, specs: Iterable[RunSpec]) -> dict[str, list[RunSpec]]:
        """Return the runs that a fault has made invalid, by reason.

        superseded.json has a list of objects. Each has the `reason`, a sentence, and `runs`, an object of run
        ids and commits. A run that was measured again has another commit and is no longer superseded.

        Raises:
            UserError: superseded.json is damaged.
        """
        file = self.path / SUPERSEDED
        try:
            entries = [
                (str(entry["reason"]), dict(entry["runs"])) for entry in json.loads(file.read_text("utf-8"))
            ]
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise UserError(f"{file} is damaged: {' '.join(str(error).split())}") from None
        commits = {spec: run.commit for spec in specs if (run := RecordedRun.of(spec, self.runs)).finished}
        by_reason: dict[str, list[RunSpec]] = {}
        for reason, falsified in entries:
            of_entry = [spec for spec, commit in commits.items() if (spec.id, commit) in falsified.items()]
            if of_entry:
                by_reason.setdefault(reason, []).extend(of_entry)
        return by_reason

    def remove_superseded(self, specs: Iterable[RunSpec], say: Callable[[str], None]) -> None:
        """Remove superseded runs, so that they are measured again.

        Args:
            specs: the runs to check.
            say: called with the number of removed runs, if any, and before waiting for another command.
        """
        with self.held(say):  # another command may do the same
            falsified = self._superseded_specs(specs)
            ids = [spec.id for spec in falsified]
            for folder in [self.runs / run_id for run_id in ids if (self.runs / run_id).exists()]:
                remove_run(folder)
            forget(self.runs, ids)
        if falsified:
            say(f"{len(falsified)} of the runs are superseded: removed, to be measured again")

    def left(self, specs: Iterable[RunSpec]) -> list[RecordedRun]:
        """Return the runs that are still to be made or resumed; superseded runs count as not made."""
        runs = self._runs_of(list(specs))
        return [run for run in runs if not run.ended]

    def _runs_of(self, specs: Sequence[RunSpec]) -> list[RecordedRun]:
        """Return the runs of these specifications; superseded runs count as not made."""
        falsified = self._superseded_specs(specs)
        return [
            RecordedRun.not_made(spec, self.runs) if spec in falsified else RecordedRun.of(spec, self.runs)
            for spec in specs
        ]

    def _superseded_specs(self, specs: Iterable[RunSpec]) -> set[RunSpec]:
        return {spec for falsified in self.superseded(specs).values() for spec in falsified}

    def superseded_notes(self, specs: Iterable[RunSpec]) -> list[dict[str, Any]]:
        """Return for each fault the number of runs that it made invalid, their systems, and the reason."""
        return [
            {
                "count": len(falsified),
                "systems": " and ".join(dict.fromkeys(SYSTEMS[spec.system] for spec in falsified)),
                "reason": reason,
            }
            for reason, falsified in self.superseded(specs).items()
        ]

    def add_method(self, changes: Mapping[str, str], say: Callable[[str], None]) -> None:
        """Add a method of the user's own to methods.json, unless it is there already.

        Args:
            changes: settings that the method changes; none for the paper's method, which is not added.
            say: called with one line before waiting for another command.

        Raises:
            UserError: methods.json is damaged or cannot be written.
        """
        with self.held(say):
            methods = self.methods()
            if changes and changes not in methods:
                file = self.path / METHODS
                try:
                    text = json.dumps([first_form(method) for method in [*methods, changes]], indent=2) + "\n"
                    write_aside(file, text)
                except OSError as error:
                    raise UserError(f"cannot write {file}: {error.strerror or error}") from None

    def results(
        self,
        figure: Figure,
        budget: str,
        games: Sequence[str] = (),
        seeds: int = 0,
        changes: Mapping[str, str] = NONE,
    ) -> Results:
        """Return the results of a figure: its runs, made or not, and their records.

        Superseded runs count as not made.

        Args:
            figure: the figure.
            budget: budget of the runs.
            games, seeds: games and number of seeds to include beyond the default and those already recorded.
            changes: settings of a method of the user's own. The results then have only the runs of this
                method, and none if none of them has a folder.
        """
        recorded = self.records(figure, budget)
        specs = self._known_specs(figure, budget, recorded, games, seeds, changes)
        runs = self._runs_of(specs)
        # Superseded ones have another path.
        ids = {run.spec.id for run in runs if run.path.parent == self.runs}
        records = [record for record in recorded if record.run_id in ids]
        beside = self._records(figure.beside, budget) if figure.beside else []
        reviews = {} if changes else self.history.reviews.get(named(figure.name, budget), {})
        command = _command(figure, budget, specs, changes)
        return Results(budget, command, self.paper(), runs, records, beside, reviews)

    def update(
        self, figure: Figure, budget: str, games: Sequence[str], seeds: int, say: Callable[[str], None]
    ) -> None:
        """Write the records of a figure from the present state of its runs.

        Args:
            figure: the figure.
            budget: budget of the runs.
            games, seeds: games and number of seeds to include beyond the default and those already recorded.
            say: called with one line before waiting for another command.

        Raises:
            UserError: the records cannot be written.
        """
        with self.held(say):
            records = []
            for changes in (NONE, *self.methods()):
                records += figure.records(self.results(figure, budget, games, seeds, changes).runs)
            write_records(self.measured_file(figure, budget), records)

    def draw(self, figure: Figure, budget: str, say: Callable[[str], None]) -> None:
        """Draw the pictures of a figure from its records.

        Args:
            figure: the figure.
            budget: budget of the runs.
            say: called with one line before waiting for another command.

        Raises:
            UserError: a picture cannot be written.
        """
        with self.held(say):
            paper = self.results(figure, budget)
            figure.plots(paper, self._stem(figure, budget, NONE))
            for changes in self.methods():
                method_results = self.results(figure, budget, changes=changes)
                if method_results.runs:
                    stem = self._stem(figure, budget, changes)
                    figure.plots(method_results, stem)
                    comparison.plot(paper, method_results, stem.with_name(f"{stem.name}-comparison"))

    def pictures(self, figure: Figure, budget: str, changes: Mapping[str, str] = NONE) -> list[Path]:
        """Return the paths of a figure's pictures at a budget, relative to the folder and without suffix."""
        stem = self._stem(figure, budget, changes)
        files = [*stem.parent.glob(f"{stem.name}.svg"), *sorted(stem.parent.glob(f"{stem.name}-*.svg"))]
        return [file.relative_to(self.path).with_suffix("") for file in files]

    def _stem(self, figure: Figure, budget: str, changes: Mapping[str, str]) -> Path:
        """Of the files of the pictures; those of a method of the user's own have a folder."""
        return self.figures / as_file_name("-".join(changes.values())) / f"{figure.name}-{budget}"

    def _known_specs(
        self,
        figure: Figure,
        budget: str,
        records: list[Record],
        games: Sequence[str],
        seeds: int,
        changes: Mapping[str, str],
    ) -> list[RunSpec]:
        """Return the default runs of the figure, and runs of further games, seeds and methods that have been
        begun.

        A further game or method with a run is included with all default seeds, and a further seed with all
        its runs. Added seeds are included once one of them has been begun, unless the seed was begun with all
        its runs.
        """
        default = figure.all_specs(budget)
        # 1. Games and seeds: by default, as asked for, and as recorded before.
        known_games = list(
            dict.fromkeys([*figure.games[budget], *games, *_games_of(figure, budget, records)])
        )
        added = {spec.id for spec in default if spec.is_added}
        known_seeds = [
            *(spec.seed for spec in default if not spec.is_added),
            *(record.seed or 0 for record in records if record.run_id not in added),
        ]
        most_seeds = max(seeds, 1, max(known_seeds, default=0) - figure.first_seed + 1)
        # 2. Beyond the default, only what has been begun counts.
        asked = figure.all_specs(budget, most_seeds, known_games)
        further = [spec.changed(changes) for spec in asked] if figure.takes(changes, default) else []
        begun = {
            (spec.game, spec.seed)
            for spec in further
            if spec.id not in added and has_record(self.runs / spec.id)
        }
        begun |= {
            (game, figure.first_seed + number)
            for game in {game for game, _ in begun}
            for number in range(figure.seeds(budget, game))
        }
        begun_specs = [spec for spec in further if (spec.game, spec.seed) in begun]
        # 3. Added seeds.
        planned = [spec for spec in default if not spec.is_added]
        extra = [spec for spec in default if spec.is_added and (spec.game, spec.seed) not in begun]
        if changes:
            return list(dict.fromkeys(begun_specs))
        if not any(has_record(self.runs / spec.id) for spec in extra):
            extra = []
        return list(dict.fromkeys([*planned, *extra, *begun_specs]))


def _games_of(figure: Figure, budget: str, records: list[Record]) -> list[str]:
    """Return the recorded games that the figure still takes; earlier versions ran some that it does not."""
    recorded = dict.fromkeys(record.game for record in records)
    return [game for game in recorded if game in figure.games[budget] or figure.takes_games(budget, [game])]


def _command(figure: Figure, budget: str, specs: list[RunSpec], changes: Mapping[str, str]) -> str:
    """Return the command that makes these runs of a figure."""
    words = ["ga3c-tf", "reproduce", "--figure", figure.name, "--budget", budget]
    games = list(dict.fromkeys(spec.game for spec in specs))
    if games and set(games) != set(figure.games[budget]):
        words += ["--games", ",".join(games)]
    seeds = max((spec.seed - figure.first_seed + 1 for spec in specs if not spec.is_added), default=1)
    if seeds > max((figure.seeds(budget, game) for game in games), default=1):
        words += ["--seeds", str(seeds)]
    for name, value in changes.items():
        words += [spelled(name), value]
    return " ".join(words)

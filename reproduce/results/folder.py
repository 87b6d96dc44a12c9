"""The results folder: paper/ and measured.csv.xz (records), runs/, figures/, logs/ and the page README.md.

methods.json lists the user's own methods that figures were also made with, each as the settings that it
changes, in their first form. Smoke runs only show that everything works. They are no results, so a folder has
either smoke records or records of other budgets.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from ga3c_tf.config import Config, spelled
from ga3c_tf.config.migrations import first_form, migrated
from ga3c_tf.errors import UserError
from ga3c_tf.files import as_file_name, check_writable, locked, write_aside
from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.measurements import Results, grouped
from ga3c_tf.reproduce.measures.records import Measured, Record, read_measured, read_paper, write_measured
from ga3c_tf.reproduce.results import comparison
from ga3c_tf.reproduce.results.history import History, named
from ga3c_tf.reproduce.runs.archive import has_record
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import BUDGETS, RunSpec

DEFAULT = {**dict.fromkeys(BUDGETS, Path("results")), "smoke": Path("runs/smoke")}
HERE = Path(__file__).resolve().parents[1]
PAPER = next(
    (path for path in (HERE / "paper", HERE.parent / "results" / "paper") if path.is_dir()), HERE / "paper"
)
"""Folder of the paper's records, which are copied into every results folder: a part of the installed package,
or results/paper in a checkout."""
METHODS = "methods.json"
NONE: Mapping[str, str] = MappingProxyType({})
"""No changes: the paper's method."""


@contextlib.contextmanager
def _written(what: Path | str) -> Iterator[None]:
    """Say what cannot be written if the block raises an OSError."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write {what}: {error.strerror or error}") from None


class ResultsFolder:
    """One results folder, which need not exist.

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
        self.measured_file = path / "measured.csv.xz"
        self.figures = path / "figures"
        self.logs = path / "logs"

    @property
    def published(self) -> bool:
        """Whether the folder has the published results, and with them the differences from the paper."""
        return (self.path / "DIFFERENCES.md").exists()

    @property
    def history(self) -> History:
        """The history of the folder's rules."""
        return History.of(self.path)

    def prepare(self, budget: str) -> None:
        """Make the folder, with the paper's records, for runs at this budget.

        Raises:
            UserError: something in it cannot be written, or `check_kind` refuses the budget.
        """
        self.check_kind(budget)
        with _written(self.figures):  # only after runs that may take hours, so it is checked now
            check_writable(self.figures)
        with _written(f"the results folder {self.path}"):
            self.runs.mkdir(parents=True, exist_ok=True)
            self.logs.mkdir(exist_ok=True)
            if not (self.path / "paper").exists():  # another command may copy it at the same time
                shutil.copytree(PAPER, self.path / "paper", copy_function=shutil.copyfile, dirs_exist_ok=True)

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

        `say` is called with one line before waiting for another command.

        Raises:
            UserError: the folder cannot be written.
        """
        with contextlib.ExitStack() as stack:
            with _written(f"the results folder {self.path}"):
                self.logs.mkdir(exist_ok=True)
                stack.enter_context(locked(self.logs / "update.lock", say))
            yield

    def budgets(self) -> list[str]:
        """Return the budgets that have records."""
        with_records = {budget for _, budget in self.measured}
        return [budget for budget in BUDGETS if budget in with_records]

    @property
    def measured(self) -> Measured:
        """Our records, by figure and budget.

        Raises:
            UserError: their file is damaged.
        """
        return read_measured(self.measured_file)

    def has_records(self, figure: Figure, budget: str) -> bool:
        """Return whether there are records of a figure at a budget."""
        return (figure.name, budget) in self.measured

    def records(self, figure: Figure, budget: str) -> Sequence[Record]:
        """Return our records of a figure at a budget; [] if there are none."""
        return self.measured.get((figure.name, budget), [])

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

    def add_method(self, changes: Mapping[str, str], say: Callable[[str], None]) -> None:
        """Add a method to methods.json, unless it is there already or has no changes: the paper's.

        Raises:
            UserError: methods.json is damaged or cannot be written.
        """
        with self.held(say):
            methods = self.methods()
            if changes and changes not in methods:
                text = json.dumps([first_form(method) for method in [*methods, changes]], indent=2) + "\n"
                with _written(self.path / METHODS):
                    write_aside(self.path / METHODS, text)

    def results(self, figure: Figure, budget: str, changes: Mapping[str, str] = NONE) -> Results:
        """Return the results of a figure: its recorded runs, made or not, and their records.

        Without any record, the runs are the figure's own. With changes of settings, the runs are those of
        this method of the user's own.
        """
        recorded = self.records(figure, budget)
        asked = [] if recorded or changes else figure.all_specs(budget)
        specs = self._specs(figure, budget, recorded, asked, changes)
        ids = {spec.id for spec in specs}
        return Results(
            budget,
            _commands(figure, budget, specs, changes),
            self.paper(),
            [RecordedRun.of(spec, self.runs) for spec in specs],
            [record for record in recorded if record.run_id in ids],
            {} if changes else self.history.reviews.get(named(figure.name, budget), {}),
        )

    def update(
        self, figure: Figure, budget: str, asked: Sequence[RunSpec], say: Callable[[str], None]
    ) -> None:
        """Write the records of a figure from the present state of its runs, now also of those `asked` for.

        Raises:
            UserError: the records cannot be written.
        """
        with self.held(say):
            recorded = self.records(figure, budget)
            records: list[Record] = []
            for changes in (NONE, *self.methods()):
                of_method = self._asked(figure, asked, changes)
                specs = self._specs(figure, budget, recorded, of_method, changes)
                records += figure.records([RecordedRun.of(spec, self.runs) for spec in specs])
            if records != recorded:
                write_measured(self.measured_file, {**self.measured, (figure.name, budget): records})

    def _asked(
        self, figure: Figure, asked: Sequence[RunSpec], changes: Mapping[str, str]
    ) -> Sequence[RunSpec]:
        """Return the runs that are asked for by a method; none by the user's own unless one has begun."""
        if not changes or not figure.takes(changes, asked):
            return [] if changes else asked
        changed = figure.changed(asked, changes)
        return changed if any(has_record(self.runs / spec.id) for spec in changed) else []

    def _specs(
        self,
        figure: Figure,
        budget: str,
        recorded: Sequence[Record],
        asked: Sequence[RunSpec],
        changes: Mapping[str, str],
    ) -> list[RunSpec]:
        """Return the runs of the figure that are recorded or asked for, by this method.

        A seed with other runs than those of added seeds is no added one.
        """
        default = figure.all_specs(budget)
        added = [spec for game in figure.games[budget] for spec in figure.added_specs(budget, game)]
        every = [*default, *added, *_others(figure, budget, default, recorded, asked)]
        if changes:
            every = figure.changed(every, changes) if figure.takes(changes, default) else []
        ids = {record.run_id for record in recorded} | {spec.id for spec in asked}
        specs = [spec for spec in every if spec.id in ids]
        whole = {(spec.game, spec.seed) for spec in specs if spec not in added}
        # Of a run of an added seed there are two specifications, which are equal but for the label.
        return list(
            dict.fromkeys(spec for spec in specs if spec.is_added != ((spec.game, spec.seed) in whole))
        )

    def draw(self, figure: Figure, budget: str, say: Callable[[str], None]) -> None:
        """Draw the pictures of a figure from its records, also by the user's own methods.

        Raises:
            UserError: a picture cannot be written.
        """
        with self.held(say):
            paper = self.results(figure, budget)
            figure.plots(paper, self._stem(figure, budget, NONE))
            for changes in self.methods():
                changed = self.results(figure, budget, changes)
                if changed.runs:
                    stem = self._stem(figure, budget, changes)
                    figure.plots(changed, stem)
                    comparison.plot(figure, paper, changed, stem.with_name(f"{stem.name}-comparison"))

    def pictures(self, figure: Figure, budget: str, changes: Mapping[str, str] = NONE) -> list[Path]:
        """Return the paths of a figure's pictures at a budget, relative to the folder and without suffix."""
        stem = self._stem(figure, budget, changes)
        files = [*stem.parent.glob(f"{stem.name}.svg"), *sorted(stem.parent.glob(f"{stem.name}-*.svg"))]
        return [file.relative_to(self.path).with_suffix("") for file in files]

    def _stem(self, figure: Figure, budget: str, changes: Mapping[str, str]) -> Path:
        """Of the files of the pictures; those of a method of the user's own have a folder."""
        return self.figures / as_file_name("-".join(changes.values())) / f"{figure.name}-{budget}"


def _others(
    figure: Figure,
    budget: str,
    default: Sequence[RunSpec],
    recorded: Sequence[Record],
    asked: Sequence[RunSpec],
) -> list[RunSpec]:
    """Return the runs of a figure for games and seeds that are recorded or asked for, but are no default."""
    games = dict.fromkeys([*figure.games[budget], *(spec.game for spec in asked)])
    for game in dict.fromkeys(record.game for record in recorded):
        if game in games or figure.takes_games(budget, [game]):  # earlier versions ran more games
            games[game] = None
    seeds = {*(spec.seed for spec in [*default, *asked]), *(record.seed or 0 for record in recorded)}
    planned = {(spec.game, spec.seed) for spec in default}
    specs: list[RunSpec] = []
    for seed in sorted(seeds):
        others = [game for game in games if (game, seed) not in planned]
        specs += figure.all_specs(budget, 1, others, seed) if others else []
    return specs


def _commands(figure: Figure, budget: str, specs: list[RunSpec], changes: Mapping[str, str]) -> str:
    """Return the commands that make these runs of a figure, one for the games that have the same seeds."""
    planned = [spec for spec in specs if not spec.is_added]
    games: dict[tuple[int, int | None], list[str]] = {}  # by first seed, and number unless it is the default
    for game, runs in grouped(planned, lambda spec: spec.game).items():
        seeds = sorted({spec.seed for spec in runs})
        for row in grouped(enumerate(seeds), lambda item: item[1] - item[0]).values():
            count = None if len(row) == figure.seeds(budget, game) else len(row)
            games.setdefault((row[0][1], count), []).append(game)
    all_games = {(figure.first_seed, None): list(figure.games[budget])}
    return "` and `".join(
        _command(figure, budget, of_seeds, *seeds, changes)
        for seeds, of_seeds in (games or all_games).items()
    )


def _command(
    figure: Figure, budget: str, games: list[str], first: int, count: int | None, changes: Mapping[str, str]
) -> str:
    """Return the command that makes the runs of games with `count` seeds from the first one on."""
    words = ["ga3c-tf", "reproduce", "--figure", figure.name, "--budget", budget]
    if set(games) != set(figure.games[budget]):
        words += ["--games", ",".join(games)]
    if first != figure.first_seed:
        words += ["--first-seed", str(first)]
    if count is not None:
        words += ["--seeds", str(count)]
    for name, value in changes.items():
        words += [spelled(name), value]
    return " ".join(words)

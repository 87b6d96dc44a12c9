"""The results folder: paper/ and measured/ (records), runs/, figures/, logs/ and the page README.md.

Smoke runs show that everything works and are no results, so a folder has either smoke records or others.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ga3c_tf.config import UserError
from reproduce.figure import Figure, Results, read_paper
from reproduce.one_run import locked
from reproduce.records import Record, read_records, write_records
from reproduce.runs import Run
from reproduce.specs import BUDGETS, RunSpec

DEFAULT = {"smoke": Path("runs/smoke"), "quick": Path("results"), "paper": Path("results")}
PAPER = Path(__file__).resolve().parents[1] / "results" / "paper"
"""The paper's records in the checkout, copied into every results folder."""


class ResultsFolder:
    """One results folder.

    Args:
        path: the folder; it need not be there.
    """

    def __init__(self, path: Path):
        self.path = path
        self.runs, self.figures, self.logs = path / "runs", path / "figures", path / "logs"

    def prepare(self, budget: str) -> None:
        """Makes the folder, with the paper's records, for runs at this budget.

        Raises:
            UserError: it has records of the other kind, or cannot be written.
        """
        self.check_kind(budget)
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
            self.logs.mkdir(exist_ok=True)
            if not (self.path / "paper").exists():
                if not PAPER.is_dir():
                    raise UserError(f"{PAPER} is not there; run from a checkout of this package")
                shutil.copytree(PAPER, self.path / "paper", copy_function=shutil.copyfile)
        except OSError as error:
            raise UserError(f"cannot write the results folder {self.path}: {error.strerror}") from None

    def check_kind(self, budget: str) -> None:
        """Refuses to mix smoke runs with results, with a UserError."""
        mixed = [other for other in self.budgets() if (other == "smoke") != (budget == "smoke")]
        if mixed:
            raise UserError(
                f"{self.path} has records of the {mixed[0]} budget, and smoke runs are no results; "
                f"name another --out for the {budget} budget"
            )

    def budgets(self) -> list[str]:
        """The budgets that there are records of."""
        return [budget for budget in BUDGETS if any((self.path / "measured").glob(f"*-{budget}.csv"))]

    def measured_file(self, figure: Figure, budget: str) -> Path:
        """Where the records of a figure at a budget lie."""
        return self.path / "measured" / f"{figure.name}-{budget}.csv"

    def records(self, figure: Figure, budget: str) -> list[Record]:
        """Our records of a figure at a budget, none where there is no file."""
        file = self.measured_file(figure, budget)
        return read_records(file, measured=True) if file.exists() else []

    def paper(self) -> list[Record]:
        """The paper's records.

        Raises:
            UserError: there are none.
        """
        records = read_paper(self.path / "paper")
        if not records:
            raise UserError(f"{self.path} is no results folder: it has no paper/*.csv")
        return records

    def results(self, figure: Figure, budget: str, games: Sequence[str] = (), seeds: int = 0) -> Results:
        """What is known of a figure, by its records, with the runs that they are of and those not made yet."""
        records = self.records(figure, budget)
        specs = self._known_specs(figure, budget, records, games, seeds)
        runs = [Run.of(spec, self.runs) for spec in specs]
        command = f"ga3c-tf reproduce --figure {figure.name} --budget {budget}"
        return Results(budget, command, self.paper(), runs, records)

    def update(self, figure: Figure, budget: str, games: Sequence[str], seeds: int, say: Callable[[str], None]) -> None:
        """Records and draws the runs of a figure as they are now.

        Args:
            figure: the figure.
            budget: its budget.
            games, seeds: that were asked for, beyond the default and what was recorded before.
            say: told, in one line, what is waited for.
        """
        with locked(self.logs / "update.lock", say):
            before = self.results(figure, budget, games, seeds)
            results = replace(before, records=figure.records(before.runs))
            write_records(self.measured_file(figure, budget), results.records)
            figure.plots(results, self.figures / f"{figure.name}-{budget}")

    def pictures(self, figure: Figure, budget: str) -> list[Path]:
        """The stems of the pictures of a figure at a budget, relative to the folder."""
        name = re.compile(rf"{re.escape(figure.name)}-{budget}(-[a-z-]+)?")
        files = sorted(self.figures.glob(f"{figure.name}-{budget}*.svg"))
        return [file.relative_to(self.path).with_suffix("") for file in files if name.fullmatch(file.stem)]

    def _known_specs(
        self, figure: Figure, budget: str, records: list[Record], games: Sequence[str], seeds: int
    ) -> list[RunSpec]:
        """The default runs of the figure, and of further games and seeds those that have a folder."""
        default = figure.all_specs(budget)
        known_games = list(dict.fromkeys([*figure.games[budget], *games, *(record.game for record in records)]))
        most_seeds = max(seeds, 1, *(spec.seed for spec in default), *(record.seed or 0 for record in records))
        further = [spec for spec in figure.all_specs(budget, most_seeds, known_games) if (self.runs / spec.id).exists()]
        return list(dict.fromkeys([*default, *further]))

"""What a table or figure of the paper consists of here, and what its parts are handed."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.measures.records import MEASURED, NOT_RUN, Record, read_records
from ga3c_tf.reproduce.measures.text import lines_of
from ga3c_tf.reproduce.measures.verdicts import RUNS_MISSING, Claim, Finding
from ga3c_tf.reproduce.runs.run import Run
from ga3c_tf.reproduce.runs.specs import GAMES, NINE_GAMES, RunSpec, as_file_name, run_spec

Key = TypeVar("Key")


class Measure(NamedTuple):
    """One number of a run; not-a-number where it has none, and then why."""

    metric: str
    value: float
    unit: str
    protocol: str
    why_not: str = "nothing to measure"
    method: str | None = None  # where it is not that of the run's system
    agent_steps: int | None = None  # where it is not of the end of the run


@dataclass(frozen=True)
class Results:
    """What is known of one figure at one budget.

    Attributes:
        budget: of `BUDGETS`.
        command: that makes it.
        paper: the paper's records, of all tables.
        runs: all runs of the figure, finished or not, in the order of their specifications.
        records: our own records of them.
    """

    budget: str
    command: str
    paper: list[Record]
    runs: list[Run]
    records: list[Record]

    @functools.cached_property
    def _by_run(self) -> dict[tuple[str, str], Record]:
        return {(str(record.run_id), record.metric): record for record in self.records}

    @functools.cached_property
    def _statuses(self) -> dict[str, str]:
        """By run id the first status that is not 'measured', if any record of the run has one."""
        found: dict[str, str] = {}
        for record in self.records:
            if found.get(str(record.run_id), MEASURED) == MEASURED:
                found[str(record.run_id)] = record.status
        return found

    def of_game(self, game: str) -> Results:
        """Return the part that is of one game."""
        runs = [run for run in self.runs if run.spec.game == game]
        return dataclasses.replace(self, runs=runs, records=[each for each in self.records if each.game == game])

    def value(self, run: Run, metric: str) -> float | None:
        """Return the number of this run, or None."""
        record = self._by_run.get((run.spec.id, metric))
        return record.value if record else None

    def status(self, run: Run) -> str:
        """'measured', or as recorded what went wrong; 'not run' without a record."""
        return self._statuses.get(run.spec.id, NOT_RUN)

    @property
    def begun(self) -> bool:
        """Whether any run is finished, or is known to have failed."""
        return any(run.finished or self.status(run) != NOT_RUN for run in self.runs)

    @property
    def ended(self) -> bool:
        """Whether all runs have come to an end; before that a verdict could still turn."""
        return all(run.ended for run in self.runs)

    @property
    def judges_gpu(self) -> bool:
        """Whether claims that need a GPU are judged: at `quick`, which needs none, only if a run had one."""
        return self.budget != "quick" or any(run.on_gpu for run in self.runs if run.finished)

    def values(self, metric: str, runs: Iterable[Run]) -> list[float]:
        """Return the numbers of these runs that have one."""
        return [value for run in runs if (value := self.value(run, metric)) is not None]

    def score(self, run: Run, metric: str, random: float | None = None) -> float | None:
        """Return the score of this run, or None; one that diverged scores as the random policy.

        Args:
            run: the run.
            metric: a score in points.
            random: the score of the random policy; None for `Run.random_score`.
        """
        if not run.diverged:
            return self.value(run, metric)
        counted = run.random_score if random is None else random
        return None if math.isnan(counted) else counted

    def scores(self, metric: str, runs: Iterable[Run], random: float | None = None) -> list[float]:
        """Return the scores of these runs that have one, as `score` does."""
        return [score for run in runs if (score := self.score(run, metric, random)) is not None]

    def unfinished(self, runs: Iterable[Run]) -> str:
        """Return for each of these runs that is not finished its seed and what became of it, in one cell."""
        return "; ".join(f"seed {run.spec.seed}: {self.status(run)}" for run in runs if not run.finished)

    @property
    def failed(self) -> list[tuple[str, str]]:
        """Return the ids of the runs that ended without being finished, and why."""
        return [(run.spec.id, self.status(run)) for run in self.runs if not run.finished and run.result]

    def papers(self, table: str, **cells: str) -> Record | None:
        """Return the paper's record with these cells, or None."""
        found = (record for record in self.paper if record.table == table)
        return next((each for each in found if all(getattr(each, name) == text for name, text in cells.items())), None)


@dataclass(frozen=True)
class Figure:
    """One table or figure of the paper.

    Attributes:
        name: as in `--figure`.
        place: its place on the results page, from 1 on.
        paper: where it stands in the paper.
        shows: what it plots, in one line.
        headline: what the paper says of it, or what it asks that is not the paper's, in one line.
        games: that it is made for by default, at each budget that it has.
        seeds: how many by default, of a budget and a game.
        specs: the runs of one game and seed at a budget.
        measures: the numbers of a finished run.
        main: metric and unit of the row that an unfinished run leaves.
        details: lines of Markdown: tables, and how they are to be read.
        plot: draws what is there into the files of this stem (.svg and .png).
        claims: what its runs are to decide, and what they found; none where it only describes.
        by_game: claims, details and plot are made for each game by itself; of several games, for those with a run.
        first_seed: of its runs.
        answer: one line for the summary, of a figure whose answer is not in its claims; empty where there is none.
    """

    name: str
    place: int
    paper: str
    shows: str
    headline: str
    games: dict[str, tuple[str, ...]]
    seeds: Callable[[str, str], int]
    specs: Callable[[str, str, int], list[RunSpec]]
    measures: Callable[[Run], list[Measure]]
    main: tuple[str, str]
    details: Callable[[Results], list[str]]
    plot: Callable[[Results, Path], None]
    claims: Callable[[Results], list[Claim]] = lambda results: []
    by_game: bool = False
    first_seed: int = 1
    answer: Callable[[Results], str] = lambda results: ""

    def all_specs(self, budget: str, seeds: int | None = None, games: Sequence[str] = ()) -> list[RunSpec]:
        """Return the runs at a budget, seed by seed: an early end leaves all games and settings with the first.

        Raises:
            UserError: it is not made at this budget.
        """
        if budget not in self.games:
            raise UserError(f"the figure {self.name} has no budget {budget}; it has {', '.join(self.games)}")
        chosen = []
        asked = games or self.games[budget]
        for number in range(seeds or max(self.seeds(budget, game) for game in asked)):
            for game in asked:
                if number < (seeds or self.seeds(budget, game)):
                    chosen += self.specs(budget, game, self.first_seed + number)
        return list(dict.fromkeys(chosen))

    def changed_specs(
        self, budget: str, changes: Mapping[str, Any], seeds: int | None = None, games: Sequence[str] = ()
    ) -> list[RunSpec]:
        """Return the same runs by a method of the user's own.

        Raises:
            UserError: they are no longer told apart: the figure itself is about what is changed.
        """
        plain = self.all_specs(budget, seeds, games)
        for name in changes:
            if self.compares(name, plain):
                raise UserError(f"the figure {self.name} compares settings of --{name}; it does not go with --{name}")
        return [spec.changed(changes) for spec in plain]

    def takes_games(self, budget: str, games: Sequence[str]) -> bool:
        """Whether the figure can be made of these games at this budget."""
        try:
            self.all_specs(budget, 1, games)
        except UserError:
            return False
        return True

    def takes(self, changes: Mapping[str, Any], specs: Sequence[RunSpec]) -> bool:
        """Whether these runs can be made by a method of the user's own."""
        try:
            for spec in specs:
                spec.changed(changes)
        except UserError:
            return False
        return not any(self.compares(name, specs) for name in changes)

    @staticmethod
    def compares(name: str, specs: Sequence[RunSpec]) -> bool:
        """Whether these runs, of any one game, differ in this setting."""
        values: dict[str, set] = {}
        for spec in specs:
            values.setdefault(spec.game, set()).add(dict(spec.settings).get(name))
        return any(len(each) > 1 for each in values.values())

    def section(self, results: Results) -> list[str]:
        """Return the lines of Markdown of the claims and the details."""
        return lines_of("section.md", claims=self.claims(results), details=self.details(results))

    def all_claims(self, results: Results) -> list[Claim]:
        """Return the claims of all games; the text names the game where there are several."""
        games = {run.spec.game for run in results.runs} if self.by_game else {}
        return [
            claim._replace(text=f"{game}: {claim.text}", game=game) if len(games) > 1 else claim
            for game, part in self.parts(results).items()
            for claim in self.claims(part)
        ]

    def sections(self, results: Results) -> list[str]:
        """Return the lines of Markdown, for each game where there are several."""
        games = dict.fromkeys(run.spec.game for run in results.runs) if self.by_game else {}
        parts = self.parts(results)
        lines = []
        for game, part in parts.items():
            lines += [*([f"**{game}**", ""] if len(games) > 1 else []), *self.section(part), ""]
        without = [game for game in games if game not in parts]
        return [*lines, *([f"Not run: {', '.join(without)}.", ""] if without else [])]

    def plots(self, results: Results, stem: Path) -> None:
        """Draw all pictures."""
        for game, part in self.parts(results).items():
            self.plot(
                part, stem.with_name(f"{stem.name}-{as_file_name(game).replace('_', '-')}") if self.by_game else stem
            )

    def parts(self, results: Results) -> dict[str, Results]:
        """Return what claims, details and plot are of: the results of each game, or all of them under an empty name."""
        if not self.by_game:
            return {"": results}
        games = dict.fromkeys(run.spec.game for run in results.runs)
        parts = {game: results.of_game(game) for game in games}
        return {game: part for game, part in parts.items() if part.begun or len(parts) == 1}

    def records(self, runs: Sequence[Run]) -> list[Record]:
        """Return the rows of these runs; one that is not finished has one row, with the reason."""
        return [record for run in runs for record in self._records_of(run)]

    def _records_of(self, run: Run) -> list[Record]:
        if run.finished:
            return [self._record(run, each) for each in self.measures(run)]
        metric, unit = self.main
        return [self._record(run, Measure(metric, float("nan"), unit, "", run.status_text))]

    def _record(self, run: Run, measure: Measure) -> Record:
        spec = run.spec
        measured = not math.isnan(measure.value)
        record = Record(
            table=self.name,
            game=spec.game,
            method=measure.method or spec.method,
            metric=measure.metric,
            value=measure.value if measured else None,
            unit=measure.unit,
            protocol=measure.protocol,
            source="this package",
            status=MEASURED if measured else " ".join(measure.why_not.split()),
            seed=spec.seed,
            run_id=spec.id,
        )
        if not run.result.get("sessions"):
            return record
        return dataclasses.replace(
            record,
            commit=run.commit,
            dirty=run.dirty,
            hours=round(run.hours, 4),
            agent_steps=run.agent_steps if measure.agent_steps is None else measure.agent_steps,
            hardware=run.hardware,
        )


def grouped(runs: Iterable[Run], key: Callable[[Run], Key]) -> dict[Key, list[Run]]:
    """Group the runs by what `key` says of each, in the order of the first of each group."""
    found: dict[Key, list[Run]] = {}
    for run in runs:
        found.setdefault(key(run), []).append(run)
    return found


def once_ended(finding: Finding, runs: Iterable[Run]) -> Finding:
    """Return the finding, or 'runs missing' with its numbers while one of the runs has not come to its end."""
    return finding if all(run.ended for run in runs) else Finding(RUNS_MISSING, finding.because)


def seeds_by_budget(
    smoke: int = 1, quick: int = 1, gpu: int = 3, tuned: int = 3, paper: int = 3
) -> Callable[[str, str], int]:
    """Return a function that gives as many seeds at each budget, whatever the game."""
    counts = {"smoke": smoke, "quick": quick, "gpu": gpu, "tuned": tuned, "paper": paper}
    return lambda budget, game: counts[budget]


def read_paper(folder: Path) -> list[Record]:
    """Return the paper's records in `folder`, of all files."""
    return [record for file in sorted(folder.glob("*.csv")) for record in read_records(file)]


def smoke_spec(game: str, seed: int, system: str = "ga3c", **settings: Any) -> RunSpec:
    """Return a run of seconds, to see that everything works; figures share these. None drops a setting."""
    small: dict[str, Any] = {
        "num_agents": 4,
        "num_predictors": 1,
        "num_trainers": 1,
        "min_training_batch": 20,
        "steps": 3000,
        "log_seconds": 1.0,
    }
    scores = game in NINE_GAMES or game not in GAMES
    scored: dict[str, Any] = {"evaluation_episodes": 1, "random_play": True} if scores else {}
    given = {name: value for name, value in {**small, **settings}.items() if value is not None}
    return run_spec(game, seed, system, **scored, **given)

"""What a table or figure consists of: a grid of runs, metrics, claims, tables and a picture.

A figure is a module in a folder beside this one, with a `FIGURE`; the registry finds it. It declares

- `specs`: its runs at a budget, for one game and seed;
- `dimensions`: what tells the runs apart, as columns of the tidy table (`Measurements`);
- `measures`: the numbers of a finished run, which are the rows of that table;
- `claims`: tests of estimates over the table, with reasons to decide nothing (`Claim`); `judged` gives the
  verdicts, which are data, and corrects the p values of the whole family;
- `tables` and `plot`: what is shown of the table.

`figures/lag/batch_size.py` is the shortest example. Words of the pages are in pages/templates/<name>.md.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures.measurements import Dimensions, Measurements, label
from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.measures.records import MEASURED, Record, read_records
from ga3c_tf.reproduce.measures.text import geometric_mean, mean_and_interval, mean_ci, number
from ga3c_tf.reproduce.measures.verdicts import Claim, judged, observed
from ga3c_tf.reproduce.runs.methods import has_system
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import GAMES, NINE_GAMES, RunSpec, as_file_name, run_spec

Item = TypeVar("Item")
Key = TypeVar("Key")


class Measure(NamedTuple):
    """One number of a run. Without one, the value is not-a-number, and `why_not` says why."""

    metric: str
    value: float
    unit: str
    protocol: str
    why_not: str = "nothing to measure"
    method: str | None = None  # None: the method of the run
    agent_steps: int | None = None  # at which the number was taken; None: at the end of the run


Cell = Callable[[Measurements], str]
"""Returns the text of a cell for the part of the table that its row is about."""


class Table(NamedTuple):
    """A table of the results: a row for each combination of dimensions, a column for each cell.

    Attributes:
        by: the dimensions of the rows.
        columns: the cells, by heading.
        title: what the table shows; empty for the only one.
        where: the runs that are shown, as in `Measurements.select`.
    """

    by: Sequence[str]
    columns: Mapping[str, Cell]
    title: str = ""
    where: Mapping[str, Any] = {}

    @property
    def header(self) -> list[str]:
        """The headings."""
        return [*(name.replace("_", " ") for name in self.by), *self.columns, "runs"]

    def rows(self, table: Measurements) -> list[list[str]]:
        """Return the cells of each row of which a run has begun."""
        rows = []
        for key, part in table.select(**self.where).parts(*self.by):
            if any(run.result for run in part.runs):
                names = key if len(self.by) > 1 else (key,)
                cells = [cell(part) for cell in self.columns.values()]
                rows.append([*map(str, names), *cells, str(len(part.finished))])
        return rows


def mean_of(metric: str, **where: Any) -> Cell:
    """Return a cell with the mean of a metric, its interval and, if some lack it, the number of seeds."""

    def cell(part: Measurements) -> str:
        selected = part.select(**where)
        values = selected.numbers(metric)
        return mean_and_interval(values) if _complete(selected, values) else mean_ci(values)

    return cell


def time_of(metric: str) -> Cell:
    """Return a cell with the geometric mean of times and its interval, which is computed on the logarithm."""
    return lambda part: geometric_mean(part.numbers(metric))


def _complete(part: Measurements, values: Sequence[float]) -> bool:
    """Whether every finished run of a row has a value, so that the column of runs has their number."""
    return bool(values) and len(values) == len(part.finished)


def unfinished(part: Measurements) -> str:
    """Return a cell with the runs that are not finished."""
    return part.unfinished


def minutes(part: Measurements) -> str:
    """Return a cell with the mean minutes of training."""
    times = [60 * run.hours for run in part.finished]
    return number(sum(times) / len(times)) if times else "-"


@dataclass(frozen=True)
class Figure:
    """One table or figure of the paper, or one of our own.

    Attributes:
        name: name in `--figure`.
        place: place on the results page, from 1 on.
        paper: place in the paper, such as 'Figure 3'; or a note that the paper does not have it.
        shows: what the figure plots, in one line.
        headline: what the paper says about it, or the question of our own that it asks, in one line.
        tuned_headline: the same at the budget `tuned`, if it is another question.
        games: default games at each budget that the figure has.
        seeds: returns the default number of seeds at a budget for a game.
        specs: returns the runs at a budget of one game and seed.
        measures: returns the numbers of a finished run.
        main: metric and unit of the only record of an unfinished run.
        dimensions: returns what tells a run apart, by name.
        scores: metrics in which a run that diverged counts as the random policy.
        tables: tables of the results.
        plot: draws the results into <stem>.svg and <stem>.png.
        claims: returns the claims that the runs decide; none if the figure only describes.
        by_game: whether claims, tables and plot are made for each game separately. If there are several
            games, those without a run are left out.
        first_seed: lowest seed of the runs.
        answer: returns what the summary says besides the number of findings; otherwise an empty text.
        added_games: games at `quick` of which seeds were added to undecided findings.
        added: returns the runs of added seeds for one of these games, which belong to the default runs.
        beside: name of a figure whose records at the same budget are shown beside the results.
        words: values that the template of the figure's page uses.
        looks: numbers of seeds at which the claims are judged, planned before the runs; empty for one look.
    """

    name: str
    place: int
    paper: str
    shows: str
    headline: str
    games: dict[str, tuple[str, ...]]
    seeds: Callable[[str, str], int]
    specs: Callable[[str, str, int], list[RunSpec]]
    measures: Callable[[RecordedRun], list[Measure]]
    main: tuple[str, str]
    plot: Callable[[Measurements, Path], None]
    tables: Sequence[Table] = ()
    dimensions: Dimensions = label
    scores: Sequence[str] = ()
    claims: Callable[[Measurements], list[Claim]] = lambda table: []
    by_game: bool = False
    first_seed: int = 1
    tuned_headline: str = ""
    answer: Callable[[Measurements], str] = lambda table: ""
    added_games: Sequence[str] = ()
    added: Callable[[str], list[RunSpec]] = lambda game: []
    beside: str = ""
    words: Mapping[str, Any] = field(default_factory=dict)
    looks: Sequence[int] = ()

    def all_specs(
        self,
        budget: str,
        seeds: int | None = None,
        games: Sequence[str] = (),
        first_seed: int | None = None,
    ) -> list[RunSpec]:
        """Return the runs at a budget, seed by seed, and those of a seed by their turns.

        In this order, an early stop leaves all games and settings with the first seeds.

        Args:
            budget: one of `BUDGETS`.
            seeds: number of seeds; None for the default number of each game, and the runs of added seeds.
            games: names of the games; empty for the default games of the budget.
            first_seed: lowest seed, without runs of added seeds; None for the figure's own.

        Raises:
            UserError: the figure does not have this budget.
        """
        if budget not in self.games:
            raise UserError(f"the figure {self.name} has no budget {budget}; it has {', '.join(self.games)}")
        chosen = []
        asked = games or self.games[budget]
        lowest = self.first_seed if first_seed is None else first_seed
        for turn in range(seeds or max(self.seeds(budget, game) for game in asked)):
            of_seed = []
            for game in asked:
                if turn < (seeds or self.seeds(budget, game)):
                    of_seed += self.specs(budget, game, lowest + turn)
            chosen += sorted(of_seed, key=lambda spec: spec.turn)
        if seeds is None and first_seed is None and budget == "quick":
            added = [spec for game in asked if game in self.added_games for spec in self.added(game)]
            chosen += [spec.as_added() for spec in added]
        return list(dict.fromkeys(chosen))

    def changed_specs(
        self,
        budget: str,
        changes: Mapping[str, Any],
        seeds: int | None = None,
        games: Sequence[str] = (),
        first_seed: int | None = None,
    ) -> list[RunSpec]:
        """Return the runs of `all_specs`, without added seeds, with settings changed to a method of the
        user's own.

        Args:
            budget, seeds, games, first_seed: as in `all_specs`.
            changes: values of the changed settings, by name.

        Raises:
            UserError: a setting is invalid, or the figure compares its values or those of the algorithm's
                preset, so that runs would become equal.
        """
        return self.changed(self.all_specs(budget, seeds, games, first_seed), changes)

    def changed(self, specs: Sequence[RunSpec], changes: Mapping[str, Any]) -> list[RunSpec]:
        """Return these runs, without added seeds and systems that lack the algorithm, by a method of the
        user's own.

        Args:
            specs: runs of the figure.
            changes: as in `changed_specs`.

        Raises:
            UserError: as in `changed_specs`.
        """
        plain = [spec for spec in specs if not spec.is_added and has_system(changes, spec.system)]
        changed = [spec.changed(changes) for spec in plain]
        for name in changes:
            if self.compares(name, specs):
                raise UserError(
                    f"the figure {self.name} compares settings of --{name}; it does not go with --{name}"
                )
        if len({spec.config for spec in changed}) < len({spec.config for spec in plain}):
            raise UserError(
                f"the figure {self.name} compares settings that the preset of --algorithm gives; it does not "
                "go with --algorithm"
            )
        return changed

    def takes_games(self, budget: str, games: Sequence[str]) -> bool:
        """Return whether the figure can be made for these games at this budget."""
        try:
            self.all_specs(budget, 1, games)
        except UserError:
            return False
        return True

    def takes(self, changes: Mapping[str, Any], specs: Sequence[RunSpec]) -> bool:
        """Return whether these runs can be made with settings changed to a method of the user's own."""
        try:
            self.changed(specs, changes)
        except UserError:
            return False
        return True

    @staticmethod
    def compares(name: str, specs: Sequence[RunSpec]) -> bool:
        """Return whether runs of the same game differ in this setting."""
        values: dict[str, set] = {}
        for spec in specs:
            values.setdefault(spec.game, set()).add(spec.given.get(name))
        return any(len(distinct) > 1 for distinct in values.values())

    def table(self, results: Results) -> Measurements:
        """Return the tidy table of results."""
        return Measurements.of(results, self.dimensions, self.scores)

    def parts(self, results: Results) -> dict[str, Measurements]:
        """Return the tables for claims, tables and plot, by game; under '' if not made by game."""
        table = self.table(results)
        if not self.by_game:
            return {"": table}
        parts = dict(table.parts("game"))
        return {game: part for game, part in parts.items() if len(parts) == 1 or results.of_game(game).begun}

    def verdicts(self, results: Results) -> list[Claim]:
        """Return the claims of all games with their verdicts.

        Each family is that of a game, if claims are made by game. If there are several games, each text names
        its game. Claims whose tests a review has rejected are observations.
        """
        claims = []
        for game, part in self.parts(results).items():
            several = len({run.spec.game for run in results.runs}) > 1
            for claim in observed(judged(self.claims(part), max(1, len(self.looks))), results.reviews):
                name = f"{game}: {claim.text}" if game and several else claim.text
                claims.append(dataclasses.replace(claim, text=name, game=claim.game or game * several))
        return claims

    def plots(self, results: Results, stem: Path) -> None:
        """Draw the picture of the figure, or one of each game if the figure is made by game."""
        for game, part in self.parts(results).items():
            path = stem
            if self.by_game:
                path = stem.with_name(f"{stem.name}-{as_file_name(game).replace('_', '-')}")
            self.plot(part, path)

    def records(self, runs: Sequence[RecordedRun]) -> list[Record]:
        """Return the records of these runs. A run that is not finished has one record, with the reason."""
        return [record for run in runs for record in self._records_of(run)]

    def _records_of(self, run: RecordedRun) -> list[Record]:
        if run.finished:
            return [self._record(run, measure) for measure in self.measures(run)]
        metric, unit = self.main
        return [self._record(run, Measure(metric, math.nan, unit, "", run.status_text))]

    def _record(self, run: RecordedRun, measure: Measure) -> Record:
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


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Group items, such as runs, by the value of `key`, in the order in which the values first appear."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def seeds_by_budget(
    smoke: int = 1, quick: int = 1, gpu: int = 3, tuned: int = 3, paper: int = 3
) -> Callable[[str, str], int]:
    """Return a function that gives the number of seeds at each budget, the same for every game."""
    counts = {"smoke": smoke, "quick": quick, "gpu": gpu, "tuned": tuned, "paper": paper}
    return lambda budget, game: counts[budget]


def read_paper(folder: Path) -> list[Record]:
    """Return the paper's records from all CSV files in `folder`."""
    return [record for file in sorted(folder.glob("*.csv")) for record in read_records(file)]


def smoke_spec(game: str, seed: int, system: str = "ga3c", **settings: Any) -> RunSpec:
    """Return a run of a few seconds that checks whether everything works. Figures share these runs.

    Args:
        game: name of the game.
        seed: seed of the run.
        system: one of `SYSTEMS`.
        settings: values that replace those of the small default run; None removes a setting.
    """
    small: dict[str, Any] = {
        "num_agents": 4,
        "num_predictors": 1,
        "num_trainers": 1,
        "min_training_batch": 20,
        "steps": 3000,
        "log_seconds": 1.0,
        "rolling_episodes": 20,
    }
    scores = game in NINE_GAMES or game not in GAMES
    scored: dict[str, Any] = {"evaluation_episodes": 1, "random_play": True} if scores else {}
    given = {name: value for name, value in {**small, **settings}.items() if value is not None}
    return run_spec(game, seed, system, **scored, **given)

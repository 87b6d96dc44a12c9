"""What a table or figure consists of: a grid of runs, metrics, claims, tables and a picture.

A figure is a class with attributes, in a module in a folder beside this one, where the registry finds it. Its
words are in figures.toml, in the order of the results page: place in the paper, headline, and the texts of
its claims. It has

- `games` and `planned`, its runs at a budget, for one game and seed; `smoke` has the settings of its runs of
  a few seconds;
- `labels` or `dimensions`: what tells the runs apart, as columns of its table (`Measurements`);
- `measured`: functions that return the numbers of a finished run, which are the other columns;
- `claims`: tests of estimates over the table, with reasons to decide nothing (`Claim`). `judged` gives the
  verdicts, which are data, and corrects the p values of the whole family;
- `rows` and `columns` of its table, and `lines` of its learning curves, or a `plot` of another kind.

`figures/learning/batch_size.py` is a short example with claims. Words of the pages are in pages/templates.
"""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from ga3c_tf.errors import UserError
from ga3c_tf.files import as_file_name
from ga3c_tf.reproduce.drawing import score_plots
from ga3c_tf.reproduce.figures.measurements import Measure, Measurements, Results, record_of
from ga3c_tf.reproduce.figures.normalized import random_score
from ga3c_tf.reproduce.figures.plans import smoke_spec
from ga3c_tf.reproduce.figures.tables import Cell, Table
from ga3c_tf.reproduce.measures.records import Record
from ga3c_tf.reproduce.measures.text import game_title
from ga3c_tf.reproduce.measures.verdicts import PLAIN, UNPLANNED_LOOK, Claim, Guard, Test, judged, observed
from ga3c_tf.reproduce.runs.methods import has_system
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import ADDED, RunSpec
from ga3c_tf.runs.curve import Columns

SEEDS = {"smoke": 1, "quick": 1, "gpu": 3, "tuned": 3, "paper": 3}
"""Default number of seeds by budget."""
Specs = Callable[[str, str, int], list[RunSpec]]


class Added(NamedTuple):
    """Seeds at `quick` that were added to some runs of games, because a finding was undecided."""

    games: Sequence[str]  # the games
    seeds: Sequence[int]  # the seeds
    # whether a run of the figure is added for these seeds
    where: Callable[[RunSpec], bool] = lambda spec: True
    specs: Specs | None = None  # returns the runs, if they are not those of the figure


WORDS = Path(__file__).parent / "figures.toml"
"""File of the words of figures, in the order of the results page."""


@functools.cache
def all_words() -> dict[str, dict[str, Any]]:
    """Return the words of `WORDS` by name of the figure. The registry checks that each figure has some."""
    return tomllib.loads(WORDS.read_text(encoding="utf-8"))


class Figure:
    """One table or figure of the paper, or one of our own."""

    name: str  # in `--figure`, and of its part of figures.toml
    games: Mapping[str, tuple[str, ...]]  # default games at each budget that the figure has
    only: Sequence[str] = ()  # the games that its settings are for; empty for all
    counts: Mapping[str, int] = {}  # default numbers of seeds, at budgets with other numbers than `SEEDS`
    first_seed = 1
    added: Sequence[Added] = ()
    smoke: Sequence[Mapping[str, Any]] = ({},)  # settings of each run of `smoke_spec`
    # dimension of each word of a label, and what it is read as; empty for the label as the only dimension
    labels: Mapping[str, Callable[[str], Any]] = {}
    measured: Sequence[Callable[[RecordedRun], Iterable[Measure]]] = ()
    main: tuple[str, str]  # metric and unit of the only record of an unfinished run
    by_game = False  # whether claims, tables and plot are made for each game with a run separately
    looks: Sequence[int] = ()  # numbers of seeds at which claims are judged, if several were planned
    # dimensions of the rows of the figure's table, and its cells by heading; or several tables
    rows: Sequence[str] = ()
    columns: Mapping[str, Cell] = {}
    tables: Sequence[Table] = ()
    lines = "label"  # dimension of the lines of learning curves
    panels = "game"  # dimension of their panels
    time_label = "time (minutes)"  # of the axis of time
    words: Mapping[str, Any] = {}  # values in the template of the figure's page
    # from figures.toml: place in the paper, what it plots, what the paper says about it or the question that
    # it asks, the same at the budget `tuned` if it is another question, and the texts of claims by key
    paper = "not in the paper"
    shows: str
    headline: str
    tuned_headline = ""
    texts: Mapping[str, Mapping[str, Any]] = {}

    def __init__(self) -> None:
        vars(self).update(all_words().get(self.name, {}))
        if self.rows and not self.tables:
            self.tables = (Table(self.rows, self.columns),)

    def seeds(self, budget: str, game: str) -> int:
        """Return the default number of seeds at a budget for a game."""
        return {**SEEDS, **self.counts}[budget]

    def specs(self, budget: str, game: str, seed: int) -> list[RunSpec]:
        """Return the runs at a budget of one game and seed.

        Raises:
            UserError: the figure is not for this game.
        """
        is_smoke = budget == "smoke"
        # Smoke runs have settings of their own; but some figures measure by the game, also in smoke runs.
        fits_all = not self.only or (is_smoke and self.games["smoke"][0] not in self.only)
        if not fits_all and game not in self.only:
            raise UserError(
                f"the figure {self.name} does not go with {game}; it is made for {', '.join(self.only)}"
            )
        if is_smoke:
            return [smoke_spec(game, seed, **settings) for settings in self.smoke]
        return self.planned(budget, game, seed)

    def planned(self, budget: str, game: str, seed: int) -> list[RunSpec]:
        """Return the runs of `specs` at another budget than `smoke`."""
        raise NotImplementedError

    def dimensions(self, spec: RunSpec) -> Mapping[str, Any]:
        """Return what tells a run apart, by name, without the mark of added seeds."""
        words = [word.removesuffix(ADDED) for word in spec.label]
        if not self.labels:
            return {"label": ", ".join(words)}
        return {name: kind(word) for (name, kind), word in zip(self.labels.items(), words, strict=True)}

    def measures(self, run: RecordedRun) -> list[Measure]:
        """Return the numbers of a finished run."""
        return [measure for of_run in self.measured for measure in of_run(run)]

    def claims(self, table: Measurements) -> list[Claim]:
        """Return the claims that the runs decide; none if the figure only describes."""
        return []

    def answer(self, table: Measurements) -> str:
        """Return what the page says besides the findings."""
        return ""

    def plot(self, table: Measurements, stem: Path) -> None:
        """Draw the results into <stem>.svg and <stem>.png: learning curves, if the figure has no other."""
        panels = []
        for title, part in self.drawn(table).parts(self.panels):
            lines = [of_line for _, of_line in part.parts(self.lines)]
            curves = {self.line_name(line): [*map(self.curve, line.finished)] for line in lines}
            if part.finished:
                scores = (random_score(part), self.goal(part), self.reach(part))
                panels.append(score_plots.Panel(title.replace("_", " "), curves, *scores))
        if panels:
            score_plots.score_curves(panels, stem, self.time_label)

    def drawn(self, table: Measurements) -> Measurements:
        """Return the runs whose learning curves are drawn."""
        return table

    def curve(self, run: RecordedRun) -> Columns:
        """Return the learning curve of a run."""
        return run.curve

    def line_name(self, part: Measurements) -> str:
        """Return the name of the line of these runs. A number is named with its dimension."""
        line = part.rows[0].facts[self.lines]
        return line if isinstance(line, str) else f"{self.lines} {line:,}"

    def goal(self, part: Measurements) -> float | None:
        """Return the score at which the runs of a panel end, if there is one."""
        return None

    def reach(self, part: Measurements) -> float | None:
        """Return the score that the axis of a panel must include, if there is one."""
        return None

    def claim(
        self, key: str, test: Test, guards: Sequence[Guard], shown: bool = True, game: str = "", **words: Any
    ) -> Claim:
        """Return a claim whose texts are in figures.toml, by the key or a pattern.

        Args:
            key, test, guards, shown, game: as of `Claim`.
            words: values in the texts.
        """
        prose = next(prose for pattern, prose in self.texts.items() if fnmatch(key, pattern))
        text, rule = (prose.get(name, "").format(**words) for name in ("text", "rule"))
        found = prose.get("found", PLAIN)
        return Claim(key, text, test, guards, rule, prose.get("own", False), game, shown, found, words)

    def all_specs(
        self, budget: str, seeds: int | None = None, games: Sequence[str] = (), first_seed: int | None = None
    ) -> list[RunSpec]:
        """Return the runs at a budget, seed by seed, and those of a seed by their turns.

        In this order, an early stop leaves all games and settings with the first seeds.

        Args:
            budget: one of `BUDGETS`.
            seeds: number of seeds; None for the default number of each game.
            games: names of the games; empty for the default games of the budget.
            first_seed: lowest seed; None for the figure's own.

        Raises:
            UserError: the figure does not have this budget.
        """
        if budget not in self.games:
            raise UserError(f"the figure {self.name} has no budget {budget}; it has {', '.join(self.games)}")
        counts = {game: seeds or self.seeds(budget, game) for game in games or self.games[budget]}
        lowest = self.first_seed if first_seed is None else first_seed
        specs: list[RunSpec] = []
        for turn in range(max(counts.values())):
            playing = [game for game, count in counts.items() if turn < count]
            of_seed = [spec for game in playing for spec in self.specs(budget, game, lowest + turn)]
            specs += sorted(of_seed, key=lambda spec: spec.turn)
        return list(dict.fromkeys(specs))

    def added_specs(self, budget: str, game: str) -> list[RunSpec]:
        """Return the runs of the added seeds of a game, which are not made again."""
        if budget != "quick":
            return []
        specs: list[RunSpec] = []
        for group in self.added:
            plan = group.specs or self.specs
            of_seeds = [spec for seed in group.seeds for spec in plan(budget, game, seed)]
            specs += [spec.as_added() for spec in of_seeds if game in group.games and group.where(spec)]
        return specs

    def changed(self, specs: Sequence[RunSpec], changes: Mapping[str, Any]) -> list[RunSpec]:
        """Return these runs, without added seeds and systems that lack the algorithm, with settings changed
        to a method of the user's own.

        Raises:
            UserError: a setting is invalid, or the figure compares its values or those of the algorithm's
                preset, so that runs would become equal.
        """
        plain = [spec for spec in specs if not spec.is_added and has_system(changes, spec.system)]
        changed = [spec.changed(changes) for spec in plain]
        for name in changes:
            values = {(spec.game, spec.given.get(name)) for spec in specs}
            if len(values) > len({spec.game for spec in specs}):
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
        return _is_possible(lambda: self.all_specs(budget, 1, games))

    def takes(self, changes: Mapping[str, Any], specs: Sequence[RunSpec]) -> bool:
        """Return whether these runs can be made with settings changed to a method of the user's own."""
        return _is_possible(lambda: self.changed(specs, changes))

    def table(self, results: Results) -> Measurements:
        """Return the table of results."""
        return Measurements.of(results, self.dimensions)

    def parts(self, results: Results) -> dict[str, Measurements]:
        """Return the tables for claims, tables and plot, by game; under '' if not made by game."""
        table = self.table(results)
        if not self.by_game:
            return {"": table}
        parts = dict(table.parts("game"))
        return {game: part for game, part in parts.items() if len(parts) == 1 or part.begun}

    def verdicts(self, results: Results) -> list[Claim]:
        """Return the claims of all games with their verdicts.

        Each family is that of a game, if claims are made by game. If there are several games, each text names
        its game. Claims whose tests a review has rejected are observations.
        """
        several = len({run.spec.game for run in results.runs}) > 1
        claims = []
        for game, part in self.parts(results).items():
            of_part = [self._at_planned_looks(claim, part) for claim in self.claims(part)]
            for claim in observed(judged(of_part, max(1, len(self.looks))), results.reviews):
                text = f"{game_title(game)}: {claim.text}" if game and several else claim.text
                claims.append(replace(claim, text=text, game=claim.game or game * several))
        return claims

    def _at_planned_looks(self, claim: Claim, table: Measurements) -> Claim:
        """Return the claim, which decides nothing by other numbers of seeds than the planned looks, or by
        the seeds of several commands.
        """
        seeds = len(table.names("seed"))
        unplanned = bool(self.looks) and seeds > self.looks[0] and seeds not in self.looks
        for _, of_game in table.select(added=False).parts("game"):
            seeds_of_game = of_game.names("seed")
            unplanned |= max(seeds_of_game) - min(seeds_of_game) >= len(seeds_of_game)
        return replace(claim, guards=[*claim.guards, Guard(UNPLANNED_LOOK, unplanned)])

    def plots(self, results: Results, stem: Path) -> None:
        """Draw the picture of the figure, or one of each game if the figure is made by game."""
        for game, part in self.parts(results).items():
            suffix = f"-{as_file_name(game).replace('_', '-')}" if self.by_game else ""
            self.plot(part, stem.with_name(f"{stem.name}{suffix}"))

    def records(self, runs: Iterable[RecordedRun]) -> list[Record]:
        """Return the records of these runs. A run that is not finished has one record, with the reason."""
        return [record_of(self.name, run, measure) for run in runs for measure in self._measures_of(run)]

    def _measures_of(self, run: RecordedRun) -> list[Measure]:
        metric, unit = self.main
        return self.measures(run) if run.finished else [Measure(metric, math.nan, unit, "", run.status_text)]


def _is_possible(plan: Callable[[], object]) -> bool:
    try:
        plan()
    except UserError:
        return False
    return True

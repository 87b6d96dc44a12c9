"""The page of one figure: what was found, its pictures and tables, and the command that makes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ga3c_tf.reproduce.figures.normalized import papers_score
from ga3c_tf.reproduce.measures.text import game_title
from ga3c_tf.reproduce.measures.verdicts import INCONCLUSIVE
from ga3c_tf.reproduce.pages import lines_of
from ga3c_tf.reproduce.pages.findings import Chapter
from ga3c_tf.reproduce.pages.nine_games import NineGames, span
from ga3c_tf.reproduce.pages.sentences import cells, sentence
from ga3c_tf.reproduce.results import comparison
from ga3c_tf.reproduce.results.folder import NONE, ResultsFolder
from ga3c_tf.reproduce.runs.specs import described

MANY_FINDINGS = 12
"""A figure with more findings shows those that are undecided in a table only."""
OPEN_ROWS = 20
"""A table with more rows is folded."""


class ShownTable(NamedTuple):
    """A table of the page, without the columns that have no cell."""

    title: str
    header: list[str]
    rows: list[list[str]]
    folded: bool
    seeds: str  # number of seeds of each row, if they have the same number; else empty


def lines(folder: ResultsFolder, chapters: Sequence[Chapter], games: NineGames | None) -> list[str]:
    """Return the page of a figure, with its budgets in `chapters`; that of `scores` has the nine games."""
    parts = [part for chapter in chapters for part in _parts(folder, chapter)]
    words = {"games": games, "span": span, "papers_score": papers_score, "game_title": game_title}
    return lines_of("figure.md", figure=chapters[0].figure, parts=parts, **words)


def _parts(folder: ResultsFolder, chapter: Chapter) -> Iterator[dict[str, Any]]:
    """Yield the parts of a figure at a budget: the paper's method, then each method of the user's own."""
    figure, budget, results = chapter.figure, chapter.budget, chapter.results
    answer = figure.answer(chapter.table)
    yield _part(folder, chapter, NONE) | {
        "title": chapter.title,
        "question": figure.tuned_headline if budget == "tuned" else "",
        "sentences": _sentences(chapter),
        "answer": f"{answer[:1].upper()}{answer[1:]}.",
        "numbers": [cells(claim) for claim in chapter.claims if len(chapter.claims) > MANY_FINDINGS],
        "rules": list(dict.fromkeys(claim.rule for claim in chapter.claims if claim.rule)),
        "committed": folder.history.committed(figure.name, budget, chapter.finished),
    }
    for changes in folder.methods():
        changed = Chapter(figure, budget, folder.results(figure, budget, changes))
        if changed.results.runs:
            yield _part(folder, changed, changes) | {
                "title": f"{chapter.title}, {described(changed.results.runs[0].spec.changes)}",
                "comparison": comparison.section(figure, results, changed.results),
            }


def _sentences(chapter: Chapter) -> list[str]:
    """Return the findings as sentences; of many, those that are decided, and how many are not."""
    shown = chapter.claims
    if len(shown) > MANY_FINDINGS:
        shown = [claim for claim in shown if claim.finding.kind != INCONCLUSIVE]
    sentences = [sentence(claim) for claim in shown]
    hidden = len(chapter.claims) - len(shown)
    return [*sentences, *([f"{hidden} other findings are **undecided** (table below)."] if hidden else [])]


def _part(folder: ResultsFolder, chapter: Chapter, changes: Mapping[str, str]) -> dict[str, Any]:
    """Return what every part has: pictures, tables, and how their runs were made."""
    figure = chapter.figure
    values = {"figure": figure.name, "budget": chapter.budget, "on_gpu": chapter.on_gpu}
    values |= {"published_here": folder.published, **figure.words}
    return {
        "pictures": folder.pictures(figure, chapter.budget, changes),
        "tables": list(_tables(chapter)),
        "words": lines_of("figures.md", **values),
        "budget": chapter.budget,
        "command": chapter.results.command,
        "outcomes": Counter(run.outcome for run in chapter.results.runs),
        "hardware": sorted({run.hardware for run in chapter.finished}),
    }


def _tables(chapter: Chapter) -> Iterator[ShownTable]:
    """Yield the tables of all games; those after the first of a game, and the long ones, are folded."""
    for game, part in chapter.figure.parts(chapter.results).items():
        for place, table in enumerate(chapter.figure.tables):
            rows = table.rows(part)
            if any({*row[len(table.by) : -1]} - {"", "-"} for row in rows):
                title = ", ".join(filter(None, (game_title(game), table.title)))
                yield _shown(title or "values", table.header, rows, bool(place) or len(rows) > OPEN_ROWS)


def _shown(title: str, header: list[str], rows: list[list[str]], folded: bool) -> ShownTable:
    columns = [column for column in zip(header, *rows, strict=True) if {*column[1:]} - {"", "-"}]
    seeds = {*columns[-1][1:]}
    if len(seeds) == 1:  # said under the table
        del columns[-1]
    head, *lines = map(list, zip(*columns, strict=True))
    return ShownTable(title, head, lines, folded, seeds.pop() if len(seeds) == 1 else "")

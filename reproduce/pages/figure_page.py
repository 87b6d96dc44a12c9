"""The page of one figure: what was found, its pictures and tables, and the command that makes them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.measures.text import TEMPLATES, lines_of
from ga3c_tf.reproduce.measures.verdicts import NO_DIFFERENCE, Claim
from ga3c_tf.reproduce.pages.findings import Chapter
from ga3c_tf.reproduce.pages.sentences import cells, sentence
from ga3c_tf.reproduce.results import comparison
from ga3c_tf.reproduce.results.folder import ResultsFolder
from ga3c_tf.reproduce.results.history import named
from ga3c_tf.reproduce.runs.specs import described

OPEN_ROWS = 20
"""A table with more rows is folded."""


class ShownTable(NamedTuple):
    """A table of the page, without the columns that have no cell."""

    title: str
    header: list[str]
    rows: list[list[str]]
    folded: bool
    runs: str = ""  # number of runs of each row, if they have the same number


def lines(folder: ResultsFolder, chapters: Sequence[Chapter], extra: Sequence[str] = ()) -> list[str]:
    """Return the page of a figure.

    Args:
        folder: the results folder.
        chapters: the figure at each of its budgets.
        extra: lines after those of the budgets.
    """
    parts = [part for chapter in chapters for part in _parts(folder, chapter)]
    first = chapters[0]
    return lines_of("figure.md", figure=first.figure, parts=parts, extra=list(extra))


def _parts(folder: ResultsFolder, chapter: Chapter) -> Iterator[dict[str, Any]]:
    """Yield the parts of a figure at a budget: the paper's method, then each method of the user's own."""
    figure, budget = chapter.figure, chapter.budget
    answer = figure.answer(figure.table(chapter.results))
    yield _part(folder, chapter, chapter.title) | {
        "question": figure.tuned_headline if budget == "tuned" else "",
        "sentences": [sentence(figure.name, claim) for claim in chapter.claims],
        "answer": f"{answer[:1].upper()}{answer[1:]}.",
        "numbers": [[*cells(claim), _new_seeds(chapter.results, claim)] for claim in chapter.claims],
        "rules": list(dict.fromkeys(claim.rule for claim in chapter.claims if claim.rule)),
        "committed": folder.history.row(named(figure.name, budget), chapter.results.runs),
        "pictures": folder.pictures(figure, budget),
    }
    for changes in folder.methods():
        changed = Chapter(figure, budget, folder.results(figure, budget, changes=changes))
        if changed.results.runs:
            title = f"{chapter.title}, {described(changed.results.runs[0].spec.changes)}"
            yield _part(folder, changed, title) | {
                "comparison": comparison.section(figure, chapter.results, changed.results),
                "pictures": folder.pictures(figure, budget, changes),
            }


def _part(folder: ResultsFolder, chapter: Chapter, title: str) -> dict[str, Any]:
    """Return what every part has: the tables, and how their runs were made."""
    runs = chapter.results.runs
    return {
        "title": title,
        "tables": list(_tables(chapter)),
        "words": _words(chapter),
        "command": chapter.results.command,
        "outcomes": Counter(run.outcome for run in runs),
        "hardware": sorted({run.hardware for run in chapter.finished}),
        "records": folder.measured_file(chapter.figure, chapter.budget).name,
    }


def _tables(chapter: Chapter) -> Iterator[ShownTable]:
    """Yield the tables of all games; those after the first of a game, and the long ones, are folded."""
    for game, part in chapter.figure.parts(chapter.results).items():
        for place, table in enumerate(chapter.figure.tables):
            rows = table.rows(part)
            if rows:
                title = ", ".join(filter(None, (game.replace("_", " "), table.title)))
                filled = [any(row[column] not in ("", "-") for row in rows) for column in range(len(rows[0]))]
                header, *shown = [
                    [cell for cell, keep in zip(row, filled, strict=True) if keep]
                    for row in (table.header, *rows)
                ]
                runs = {row[-1] for row in shown}
                if len(runs) == 1:  # said under the table
                    header, *shown = [row[:-1] for row in (header, *shown)]
                folded = bool(place) or len(rows) > OPEN_ROWS
                yield ShownTable(title or "values", header, shown, folded, *(runs if len(runs) == 1 else ()))


def _words(chapter: Chapter) -> list[str]:
    """Return what the template of the figure says about its tables; nothing without a template."""
    name = f"{chapter.figure.name}.md"
    if not (TEMPLATES / name).exists():
        return []
    on_gpu = any(run.on_gpu for run in chapter.finished)
    return lines_of(name, budget=chapter.budget, on_gpu=on_gpu, **chapter.figure.words)


def _new_seeds(results: Results, claim: Claim) -> str:
    """Return how many new seeds would decide a finding with a probability of 80 %, if its effect is true."""
    verdict = claim.finding
    if verdict.reason != NO_DIFFERENCE:
        return "-"
    times = verdict.estimate.times_the_runs(verdict.level)
    runs = results.of_game(claim.game).runs if claim.game else results.runs
    planned = len({run.spec.seed for run in runs if not run.spec.is_added})
    counted = verdict.estimate.n if verdict.estimate.looks > 1 else planned
    return "-" if math.isinf(times) else str(math.ceil(times * counted))

"""Writes the pages of a results folder.

The text depends only on the records and the small files of the runs, so the same folder always gives the same
pages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from ga3c_tf.errors import UserError
from ga3c_tf.files import write_aside
from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.learning import table_3
from ga3c_tf.reproduce.figures.measurements import grouped
from ga3c_tf.reproduce.pages import figure_page, lines_of, overview
from ga3c_tf.reproduce.pages.findings import Chapter, chapters
from ga3c_tf.reproduce.pages.nine_games import NineGames
from ga3c_tf.reproduce.pages.sentences import sentence
from ga3c_tf.reproduce.results import pretrained
from ga3c_tf.reproduce.results.folder import ResultsFolder
from ga3c_tf.reproduce.runs.specs import NINE_GAMES
from ga3c_tf.trained.pretrained import REGISTRY, registry_of

PAGE = "README.md"
DIFFERENCES = re.compile(r" \((D\d+(?:, D\d+)*)\)")
"""Numbers of differences from the paper, such as ' (D9, D18)'."""
ELSEWHERE = re.compile(r"\[([^]]+)\]\((?:\.\./)+(?:docs/|HISTORY)[^)]*\)")
"""Links that lead nowhere from a folder outside the checkout."""


def write_pages(folder: ResultsFolder, say: Callable[[str], None]) -> Path:
    """Write the pages of the folder; return its README.md.

    `say` is called with one line before waiting for another command.

    Raises:
        UserError: records or run folders are missing or damaged, or a page cannot be written.
    """
    folder.paper()  # refuses a folder that is no results folder
    with folder.held(say):  # another command may write them at the same time
        try:
            texts = _texts(folder)
        except overview.Outdated as error:  # runs were added to those that are published
            say(f"{error}; until then {folder.path / PAGE} is that of a folder of your own")
            texts = _texts(folder, own=True)
        for file, text in texts.items():
            try:
                file.parent.mkdir(exist_ok=True)
                write_aside(file, text)
            except OSError as error:
                raise UserError(f"cannot write {file}: {error.strerror}") from None
    return folder.path / PAGE


def stale_pages(folder: ResultsFolder) -> list[Path]:
    """Return the pages that differ from what `write_pages` would write, or that are missing."""
    return [
        file
        for file, text in _texts(folder).items()
        if not file.is_file() or file.read_text(encoding="utf-8") != text
    ]


def said(folder: ResultsFolder, figures: Sequence[Figure], budget: str) -> list[str]:
    """Return what the runs of these figures found at a budget, a line for each finding."""
    return [
        f"{chapter.figure.name}: {sentence(claim).replace('**', '')}"
        for chapter in chapters(folder)
        if chapter.budget == budget and chapter.figure in figures
        for claim in chapter.claims
    ]


def _texts(folder: ResultsFolder, own: bool = False) -> dict[Path, str]:
    """Return the text of each page by its file, with the overview of the user's own folder if `own`."""
    begun = chapters(folder)
    tables = {chapter.budget: chapter.table for chapter in begun if chapter.figure.name == "scores"}
    games = NineGames(tables["quick"], tables["tuned"]) if {"quick", "tuned"} <= tables.keys() else None
    if games and any(len(table_3.scored_games(table)) < len(NINE_GAMES) for table in games):
        games = None  # a game has no score yet
    pages = _figure_pages(folder, begun, games)
    if folder.published and games and not own:
        pages |= _of_the_checkout(folder, begun, games)
    else:
        weights = pretrained.rows(folder, "weights")
        pages[PAGE] = overview.own(begun, "smoke" in folder.budgets(), weights)
    texts = {folder.path / name: _linked(folder, "\n".join(lines) + "\n") for name, lines in pages.items()}
    if folder.published and (registry := registry_of(folder.path / "weights")):
        texts[folder.path / "weights" / REGISTRY] = registry
    return texts


def _linked(folder: ResultsFolder, text: str) -> str:
    """Return a page with links to the differences from the paper, or without links that lead nowhere."""
    if folder.published:
        return DIFFERENCES.sub(r" ([\1](../DIFFERENCES.md))", text)
    return ELSEWHERE.sub(r"\1", DIFFERENCES.sub("", text))


def _figure_pages(
    folder: ResultsFolder, begun: Sequence[Chapter], games: NineGames | None
) -> dict[str, list[str]]:
    """Return the lines of the page of each figure that has been begun, and of the rules, by their names."""
    by_figure = grouped(begun, lambda chapter: chapter.figure.name)
    pages = {"RULES.md": lines_of("rules.md", published_here=folder.published, figures=list(by_figure))}
    for name, of_figure in by_figure.items():
        of_games = games if name == "scores" else None
        pages[f"pages/{name}.md"] = figure_page.lines(folder, of_figure, of_games)
    return pages


def _of_the_checkout(
    folder: ResultsFolder, begun: Sequence[Chapter], games: NineGames
) -> dict[str, list[str]]:
    """Return the lines of the pages that only the published results have, by their names."""
    weights = pretrained.rows(folder, "../weights")
    return {
        PAGE: overview.published(begun, games),
        "pages/claims.md": overview.claims(begun),
        "HISTORY.md": overview.history(folder, begun),
        "pages/published-weights.md": lines_of("published-weights.md", weights=weights),
    }

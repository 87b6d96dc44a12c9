"""What the README of the checkout shows of the results: one table and three pictures, between two marks in it."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path
from typing import Any

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures.figure import Figure, Results
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.measures.text import lines_of
from ga3c_tf.reproduce.results import pretrained
from ga3c_tf.reproduce.results.folder import ResultsFolder

BUDGET = "quick"
SHOWN = ("scores", "pps")
"""Figures; the first shows its table too."""
PRETRAINED = "pong"
END = "<!-- end of what is generated -->"


def texts(folder: ResultsFolder) -> dict[Path, tuple[str, str]]:
    """Return the README beside the results folder, as it is and as it should be; none where it asks for nothing.

    Raises:
        UserError: it cannot be read, or its marks are not one pair.
    """
    place = folder.path.resolve()
    file = place.parent / "README.md"
    begin = f"<!-- generated from {place.name}/ by ga3c-tf report; do not edit -->"
    try:
        text = file.read_text(encoding="utf-8") if file.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {file}: {error}") from None
    before, mark, rest = text.partition(begin)
    if not mark:
        return {}
    _, end, after = rest.partition(END)
    if not end or begin in rest:
        raise UserError(f"{file} needs the line '{begin}' once, and '{END}' after it")
    return {file: (text, "\n".join([before + begin, "", *_lines(folder), "", END]) + after)}


def _lines(folder: ResultsFolder) -> list[str]:
    name = folder.path.resolve().name
    card = f"{name}/weights/{PRETRAINED}"
    has_card = (folder.path / "weights" / PRETRAINED / "curve.svg").exists()
    return lines_of(
        "front_page.md",
        published=pretrained.rows(folder.path / "weights", folder.paper(), f"{name}/weights"),
        card={"name": PRETRAINED, "path": card} if has_card else None,
        figures=[_figure(folder, FIGURES[each], with_table=each == SHOWN[0]) for each in SHOWN],
    )


def _figure(folder: ResultsFolder, figure: Figure, with_table: bool) -> dict[str, Any]:
    """Return what is shown of a figure: of its first game, where each game has its own."""
    name = folder.path.resolve().name
    table: list[str] = []
    game = figure.games[BUDGET][0]
    results = folder.results(figure, BUDGET)
    stems = folder.pictures(figure, BUDGET)
    shown = [stem for stem in stems if not figure.by_game or stem.name.endswith(f"-{game}")]
    hardware = sorted({record.hardware for record in results.records if record.hardware})
    finished = sum(run.finished for run in results.runs)
    if with_table:
        table = _table(figure, results.of_game(game) if figure.by_game else results)
    return {
        "name": figure.name,
        "paper": figure.paper,
        "shows": figure.shows,
        "table": table,
        "pictures": [f"{name}/{stem.as_posix()}" for stem in shown],
        "command": results.command,
        "made": f"{finished} runs, {'; '.join(hardware)}" if hardware else "not run",
        "superseded": folder.superseded_notes(results.runs),
    }


def _table(figure: Figure, results: Results) -> list[str]:
    """Return the first of the figure's tables."""
    return list(takewhile(lambda line: line.startswith("|"), figure.section(results)))

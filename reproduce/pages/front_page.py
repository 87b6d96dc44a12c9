"""What the README of the checkout shows of the results: one table and three pictures, between two marks in it."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

from ga3c_tf.errors import UserError
from reproduce.figures.figure import Figure
from reproduce.figures.registry import FIGURES
from reproduce.results import pretrained
from reproduce.results.folder import ResultsFolder

BUDGET = "quick"
SHOWN = {
    "scores": "Ours after minutes, the paper's GA3C after a day on a GPU. The starred two look swapped in the paper.",
    "pps": "The paper's GA3C had a GPU.",
}
"""Figures, with what a reader must know of them; the first shows its table too."""
PRETRAINED = "pong"
END = "<!-- end of what is generated -->"


def texts(folder: ResultsFolder) -> dict[Path, tuple[str, str]]:
    """The README beside the results folder, as it is and as it should be; none where it asks for nothing from there.

    Raises:
        UserError: it cannot be read, or its marks are not one pair.
    """
    place = folder.path.resolve()
    file, begin = place.parent / "README.md", f"<!-- generated from {place.name}/ by ga3c-tf report; do not edit -->"
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
    lines = []
    published = pretrained.rows(folder.path / "weights", folder.paper(), f"{name}/weights")
    if published:
        lines += [
            "Trained with this code, one seed each (`ga3c-tf play --pretrained NAME`, `evaluate`):",
            "",
            *published,
            "",
        ]
    if (folder.path / "weights" / PRETRAINED / "curve.svg").exists():
        card = f"{name}/weights/{PRETRAINED}"
        lines += [
            f"![Score against time and agent steps]({card}/curve.svg)",
            "",
            f"How {PRETRAINED} was learnt; command, settings and machine: [its card]({card}).",
            "",
        ]
    for place, figure in enumerate(FIGURES[each] for each in SHOWN):
        game = figure.games[BUDGET][0]
        table = _table(folder, figure, game) if place == 0 else []
        stems = [
            stem for stem in folder.pictures(figure, BUDGET) if not figure.by_game or stem.name.endswith(f"-{game}")
        ]
        pictures = [f"![{figure.shows}]({name}/{stem.as_posix()}.svg)" for stem in stems]
        for part in (table, pictures):
            lines += [*part, ""] if part else []
        lines += [_caption(folder, figure), ""] if table or pictures else []
    return lines[:-1]


def _table(folder: ResultsFolder, figure: Figure, game: str) -> list[str]:
    """The first of the figure's tables; of one game where each has its own."""
    results = folder.results(figure, BUDGET)
    lines = figure.section(results.of_game(game) if figure.by_game else results)
    return list(takewhile(lambda line: line.startswith("|"), lines))


def _caption(folder: ResultsFolder, figure: Figure) -> str:
    """Such as 'Table 2: predictions per second (...)', with the command and the machine."""
    results = folder.results(figure, BUDGET)
    count = sum(run.finished for run in results.runs)
    hardware = sorted({record.hardware for record in results.records if record.hardware})
    made = f"{count} runs, {'; '.join(hardware)}" if hardware else "not run"
    notes = folder.superseded_notes(results.runs)
    return " ".join([f"**{figure.paper}**: {figure.shows}. {SHOWN[figure.name]} `{results.command}` ({made}).", *notes])

"""The part of the checkout's README that shows results, between two marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.measures.text import lines_of
from ga3c_tf.reproduce.pages.findings import ATARI, Chapter, counts
from ga3c_tf.reproduce.results import pretrained
from ga3c_tf.reproduce.results.folder import ResultsFolder

END = "<!-- end of what is generated -->"


def texts(folder: ResultsFolder, chapters: Sequence[Chapter], random: Mapping[str, float]) -> dict[Path, str]:
    """Return the README beside the results folder as it should be; {} if it has no marks.

    Args:
        folder: the results folder.
        chapters: its figures at each budget.
        random: our score of the random policy, by game.

    Raises:
        UserError: the README cannot be read, or its marks are not exactly one pair.
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
    return {file: "\n".join([before + begin, "", *_lines(folder, chapters, random), "", END]) + after}


def _lines(folder: ResultsFolder, chapters: Sequence[Chapter], random: Mapping[str, float]) -> list[str]:
    name = folder.path.resolve().name
    of_paper = {subject: kinds for (paper, subject), kinds in counts(chapters).items() if paper}
    return lines_of(
        "front_page.md",
        results=name,
        about_atari=of_paper[ATARI],
        of_paper=sum(of_paper.values(), start=type(of_paper[ATARI])()),
        published=pretrained.brief_rows(folder.path / "weights", folder.paper(), f"{name}/weights", random),
    )

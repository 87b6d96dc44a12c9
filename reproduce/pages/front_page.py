"""The part of the checkout's README that shows results, between two marks."""

from __future__ import annotations

from pathlib import Path

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.measures.text import lines_of
from ga3c_tf.reproduce.pages.summary import Summary, counted
from ga3c_tf.reproduce.results import pretrained
from ga3c_tf.reproduce.results.folder import ResultsFolder

NO_GPU = "no GPU used"
"""End of a description of hardware if no GPU was used."""
END = "<!-- end of what is generated -->"


def texts(folder: ResultsFolder, summary: Summary) -> dict[Path, str]:
    """Return the README beside the results folder as it should be; {} if it has no marks.

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
    return {file: "\n".join([before + begin, "", *_lines(folder, summary), "", END]) + after}


def cores_in_words(cores: set[int]) -> str:
    """Return the numbers of cores in words, such as '1 core' or '1 or 2 cores'."""
    return f"{' or '.join(map(str, sorted(cores)))} core{'' if max(cores) == 1 else 's'}"


def _lines(folder: ResultsFolder, summary: Summary) -> list[str]:
    name = folder.path.resolve().name
    weights = folder.path / "weights"
    return lines_of(
        "front_page.md",
        results=name,
        published=pretrained.brief_rows(weights, folder.paper(), f"{name}/weights", summary.random),
        verdicts=counted(summary.verdicts),
        scope=summary.scope,
        paper_runs=any(chapter.budget == "paper" for chapter in summary.chapters),
        on_gpu=any(NO_GPU not in hardware for hardware in summary.hardware),
    )

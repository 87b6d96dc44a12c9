"""The part of the checkout's README that shows results, between two marks."""

from __future__ import annotations

from pathlib import Path

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures.learning import scores
from ga3c_tf.reproduce.measures.text import lines_of
from ga3c_tf.reproduce.measures.wording import effect_alone
from ga3c_tf.reproduce.pages.summary import Summary, counted
from ga3c_tf.reproduce.results import pretrained
from ga3c_tf.reproduce.results.folder import ResultsFolder
from ga3c_tf.reproduce.runs.specs import NINE_GAMES
from ga3c_tf.trained.weights import EPISODE

PRETRAINED = "pong"
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


def _machines(hardware: set[str]) -> list[str]:
    """Return the machines in words, each kind once: '1 or 2 cores of AMD EPYC'.

    A machine whose GPU only some runs used is named with its GPU.
    """
    names = {machine.removesuffix(f", {NO_GPU}") for machine in hardware}
    cores: dict[str, set[int]] = {}
    for name in names:
        if not any(other.startswith(f"{name}, ") for other in names):
            count, _, kind = name.split(" ", 2)
            cores.setdefault(kind, set()).add(int(count))
    return [f"{cores_in_words(counts)} {kind}" for kind, counts in sorted(cores.items())]


def cores_in_words(cores: set[int]) -> str:
    """Return the numbers of cores in words, such as '1 core' or '1 or 2 cores'."""
    return f"{' or '.join(map(str, sorted(cores)))} core{'' if max(cores) == 1 else 's'}"


def _lines(folder: ResultsFolder, summary: Summary) -> list[str]:
    name = folder.path.resolve().name
    weights = folder.path / "weights"
    return lines_of(
        "front_page.md",
        results=name,
        playing=[game for game in NINE_GAMES if (weights / game / EPISODE).exists()],
        published=pretrained.rows(weights, folder.paper(), f"{name}/weights", summary.random, training=False),
        card=PRETRAINED if (weights / PRETRAINED / "curve.svg").exists() else None,
        verdicts=counted(summary.verdicts),
        own_verdicts=counted(summary.own_verdicts),
        hardware=_machines(summary.hardware),
        scores=summary.answers.get(scores.FIGURE.name),
        tuned_scores=summary.answers.get(f"{scores.FIGURE.name}, tuned"),
        brief=effect_alone,
        scope=summary.scope,
        paper_runs=any(chapter.budget == "paper" for chapter in summary.chapters),
        decided=[finding for finding in summary.decided if finding.of_paper],
        papers_steps=scores.PAPERS_STEPS,
        on_gpu=any(NO_GPU not in hardware for hardware in summary.hardware),
    )

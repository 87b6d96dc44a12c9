"""Writes the pages of a results folder, and the part of the checkout's README that shows its results.

The folder of the published results has the list of its weights too, by which they are fetched.

The text depends only on the records and the small files of the runs, so the same folder always gives the same
page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ga3c_tf.errors import UserError
from ga3c_tf.files import write_aside
from ga3c_tf.host.calibration import mean
from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.learning import papers_algorithm, scores
from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.measures.records import MEASURED
from ga3c_tf.reproduce.measures.text import lines_of, number, table
from ga3c_tf.reproduce.measures.verdicts import FAILS, HOLDS, INCONCLUSIVE, OBSERVED
from ga3c_tf.reproduce.pages import front_page
from ga3c_tf.reproduce.pages.summary import EQUAL, NOTHING, Chapter, Summary, counted, outcomes, summarize
from ga3c_tf.reproduce.results import comparison, pretrained
from ga3c_tf.reproduce.results.folder import ResultsFolder
from ga3c_tf.reproduce.runs.run import comparable
from ga3c_tf.reproduce.runs.specs import SYSTEMS, RunSpec, described
from ga3c_tf.trained.pretrained import REGISTRY, registry_of

PAGE = "README.md"
HISTORY = "HISTORY.md"
"""File with the changes of the rules, beside the page; only the folder of the published results has it."""
SPEED_FIGURES = ("pps", "tps", "speed")


def page(folder: ResultsFolder, summary: Summary | None = None) -> str:
    """Return the text of the page.

    Args:
        folder: the results folder.
        summary: result of `summarize`, if it is known already.

    Raises:
        UserError: records or run folders are missing or damaged.
    """
    summary = summary or summarize(folder)
    smoke = "smoke" in folder.budgets()
    published_here = folder.published
    lines = lines_of(
        "page.md",
        smoke=smoke,
        published_here=published_here,
        overview=[row for row in summary.figures if published_here or row[3] != NOTHING] or summary.figures,
        verdicts=counted(summary.verdicts),
        own_verdicts=counted(summary.own_verdicts),
        scope=summary.scope,
        on_gpu=any(finding.on_gpu for finding in summary.decided),
        runs=f"{len(summary.hours):,}",
        hours=number(sum(summary.hours.values())),
        left=summary.left,
        decided=summary.decided,
        undecided=summary.undecided,
        rules=summary.rules,
        quick=_quick(summary),
        paper_runs=any(chapter.budget == "paper" for chapter in summary.chapters),
        papers_steps=scores.PAPERS_STEPS,
        unidentified=_unidentified(folder, summary),
        published=pretrained.rows(folder.path / "weights", folder.paper(), "weights", summary.random),
        figures=[
            {
                "name": figure.name,
                "paper": figure.paper,
                "shows": figure.shows,
                "blocks": [block for chapter in chapters for block in _blocks(folder, chapter)],
            }
            for figure, chapters in _begun(summary)
        ],
    )
    return "\n".join(lines) + "\n"


def write_pages(folder: ResultsFolder, say: Callable[[str], None]) -> Path:
    """Write the pages of the folder and the generated part of the README beside the folder.

    Args:
        folder: the results folder.
        say: called with one line before waiting for another command.

    Returns:
        The path of the folder's README.md.

    Raises:
        UserError: an error of `page`, or a page cannot be written.
    """
    folder.paper()  # refuses a folder that is no results folder
    with folder.held(say):  # another command may write them at the same time
        for file, text in _texts(folder).items():
            try:
                write_aside(file, text)
            except OSError as error:
                raise UserError(f"cannot write {file}: {error.strerror}") from None
    return folder.path / PAGE


def stale_pages(folder: ResultsFolder) -> list[Path]:
    """Return the pages that differ from what `write_pages` would write."""
    return [file for file, text in _texts(folder).items() if _text_of(file) != text]


def _texts(folder: ResultsFolder) -> dict[Path, str]:
    """Return the text of each page by its file."""
    summary = summarize(folder)
    texts = {folder.path / PAGE: page(folder, summary)}
    if folder.published:
        history = lines_of("history.md", changes=summary.changes, verdicts=_by_word(summary))
        texts[folder.path / HISTORY] = "\n".join(history) + "\n"
        if registry := registry_of(folder.path / "weights"):
            texts[folder.path / "weights" / REGISTRY] = registry
    return texts | front_page.texts(folder, summary)


def _by_word(summary: Summary) -> list[str]:
    """Return a table row: numbers of findings and games of Table 3 by verdict, and the share undecided."""
    findings = summary.verdicts + summary.own_verdicts
    equal = sum(findings[word] for word in EQUAL)
    decided = [
        findings[HOLDS],
        findings[FAILS],
        equal,
        summary.scores[scores.REACHED],
        summary.scores[scores.SHORT],
    ]
    undecided = findings[INCONCLUSIVE] + findings[OBSERVED] + summary.scores[INCONCLUSIVE]
    total = sum(decided) + undecided
    return [
        *map(str, [*decided, undecided, total]),
        f"{undecided / total:.0%}".replace("%", " %") if total else "-",
    ]


def _text_of(file: Path) -> str:
    """Return the text of a page as it is."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None


def _begun(summary: Summary) -> list[tuple[Figure, list[Chapter]]]:
    """Return the figures with a chapter whose runs have begun, each with its chapters."""
    figures = {chapter.figure.name: chapter.figure for chapter in summary.chapters if chapter.results.begun}
    return [
        (figure, [chapter for chapter in summary.chapters if chapter.figure.name == name])
        for name, figure in figures.items()
    ]


def _quick(summary: Summary) -> dict[str, Any] | None:
    """Count the finished runs at `quick` by algorithm, and name their numbers of cores; None without any."""
    results = [chapter.results for chapter in summary.chapters if chapter.budget == "quick"]
    runs = {run.spec.id: run for figure_results in results for run in figure_results.runs if run.finished}
    systems = Counter(SYSTEMS[run.spec.system] for run in runs.values())
    cores = {int(session["cores"]) for run in runs.values() for session in run.sessions}
    return runs and {
        "runs": f"{len(runs):,}",
        "papers": sum(run.spec.has_papers_algorithm for run in runs.values()),
        "others": [f"{count} of {system}" for system, count in systems.items() if system != SYSTEMS["ga3c"]],
        "cores": front_page.cores_in_words(cores),
    }


def _unidentified(folder: ResultsFolder, summary: Summary) -> tuple[int, int]:
    """Return the number of finished runs that do not identify their processor, and that of all."""
    results = [chapter.results for chapter in summary.chapters]
    for changes in folder.methods():
        results += [folder.results(figure, budget, changes=changes) for figure, budget, _ in summary.chapters]
    runs = {
        run.spec.id: run.identified
        for figure_results in results
        for run in figure_results.runs
        if run.finished
    }
    return sum(not identified for identified in runs.values()), len(runs)


def _calibrated(figure: Figure, results: Results) -> list[list[str]]:
    """Return a row with measured, normalized and calibration speeds for each calibrated run of a figure about
    speeds.

    Calibrations are on one core of the processor, so they say nothing about runs on a GPU.
    """
    if figure.name not in SPEED_FIGURES or any(run.on_gpu for run in results.runs if run.finished):
        return []
    rows = []
    for run in results.runs:
        if run.finished and run.calibrations:
            machine = mean(run.calibrations)
            pps = results.value(run, "pps") or run.agent_steps / (3600 * run.hours)
            tps = results.value(run, "tps")
            speeds = [pps, pps / machine.unit, tps, tps and tps / machine.unit]
            rows.append(
                [run.spec.id, *map(number, [*speeds, machine.gflops, machine.copy_gb_s, machine.frames_s])]
            )
    return rows


def _blocks(folder: ResultsFolder, chapter: Chapter) -> list[dict[str, Any]]:
    """Return the blocks of a figure at a budget: of the paper's method, then of each of the user's own."""
    figure, budget, paper = chapter
    title = f"{figure.name}, {budget} budget"
    blocks = [_block(folder, title, figure, paper, [], folder.pictures(figure, budget))]
    for changes in folder.methods():
        method_results = folder.results(figure, budget, changes=changes)
        if method_results.runs:
            compared = comparison.section(figure, paper, method_results)
            pictures = folder.pictures(figure, budget, changes)
            method = described(method_results.runs[0].spec.changes)
            blocks.append(_block(folder, f"{title}, {method}", figure, method_results, compared, pictures))
    return blocks


def _block(
    folder: ResultsFolder,
    title: str,
    figure: Figure,
    results: Results,
    compared: list[str],
    pictures: list[Path],
) -> dict[str, Any]:
    records = [record for record in results.records if record.status == MEASURED]
    sources = {
        f"{(record.commit or 'unknown')[:12]}{' (changed since)' if record.dirty else ''}"
        for record in records
    }
    return {
        "title": title,
        "tuned": results.budget == "tuned" and figure is not papers_algorithm.FIGURE,
        "command": results.command,
        "outcomes": outcomes(results),
        "comparison": compared,
        "hardware": sorted({str(record.hardware) for record in records}),
        "sources": sorted(sources),
        "section": _sections(figure, results),
        "calibrated": _calibrated(figure, results),
        "agree": comparable(run for run in results.runs if run.finished),
        "pictures": [stem.as_posix() for stem in pictures],
        "commands": _commands(results),
    }


def _sections(figure: Figure, results: Results) -> list[str]:
    """Return the claims and tables of all games as lines of Markdown."""
    lines = lines_of("section.md", claims=figure.verdicts(results))
    for game, part in figure.parts(results).items():
        for shown in figure.tables:
            rows = shown.rows(part)
            if rows:
                lines += ["", ": ".join(filter(None, (game, shown.title))), "", *table(shown.header, rows)]
    return lines


def _commands(results: Results) -> list[str]:
    """Return one command for each setting: the command of its first run."""
    commands: dict[RunSpec, str] = {}
    for run in results.runs:
        if run.result.get("sessions"):
            setting = replace(run.spec, seed=0, random_play=False)  # what the runs of all seeds share
            commands.setdefault(setting, run.sessions[0]["command"])
    return list(commands.values())

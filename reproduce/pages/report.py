"""The page README.md of a results folder, written from its records and the small files of its runs, always the same.

With it goes what the README of the checkout shows of it.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from ga3c_tf.errors import UserError
from ga3c_tf.files import write_aside
from ga3c_tf.host.calibration import mean
from ga3c_tf.reproduce.figures.figure import Figure, Results
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.measures.records import MEASURED, NOT_RUN
from ga3c_tf.reproduce.measures.text import lines_of, number
from ga3c_tf.reproduce.measures.verdicts import FAILS, HOLDS, INCONCLUSIVE
from ga3c_tf.reproduce.pages import front_page
from ga3c_tf.reproduce.results import comparison, pretrained
from ga3c_tf.reproduce.results.folder import NONE, ResultsFolder
from ga3c_tf.reproduce.runs.run import Run, comparable
from ga3c_tf.reproduce.runs.specs import BUDGETS, described

SPEED_FIGURES = ("pps", "tps", "speed")
VERDICTS = (HOLDS, FAILS, INCONCLUSIVE)
FINDING = re.compile(rf"^- ((?:.|\n  )+?):\s+\*\*({'|'.join(VERDICTS)})[^*]*\*\* - (.*)$", re.MULTILINE)
"""A finding as a section has it: claim, verdict and numbers."""


def page(folder: ResultsFolder) -> str:
    """Return the text of the page.

    Raises:
        UserError: records or run folders are missing or damaged.
    """
    smoke = "smoke" in folder.budgets()
    overview, verdicts, decided = _overview(folder)
    lines = lines_of(
        "page.md",
        smoke=smoke,
        overview=overview,
        verdicts=verdicts,
        decided=decided,
        unidentified=_unidentified(folder),
        published=pretrained.rows(folder.path / "weights", folder.paper(), "weights"),
        figures=[
            {
                "name": figure.name,
                "paper": figure.paper,
                "shows": figure.shows,
                "blocks": [
                    block
                    for budget in _budgets_shown(folder, figure, smoke)
                    for block in _blocks(folder, figure, budget)
                ],
            }
            for figure in FIGURES.values()
            if any(folder.results(figure, budget).begun for budget in _budgets_shown(folder, figure, smoke))
        ],
    )
    return "\n".join(lines) + "\n"


def write_pages(folder: ResultsFolder) -> Path:
    """Write README.md and what is generated in the README beside the folder; return the path of the first."""
    file = folder.path / "README.md"
    texts = {file: page(folder), **{other: text for other, (_, text) in front_page.texts(folder).items()}}
    for each, text in texts.items():
        write_aside(each, text)
    return file


def stale_pages(folder: ResultsFolder) -> list[Path]:
    """Return the pages that are not what `write_pages` would write."""
    file = folder.path / "README.md"
    due = page(folder)
    try:
        texts = {file: (file.read_text(encoding="utf-8"), due)}
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    return [path for path, (now, then) in {**texts, **front_page.texts(folder)}.items() if now != then]


def _budgets_shown(folder: ResultsFolder, figure: Figure, smoke: bool) -> list[str]:
    """Return those with records; without any, the budget that would come first."""
    known = [budget for budget in reversed(BUDGETS) if folder.measured_file(figure, budget).exists()]
    if known:
        return known
    return ["smoke"] if smoke else [next(budget for budget in figure.games if budget != "smoke")]


def _overview(folder: ResultsFolder) -> tuple[list[list[str]], str, list[str]]:
    """Return what the summary shows.

    Returns:
        A row for each figure and budget, the findings of all counted by verdict, and those that are decided.
    """
    rows = []
    decided = []
    everything: Counter[str] = Counter()
    for figure in FIGURES.values():
        for budget in _budgets_shown(folder, figure, "smoke" in folder.budgets()):
            results = folder.results(figure, budget)
            found = FINDING.findall("\n".join(figure.sections(results))) if results.begun else []
            verdicts = Counter(verdict for _, verdict, _ in found)
            everything += verdicts
            link = f"[{figure.name}](#{figure.name})" if results.begun else figure.name
            decided += [
                f"{link}: {' '.join(claim.split())}: **{verdict}** - {because}"
                for claim, verdict, because in found
                if verdict != INCONCLUSIVE
            ]
            hours = sum(run.hours for run in results.runs if run.finished)
            counts = _counted(verdicts), _outcomes(folder, results), f"{hours:.1f}" if hours else "-"
            rows.append([link, figure.paper, budget, *counts])
    return rows, _counted(everything), decided


def _counted(verdicts: Counter[str]) -> str:
    """Write how many findings have which verdict, such as '1 supported, 2 undecided'."""
    return ", ".join(f"{verdicts[word]} {word}" for word in VERDICTS if verdicts[word]) or "-"


def _unidentified(folder: ResultsFolder) -> tuple[int, int]:
    """Count the finished runs that do not say which processor they ran on, and all that are finished."""
    found = [
        run
        for figure in FIGURES.values()
        for budget in folder.budgets()
        if budget in figure.games
        for changes in (NONE, *folder.methods())
        for run in folder.results(figure, budget, changes=changes).runs
        if run.finished
    ]
    runs = {run.spec.id: run.identified for run in found}
    return sum(not identified for identified in runs.values()), len(runs)


def _calibrated(figure: Figure, results: Results) -> list[list[str]]:
    """Return for each run of a figure of speeds that was calibrated its speeds, also by the unit, and the machine's."""
    rows = []
    for run in results.runs if figure.name in SPEED_FIGURES else []:
        if run.finished and run.calibrations:
            machine = mean(run.calibrations)
            pps = results.value(run, "pps") or run.agent_steps / (3600 * run.hours)
            tps = results.value(run, "tps")
            speeds = [pps, pps / machine.unit, tps, tps and tps / machine.unit]
            rows.append([run.spec.id, *map(number, [*speeds, machine.gflops, machine.copy_gb_s, machine.frames_s])])
    return rows


def _outcomes(folder: ResultsFolder, results: Results) -> str:
    """Count the runs by what became of them, such as '3 measured, 1 superseded, 2 failed, 4 not run'."""
    superseded = [run for runs in folder.superseded(results.runs).values() for run in runs]
    statuses = Counter("superseded" if run in superseded else _kind(results, run) for run in results.runs)
    return ", ".join(f"{count} {status}" for status, count in statuses.items())


def _kind(results: Results, run: Run) -> str:
    """Return what the overview counts the run as."""
    recorded = results.status(run)
    if not run.finished:
        return NOT_RUN if recorded == NOT_RUN else run.outcome
    if recorded == MEASURED:
        return MEASURED
    if any(record.run_id == run.spec.id and record.value is not None for record in results.records):
        return "measured in part"
    return "without a value"


def _blocks(folder: ResultsFolder, figure: Figure, budget: str) -> list[dict[str, Any]]:
    """Return what was measured of a figure at a budget: by the paper's method, then by each of the user's own."""
    paper = folder.results(figure, budget)
    title = f"{figure.name}, {budget} budget"
    blocks = [_block(folder, title, figure, paper, [], folder.pictures(figure, budget))]
    for changes in folder.methods():
        own = folder.results(figure, budget, changes=changes)
        if own.runs:
            compared = comparison.section(figure, paper, own)
            pictures = folder.pictures(figure, budget, changes)
            method = described(own.runs[0].spec.changes)
            blocks.append(_block(folder, f"{title}, {method}", figure, own, compared, pictures))
    return blocks


def _block(
    folder: ResultsFolder, title: str, figure: Figure, results: Results, compared: list[str], pictures: list[Path]
) -> dict[str, Any]:
    records = [record for record in results.records if record.status == MEASURED]
    sources = {f"{(record.commit or 'unknown')[:12]}{' (changed since)' if record.dirty else ''}" for record in records}
    return {
        "title": title,
        "tuned": results.budget == "tuned",
        "command": results.command,
        "outcomes": _outcomes(folder, results),
        "comparison": compared,
        "superseded": folder.superseded_notes(results.runs),
        "hardware": sorted({str(record.hardware) for record in records}),
        "sources": sorted(sources),
        "section": figure.sections(results),
        "calibrated": _calibrated(figure, results),
        "agree": comparable(run for run in results.runs if run.finished),
        "pictures": [stem.as_posix() for stem in pictures],
        "commands": [run.sessions[0]["command"] for run in results.runs if run.result.get("sessions")],
    }

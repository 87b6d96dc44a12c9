"""The page README.md of a results folder, written from its records and the small files of its runs, always the same.

With it goes what the README of the checkout shows of it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from ga3c_tf.errors import UserError
from ga3c_tf.files import write_aside
from reproduce.figures import comparison as beside
from reproduce.figures.figure import Figure, Results
from reproduce.figures.registry import FIGURES
from reproduce.measures.records import MEASURED, NOT_RUN
from reproduce.measures.text import table
from reproduce.measures.verdicts import RULES
from reproduce.pages import front_page
from reproduce.results import pretrained
from reproduce.results.folder import ResultsFolder
from reproduce.runs.run import Run
from reproduce.runs.specs import described

SMOKE = """\
> **These are smoke runs, not results.** Each took seconds, on tiny settings, to see that everything works. No number on
> this page says anything about GA3C.
"""
LIMITS = """\
- The paper's curves, and the absolute speeds of its final Table 2, could not be read anywhere: such cells are empty.
- `quick` runs take minutes on a small machine where the paper took a day on a GPU. Their scores show that learning has
  begun, or has not; they are no reproduction of the paper's scores.
- The paper's scores, and its speeds where they stand here, are those of its first submission (Nov 2016); the speed-ups
  of the five networks are those of the final version.
- Speeds depend on the machine, and on what else it does: only runs on the same hardware are compared, and even machines
  of one name have differed by a factor of 2.5 within a day (D18).
- Intervals are over the seeds that were run; where there is one, over its episodes. The score of one seed says nothing
  about the next.
- A score is that of one policy. Where the learning rate is constant, policies seconds apart differ by about a quarter
  of their score (Ms. Pac-Man; docs/evaluation.md), which no interval here includes.
- [DIFFERENCES.md](DIFFERENCES.md) lists where we depart from the paper."""

PUBLISHED = """\
Trained agents to play, to evaluate and to go on from: one seed each, from the checkpoint with the best rolling
score until then, so this says how far that run had got, not how often or how soon others do; settings may have been
chosen after other runs. Each card has the command, the scores, the machine and the
learning curve."""
MACHINES = """\
The paper's machines (its Table 1): I: 2x Xeon E5-2640v3 2.6 GHz (16 cores), Titan X Maxwell. II: Core i-3820 3.6 GHz,
GTX 980. III: Xeon E5-2698v3 2.3 GHz (16 cores), Tesla K80. Ours stand with each figure."""


def page(folder: ResultsFolder) -> str:
    """The text of the page.

    Raises:
        UserError: records or run folders are missing or damaged.
    """
    smoke = "smoke" in folder.budgets()
    lines = ["# Smoke runs" if smoke else "# Results", "", "Written by `ga3c-tf report`; do not edit.", ""]
    lines += [*SMOKE.splitlines(), ""] if smoke else ["## What these numbers are not", "", *LIMITS.splitlines(), ""]
    lines += ["## Rules", "", *(f"- {rule}" for rule in RULES.values()), ""]
    lines += ["## Machines", "", *MACHINES.splitlines(), ""]
    lines += ["## Overview", "", *_overview(folder), ""]
    published = pretrained.rows(folder.path / "weights", folder.paper(), "weights")
    lines += ["## Published weights", "", *PUBLISHED.splitlines(), "", *published, ""] if published else []
    for figure in FIGURES.values():
        lines += [f"## {figure.name}", "", f"{figure.paper[:1].upper()}{figure.paper[1:]}: {figure.shows}.", ""]
        for budget in _budgets_shown(folder, figure, smoke):
            lines += _blocks(folder, figure, budget)
    return "\n".join(lines).rstrip("\n") + "\n"


def write_pages(folder: ResultsFolder) -> Path:
    """Writes README.md and what is generated in the README beside the folder; returns the path of the first."""
    file = folder.path / "README.md"
    texts = {file: page(folder), **{other: text for other, (_, text) in front_page.texts(folder).items()}}
    for each, text in texts.items():
        write_aside(each, text)
    return file


def stale_pages(folder: ResultsFolder) -> list[Path]:
    """The pages that are not what `write_pages` would write."""
    file, due = folder.path / "README.md", page(folder)
    try:
        texts = {file: (file.read_text(encoding="utf-8"), due)}
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    return [path for path, (now, then) in {**texts, **front_page.texts(folder)}.items() if now != then]


def _budgets_shown(folder: ResultsFolder, figure: Figure, smoke: bool) -> list[str]:
    """Those with records; without any, the budget that would come first."""
    known = [budget for budget in ("paper", "quick", "smoke") if folder.measured_file(figure, budget).exists()]
    return known or ["smoke" if smoke else "quick"]


def _overview(folder: ResultsFolder) -> list[str]:
    rows = []
    for figure in FIGURES.values():
        for budget in _budgets_shown(folder, figure, "smoke" in folder.budgets()):
            results = folder.results(figure, budget)
            rows.append([f"[{figure.name}](#{figure.name})", figure.paper, budget, _fates(folder, results)])
    return table(["figure", "paper", "budget", "runs"], rows)


def _fates(folder: ResultsFolder, results: Results) -> str:
    """Such as '3 measured, 1 superseded, 2 failed, 4 not run'."""
    superseded = [run for runs in folder.superseded(results.runs).values() for run in runs]
    statuses = Counter("superseded" if run in superseded else _kind(results, run) for run in results.runs)
    return ", ".join(f"{count} {status}" for status, count in statuses.items())


def _kind(results: Results, run: Run) -> str:
    """Returns what the overview counts the run as."""
    recorded = results.status(run)
    if not run.finished:
        return NOT_RUN if recorded == NOT_RUN else run.outcome
    if recorded == MEASURED:
        return MEASURED
    if any(record.run_id == run.spec.id and record.value is not None for record in results.records):
        return "measured in part"
    return "without a value"


def _blocks(folder: ResultsFolder, figure: Figure, budget: str) -> list[str]:
    """What was measured of a figure at a budget: by the paper's method, then by each of the user's own."""
    paper = folder.results(figure, budget)
    title = f"{figure.name}, {budget} budget"
    lines = _block(folder, title, figure, paper, [], folder.pictures(figure, budget))
    for changes in folder.methods():
        own = folder.results(figure, budget, changes=changes)
        if own.runs:
            words = described(own.runs[0].spec.changes)
            pictures = folder.pictures(figure, budget, changes)
            lines += _block(folder, f"{title}, {words}", figure, own, beside.section(figure, paper, own), pictures)
    return lines


def _block(
    folder: ResultsFolder, title: str, figure: Figure, results: Results, before: list[str], pictures: list[Path]
) -> list[str]:
    lines = [f"### {title}", "", f"Command: `{results.command}`. Runs: {_fates(folder, results)}.", "", *before]
    lines += [line for text in folder.superseded_notes(results.runs) for line in (text, "")]
    lines += _provenance(results)
    lines += [*figure.sections(results)]
    lines += [f"![{figure.name}: {figure.shows}]({stem.as_posix()}.svg)\n" for stem in pictures]
    commands = [(run.path / "command.txt") for run in results.runs]
    there = [file for file in commands if file.exists()]
    if there:
        lines += [f"<details><summary>Commands of the runs: {len(there)}</summary>", "", "```"]
        lines += [file.read_text(encoding="utf-8").strip() for file in there]
        lines += ["```", "", "</details>", ""]
    return lines


def _provenance(results: Results) -> list[str]:
    """Our hardware and the source that the numbers were made with."""
    records = [record for record in results.records if record.status == MEASURED]
    if not records:
        return []
    hardware = sorted({str(record.hardware) for record in records})
    sources = sorted(
        {f"{(record.commit or 'unknown')[:12]}{' (changed since)' if record.dirty else ''}" for record in records}
    )
    return [f"Our hardware: {'; '.join(hardware)}. Commit: {', '.join(sources)}.", ""]

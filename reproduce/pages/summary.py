"""What was found, on top of the pages: findings by verdict, and what has been run of each figure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from ga3c_tf.reproduce.figures.figure import Figure, Results
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.measures.records import MEASURED, NOT_RUN
from ga3c_tf.reproduce.measures.text import duration
from ga3c_tf.reproduce.measures.verdicts import FAILS, HOLDS, INCONCLUSIVE, NO_DIFFERENCE
from ga3c_tf.reproduce.pages import frozen
from ga3c_tf.reproduce.results.folder import ResultsFolder
from ga3c_tf.reproduce.runs.run import Run
from ga3c_tf.reproduce.runs.specs import BUDGETS

NOTHING = "not run"
BEYOND = "not in the paper"
NO_CLAIM = "not a claim of the paper"
VERDICTS = (HOLDS, FAILS, INCONCLUSIVE)
FINDING = re.compile(rf"^- ((?:.|\n  )+?):\s+\*\*({'|'.join(VERDICTS)})(?:: )?([^*]*)\*\* - (.*)$", re.MULTILINE)
"""A finding as a section has it: claim, verdict, the reason where it is undecided, and numbers."""


class Decided(NamedTuple):
    """A finding that is decided."""

    figure: str
    claim: str
    verdict: str
    because: str
    of_paper: bool  # whether it is about a claim of the paper
    by_change: bool  # whether it would be undecided by the rule that held when the runs were made


class Undecided(NamedTuple):
    """The findings of a figure that are undecided for the same reason."""

    figure: str
    claims: list[str]
    reason: str
    left: str  # how long the runs take that are missing, in words


@dataclass
class Summary:
    """What was found.

    Attributes:
        figures: a row for each figure and budget, for the page of the results: name, place in the paper, its claim, our
            answer and hours.
        rules: a row for each of them that has rules, of `frozen.row`.
        verdicts: how many findings about claims of the paper have which verdict.
        own_verdicts: the same for questions that are not in the paper.
        decided: the findings that are decided.
        undecided: those that are not, by figure and reason.
        answers: our answer to each figure's claim or question, by name and budget.
        hardware: of the finished runs.
    """

    figures: list[list[str]] = field(default_factory=list)
    rules: list[list[str]] = field(default_factory=list)
    verdicts: Counter[str] = field(default_factory=Counter)
    own_verdicts: Counter[str] = field(default_factory=Counter)
    decided: list[Decided] = field(default_factory=list)
    undecided: list[Undecided] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    hardware: set[str] = field(default_factory=set)


def summarize(folder: ResultsFolder) -> Summary:
    """Return what was found in the runs of a results folder."""
    summary = Summary()
    for figure in FIGURES.values():
        for budget in budgets_shown(folder, figure):
            results = folder.results(figure, budget)
            found = _findings(figure, results) if results.begun else []
            name = frozen.named(figure.name, budget)
            summary.verdicts += Counter(verdict for claim, verdict, _, _ in found if _of_paper(figure, claim))
            summary.own_verdicts += Counter(verdict for claim, verdict, _, _ in found if not _of_paper(figure, claim))
            by_change = name in frozen.DECIDED_BY_CHANGE
            summary.decided += [
                Decided(figure.name, " ".join(claim.split()), verdict, because, _of_paper(figure, claim), by_change)
                for claim, verdict, _, because in found
                if verdict != INCONCLUSIVE
            ]
            summary.undecided += _undecided(name, results, found)
            link = f"[{figure.name}](#{figure.name})" if results.begun else figure.name
            hours = sum(run.hours for run in results.runs if run.finished)
            answer = figure.answer(results) or _answer(results, found)
            summary.answers[name] = answer
            summary.hardware |= {run.hardware for run in results.runs if run.finished}
            rule = frozen.row(figure.name, budget, results.runs)
            summary.rules += [rule] if rule else []
            summary.figures.append(
                [frozen.named(link, budget), figure.paper, figure.claim, answer, f"{hours:.1f}" if hours else "-"]
            )
    return summary


def _findings(figure: Figure, results: Results) -> list[tuple[str, ...]]:
    """Return claim, verdict, reason and numbers of each finding; a claim names its game where there are several."""
    games = {run.spec.game for run in results.runs} if figure.by_game else {}
    return [
        (f"{game}: {claim}" if len(games) > 1 else claim, *rest)
        for game, part in figure.parts(results).items()
        for claim, *rest in FINDING.findall("\n".join(figure.section(part)))
    ]


def _of_paper(figure: Figure, claim: str) -> bool:
    """Whether a finding is about a claim of the paper."""
    return not figure.paper.startswith(BEYOND) and NO_CLAIM not in claim


def _undecided(name: str, results: Results, found: list[tuple[str, ...]]) -> list[Undecided]:
    """Group the findings that are undecided by their reason, with the time that the missing runs take."""
    by_reason: dict[str, list[str]] = {}
    for claim, verdict, reason, _ in found:
        if verdict == INCONCLUSIVE:
            by_reason.setdefault(reason, []).append(" ".join(claim.split()))
    seconds = sum(run.spec.seconds for run in results.runs if not run.finished and not run.diverged)
    missing = f"about {duration(seconds)}" if seconds else "none"
    return [
        Undecided(name, claims, reason, "none" if _complete(reason) else missing)
        for reason, claims in by_reason.items()
    ]


def _complete(reason: str) -> bool:
    """Whether all runs of the findings that are undecided for this reason have been made."""
    return NO_DIFFERENCE.endswith(reason)


def _answer(results: Results, found: list[tuple[str, ...]]) -> str:
    """Count the findings by verdict, with the reasons of those that are undecided."""
    if not results.begun:
        return NOTHING
    if not found:
        return "described in the section"
    reasons = dict.fromkeys(reason for _, _, reason, _ in found if reason)
    why = f" ({'; '.join(reasons)})" if reasons else ""
    return counted(Counter(verdict for _, verdict, _, _ in found)) + why


def counted(verdicts: Counter[str]) -> str:
    """Write how many findings have which verdict, such as '1 supported, 2 undecided'."""
    return ", ".join(f"{verdicts[word]} {word}" for word in VERDICTS if verdicts[word]) or "-"


def budgets_shown(folder: ResultsFolder, figure: Figure) -> list[str]:
    """Return those with records; without any, the budget that would come first."""
    known = [budget for budget in reversed(BUDGETS) if folder.measured_file(figure, budget).exists()]
    if known:
        return known
    return ["smoke"] if "smoke" in folder.budgets() else [next(budget for budget in figure.games if budget != "smoke")]


def outcomes(folder: ResultsFolder, results: Results) -> str:
    """Count the runs by what became of them, such as '3 measured, 1 superseded, 2 failed, 4 not run'."""
    falsified = folder.superseded(run.spec for run in results.runs)
    superseded = {spec for specs in falsified.values() for spec in specs}
    statuses = Counter("superseded" if run.spec in superseded else _kind(results, run) for run in results.runs)
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

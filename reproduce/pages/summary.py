"""The summary at the top of the pages: findings by verdict, and what has been run of each figure."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.learning import scores
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS, MOST
from ga3c_tf.reproduce.measures.random_policy import RANDOM_SCORES
from ga3c_tf.reproduce.measures.records import MEASURED, NOT_RUN
from ga3c_tf.reproduce.measures.text import duration
from ga3c_tf.reproduce.measures.verdicts import (
    ALIKE,
    FAILS,
    FEW_SEEDS,
    HOLDS,
    INCONCLUSIVE,
    MARGIN,
    NO_DIFFERENCE,
    OBSERVED,
    RUNS_MISSING,
    WIDE_MARGIN,
    Claim,
    Verdict,
)
from ga3c_tf.reproduce.results.folder import ResultsFolder
from ga3c_tf.reproduce.results.history import History, named
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import BUDGETS, is_atari

NOTHING = "not run"
BEYOND = "not in the paper"
LEARNING = ("points", "1/min")
"""Units of the main number of a figure that is about learning."""
EQUAL = tuple(f"{ALIKE} larger than {margin:.0%}" for margin in (MARGIN, WIDE_MARGIN))
VERDICTS = (HOLDS, FAILS, *EQUAL, OBSERVED, INCONCLUSIVE)


class Chapter(NamedTuple):
    """A figure at a budget, by the paper's method."""

    figure: Figure
    budget: str
    results: Results

    @property
    def name(self) -> str:
        """The figure's name, with the budget unless it is `quick`."""
        return named(self.figure.name, self.budget)


class Decided(NamedTuple):
    """A finding that is decided."""

    figure: str
    name: str  # name of the figure, with the budget unless it is `quick`
    claim: str
    verdict: str
    because: str
    of_paper: bool  # whether it is about a claim of the paper
    by_change: bool  # whether it would be undecided by the rule that held when the runs were made
    on_gpu: bool  # whether any run of the figure used a GPU
    learning: bool  # whether the figure is about learning, and not about speed
    atari: bool  # whether its runs are of Atari games
    longest_s: float  # duration of the longest run of the figure, in seconds

    @property
    def supports_paper(self) -> bool:
        """Whether it supports a claim of the paper."""
        return self.of_paper and self.verdict == HOLDS


class Undecided(NamedTuple):
    """A finding that is undecided."""

    name: str  # name of the figure, with the budget unless it is `quick`
    claim: str
    reason: str
    needed: str  # the runs that would decide it and their time, in words


@dataclass
class Summary:
    """The findings in a results folder.

    Attributes:
        chapters: figures and budgets that the summary covers, in the order of the page.
        figures: a row for each chapter, for the results page: name, place in the paper, claim or question,
            our answer and hours.
        rules: a row from `frozen.row` for each chapter that has rules.
        changes: a row for each finding whose verdict has changed with a rule: figure, claim, verdicts before
            and now, what has changed and when.
        verdicts: number of findings about claims of the paper, by verdict.
        own_verdicts: number of findings about questions that are not in the paper, by verdict.
        decided: the decided findings.
        undecided: the undecided findings.
        hardware: hardware of the finished runs, in words.
        hours: hours of training of each finished run, by its id.
        left: chapters of which runs are missing, with their number and time, in words.
        scores: number of games of Table 3 by verdict, over all chapters that judge them.
        random: our score of the random policy, by game.
    """

    chapters: list[Chapter] = field(default_factory=list)
    figures: list[list[str]] = field(default_factory=list)
    rules: list[list[str]] = field(default_factory=list)
    changes: list[list[str]] = field(default_factory=list)
    verdicts: Counter[str] = field(default_factory=Counter)
    own_verdicts: Counter[str] = field(default_factory=Counter)
    decided: list[Decided] = field(default_factory=list)
    undecided: list[Undecided] = field(default_factory=list)
    hardware: set[str] = field(default_factory=set)
    hours: dict[str, float] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    scores: Counter[str] = field(default_factory=Counter)
    random: dict[str, float] = field(default_factory=lambda: dict(RANDOM_SCORES))

    @property
    def scope(self) -> dict[str, float]:
        """What the paper's supported claims are about: their numbers, and the longest run about speed."""
        supported = [finding for finding in self.decided if finding.supports_paper]
        about_speed = [finding for finding in supported if not finding.learning]
        return {
            "supported": len(supported),
            "atari": sum(finding.learning and finding.atari for finding in supported),
            "small": sum(finding.learning and not finding.atari for finding in supported),
            "speed": len(about_speed),
            "longest_s": max((finding.longest_s for finding in about_speed), default=0.0),
            "on_cpu": sum(not finding.on_gpu for finding in supported),
        }


def summarize(folder: ResultsFolder) -> Summary:
    """Return the findings in a results folder."""
    summary = Summary()
    for figure in FIGURES.values():
        for budget in _budgets_shown(folder, figure):
            _add(summary, Chapter(figure, budget, folder.results(figure, budget)), folder.history)
    return summary


def _add(summary: Summary, chapter: Chapter, history: History) -> None:
    """Add the findings of one chapter to the summary.

    Args:
        summary: the summary.
        chapter: the chapter.
        history: the history of the folder's rules.
    """
    summary.chapters.append(chapter)
    figure, budget, results = chapter
    name = chapter.name
    claims = figure.verdicts(results) if results.begun else []
    changes = history.changes_of(name, claims)
    decided_by_change = [claim.text for claim, change in changes if change.was_undecided]
    of_paper = not figure.paper.startswith(BEYOND)
    summary.verdicts += Counter(claim.finding.word for claim in claims if of_paper and not claim.is_question)
    summary.own_verdicts += Counter(
        claim.finding.word for claim in claims if not of_paper or claim.is_question
    )
    summary.decided += [
        Decided(
            figure=figure.name,
            name=name,
            claim=claim.stated,
            verdict=claim.finding.verdict,
            because=claim.finding.because,
            of_paper=of_paper and not claim.is_question,
            by_change=claim.text in decided_by_change,
            on_gpu=any(run.on_gpu for run in results.runs if run.finished),
            learning=figure.main[1] in LEARNING,
            atari=all(is_atari(run.spec.game) for run in results.runs),
            longest_s=max((3600 * run.hours for run in results.runs if run.finished), default=0.0),
        )
        for claim in claims
        if claim.finding.decided
    ]
    summary.undecided += [
        Undecided(
            name=name,
            claim=claim.stated,
            reason=claim.finding.reason,
            needed=_needed(results.of_game(claim.game) if claim.game else results, claim.finding),
        )
        for claim in claims
        if not claim.finding.decided
    ]
    answer = _answer(results, claims, figure.answer(figure.table(results)))
    summary.hardware |= {run.hardware for run in results.runs if run.finished}
    rule = history.row(name, results.runs)
    if rule:
        summary.rules.append(rule)
    summary.changes += [
        [name, claim.text, change.earlier, claim.finding.verdict, change.change, change.day]
        for claim, change in changes
    ]
    link = f"[{figure.name}](#{figure.name})" if results.begun else figure.name
    trained = {run.spec.id: run.hours for run in results.runs if run.finished}
    hours = sum(trained.values())
    summary.hours |= trained
    summary.left += _left(chapter)
    asked = figure.tuned_headline if budget == "tuned" and figure.tuned_headline else figure.headline
    if figure is scores.FIGURE:
        table = figure.table(results)
        summary.scores += scores.counted(table)
        summary.random |= scores.random_policies(table) | summary.random
    summary.figures.append(
        [named(link, budget), figure.paper, asked, answer, f"{hours:.1f}" if hours else "-"]
    )


def _left(chapter: Chapter) -> list[str]:
    """Describe the missing runs of a begun chapter, such as '2 runs of `tps` (planned for 2.0 h)', if any."""
    missing = [run for run in chapter.results.runs if not run.ended]
    if not chapter.results.begun or not missing:
        return []
    runs = f"{len(missing)} run{'' if len(missing) == 1 else 's'}"
    return [f"{runs} of `{chapter.name}` (planned for {duration(sum(_seconds(run) for run in missing))})"]


def _needed(results: Results, finding: Verdict) -> str:
    """Describe the runs that would decide an undecided finding, and how long they train one after another.

    Args:
        results: results of the games that the finding is about.
        finding: the undecided finding.
    """
    if finding.reason in (RUNS_MISSING, FEW_SEEDS):
        return _more_seeds(results)
    if finding.reason != NO_DIFFERENCE:
        return "-"
    if math.isnan(finding.level) or math.isnan(finding.estimate.freedom):
        return "not estimated"
    planned = [run for run in results.runs if not run.spec.is_added]
    seeds = len({run.spec.seed for run in planned})
    estimate = finding.estimate
    counted = estimate.n if estimate.looks > 1 else seeds
    times = estimate.times_the_runs(finding.level)
    if math.isinf(times):
        return f"more than {MOST * counted:.0f} new seeds"
    needed = math.ceil(times * counted)
    seconds = needed * sum(_seconds(run) for run in planned) / seeds
    return f"about {needed} new seeds ({duration(seconds)})"


def _more_seeds(results: Results) -> str:
    """Describe how many seeds are needed at least, and how long the missing runs take."""
    planned = [run for run in results.runs if not run.spec.is_added]
    seeds = len({run.spec.seed for run in planned})
    least = max(seeds, LEAST_SEEDS)
    missing = sum(_seconds(run) for run in results.runs if not run.ended)
    further = (least / seeds - 1) * sum(_seconds(run) for run in planned)
    if missing + further == 0:
        return "not estimated"
    return f"at least {least} seeds ({duration(missing + further)} more)"


def _seconds(run: RecordedRun) -> float:
    """Return the seconds that a run has trained, or is estimated to take if it has not ended."""
    return 3600 * run.hours if run.ended else run.spec.seconds


def _answer(results: Results, claims: list[Claim], measured: str) -> str:
    """Count the claims by verdict, with the reasons of the undecided ones, before what else was measured."""
    if not results.begun:
        return NOTHING
    if not claims:
        return measured or "no findings; see the section"
    reasons = dict.fromkeys(claim.finding.reason for claim in claims if claim.finding.reason)
    text = counted(Counter(claim.finding.word for claim in claims))
    if reasons:
        text += f" ({'; '.join(reasons)})"
    if measured:
        text += f"; {measured}"
    return text


def counted(verdicts: Counter[str]) -> str:
    """Format the number of findings with each verdict, such as '1 supported, 2 undecided'."""
    return ", ".join(f"{verdicts[word]} {word}" for word in VERDICTS if verdicts[word]) or "-"


def _budgets_shown(folder: ResultsFolder, figure: Figure) -> list[str]:
    """Return the budgets with records of the figure; without any, the first that the folder could have."""
    recorded = [budget for budget in reversed(BUDGETS) if folder.measured_file(figure, budget).exists()]
    if recorded:
        return recorded
    if "smoke" in folder.budgets():
        return ["smoke"]
    return [next(budget for budget in figure.games if budget != "smoke")]


def outcomes(results: Results) -> str:
    """Count the runs by outcome, such as '3 measured, 2 failed, 4 not run'."""
    statuses = Counter(_kind(results, run) for run in results.runs)
    return ", ".join(f"{count} {status}" for status, count in statuses.items())


def _kind(results: Results, run: RecordedRun) -> str:
    """Return the outcome that `outcomes` counts the run under."""
    recorded = results.status(run)
    if not run.finished:
        return NOT_RUN if recorded == NOT_RUN else run.outcome
    if recorded == MEASURED:
        return MEASURED
    if any(record.run_id == run.spec.id and record.value is not None for record in results.records):
        return "measured with some values missing"
    return "without a value"

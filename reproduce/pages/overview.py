"""The results page: all figures in two minutes, or the findings of a folder of the user's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures.learning import scores
from ga3c_tf.reproduce.measures.text import lines_of, number
from ga3c_tf.reproduce.measures.verdicts import (
    ALIKE,
    FAILS,
    HOLDS,
    INCONCLUSIVE,
    OBSERVED,
    RUNS_MISSING,
    Verdict,
)
from ga3c_tf.reproduce.pages.findings import ATARI, SUBJECTS, Chapter, counts, hours
from ga3c_tf.reproduce.pages.nine_games import NineGames, aggregate
from ga3c_tf.reproduce.pages.sentences import Interval, Number, sentence

KINDS = (HOLDS, FAILS, ALIKE, INCONCLUSIVE, OBSERVED)


def published(chapters: Sequence[Chapter], games: NineGames) -> list[str]:
    """Return the results page of the checkout.

    Args:
        chapters: the figures at each budget.
        games: the runs of Table 3.

    Raises:
        UserError: a finding has another verdict than the text of the page says.
    """
    return lines_of(
        "results.md",
        **_of(chapters),
        finding=finder(chapters),
        counted=counted(chapters),
        about_atari=counts(chapters)[True, ATARI],
        figures_about={
            subject: dict.fromkeys(chapter.figure.name for chapter in chapters if chapter.subject == subject)
            for subject in SUBJECTS
        },
        table3=games.rows(),
        reached=scores.counted(games.tuned)[scores.REACHED],
        quick_reached=scores.counted(games.quick)[scores.REACHED],
        below_random=games.below_random(),
        better=len(games.better()),
        quick_share=f"{100 * aggregate(games.quick):.0f} %",
        tuned_share=f"{100 * aggregate(games.tuned):.0f} %",
        others_share=f"{100 * games.published(scores.PUBLISHED[-1]):.0f} %",
        papers_steps=scores.PAPERS_STEPS,
    )


def own(chapters: Sequence[Chapter], smoke: bool, weights: Sequence[str]) -> list[str]:
    """Return the results page of a folder of the user's, with the findings of the figures that were run.

    Args:
        chapters: the figures that were run, at each budget.
        smoke: whether the runs were smoke runs.
        weights: table of the weights in the folder.
    """
    return lines_of("own_results.md", **_of(chapters), sentence=sentence, smoke=smoke, weights=list(weights))


def _of(chapters: Sequence[Chapter]) -> dict[str, Any]:
    """Return what both pages show."""
    trained = hours(chapters)
    return {
        "chapters": chapters,
        "runs": f"{len(trained):,}",
        "hours": number(sum(trained.values())),
    }


def counted(chapters: Sequence[Chapter]) -> list[list[str]]:
    """Return a row for each kind of finding: whose claim, about what, and how many have which verdict."""
    return [
        ["the paper's" if of_paper else "our own", subject, *(str(kinds[kind] or "-") for kind in KINDS)]
        for (of_paper, subject), kinds in counts(chapters).items()
        if kinds
    ]


def finder(chapters: Sequence[Chapter]) -> Callable[..., dict[str, Any]]:
    """Return the function by which the text of the page takes the numbers of a finding.

    The text was written for one verdict. With another one, the function refuses to give numbers.
    """
    findings = {
        (chapter.figure.name, chapter.budget, claim.key): claim.finding
        for chapter in chapters
        for claim in chapter.claims
    }

    def finding(figure: str, budget: str, key: str, kind: str) -> dict[str, Any]:
        verdict = findings.get((figure, budget, key), Verdict(INCONCLUSIVE, RUNS_MISSING))
        if verdict.kind != kind or not verdict.estimate.n:
            now = f"'{key}' of {figure} at {budget} is {verdict.verdict}"
            raise UserError(f"{now}, not {kind}: write its sentence in pages/templates/results.md anew")
        effect, low, high, _ = verdict.estimate.shown
        return {
            "effect": Number(effect),
            "interval": Interval((low, high)),
            "note": verdict.estimate.note,
        }

    return finding

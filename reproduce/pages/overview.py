"""The pages about all figures: the results page, and the history of the rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures.learning import papers_algorithm, table_3
from ga3c_tf.reproduce.figures.measurements import grouped
from ga3c_tf.reproduce.measures.text import number
from ga3c_tf.reproduce.measures.verdicts import (
    INCONCLUSIVE,
    RUNS_MISSING,
    Verdict,
)
from ga3c_tf.reproduce.pages import lines_of
from ga3c_tf.reproduce.pages.findings import ATARI, SUBJECTS, Chapter, papers_claims
from ga3c_tf.reproduce.pages.nine_games import NineGames, aggregate, shares, span
from ga3c_tf.reproduce.pages.sentences import Interval, Number, measured, outcome, sentence
from ga3c_tf.reproduce.results.folder import ResultsFolder


def published(chapters: Sequence[Chapter], games: NineGames) -> list[str]:
    """Return the results page of the checkout, which also has the runs of Table 3.

    Raises:
        UserError: a finding has another verdict than the text of the page says.
    """
    longer = next(
        chapter.table
        for chapter in chapters
        if chapter.figure.name == papers_algorithm.PapersAlgorithmFigure.name
    )
    longer = longer.select(label=papers_algorithm.AUTHORS)
    return lines_of(
        "results.md",
        **_of(chapters),
        finding=finder(chapters),
        atari_decided=any(
            claim.finding.decided
            for chapter in chapters
            if chapter.subject == ATARI
            for claim in papers_claims(chapter)
        ),
        verdicts=Counter(claim.finding.word for chapter in chapters for claim in papers_claims(chapter)),
        figures_about={
            subject: dict.fromkeys(chapter.figure.name for chapter in chapters if chapter.subject == subject)
            for subject in SUBJECTS
        },
        table3=games.rows(longer),
        longer=[round(100 * share) for share in shares(longer).values()],
        reached=len(table_3.reached(games.tuned)),
        quick_millions=span(float(table_3.millions(part)) for _, part in games.quick.parts("game")),
        quick_reached=len(table_3.reached(games.quick)),
        below_random=games.below_random(),
        better=len(games.better()),
        quick_share=f"{100 * aggregate(games.quick):.0f} %",
        tuned_share=f"{100 * aggregate(games.tuned):.0f} %",
        others_share=f"{100 * games.published(table_3.PUBLISHED[-1]):.0f} %",
        papers_steps=table_3.PAPERS_STEPS,
    )


def claims(chapters: Sequence[Chapter]) -> list[str]:
    """Return the page with what the runs found about each claim of the paper."""
    rows = [
        [
            f"[{chapter.figure.paper}]({chapter.figure.name}.md)",
            claim.text[:1].upper() + claim.text[1:],
            "GPU" if chapter.on_gpu else "CPU",
            measured(claim),
            outcome(claim),
        ]
        for chapter in chapters
        for claim in papers_claims(chapter)
    ]
    return lines_of("claims.md", claims=rows)


def own(chapters: Sequence[Chapter], smoke: bool, weights: Sequence[str]) -> list[str]:
    """Return the results page of a folder of the user's, with its findings and its table of weights."""
    return lines_of("own_results.md", **_of(chapters), sentence=sentence, smoke=smoke, weights=weights)


def _of(chapters: Sequence[Chapter]) -> dict[str, Any]:
    """Return what both pages show; runs that figures share count once."""
    hours = {run.spec.id: run.hours for chapter in chapters for run in chapter.finished}
    return {"chapters": chapters, "runs": f"{len(hours):,}", "hours": number(sum(hours.values()))}


class Outdated(UserError):
    """A sentence of the published page is of another verdict than the runs have now."""


def finder(chapters: Sequence[Chapter]) -> Callable[..., dict[str, Any]]:
    """Return the function by which the text of the page takes the numbers of a finding.

    The text was written for one verdict in all games of the figure. With another one, the function refuses
    to give numbers.
    """
    findings: dict[tuple[str, str, str], list[Verdict]] = {}
    for chapter in chapters:
        for claim in chapter.claims:
            if claim.game in ("", *chapter.figure.games[chapter.budget]):
                key = (chapter.figure.name, chapter.budget, claim.key)
                findings.setdefault(key, []).append(claim.finding)

    def finding(figure: str, budget: str, key: str, kind: str) -> dict[str, Any]:
        of_games = findings.get((figure, budget, key), [Verdict(INCONCLUSIVE, RUNS_MISSING)])
        for verdict in of_games:
            if verdict.kind != kind or not verdict.estimate.n:
                now = f"'{key}' of {figure} at {budget} is {verdict.verdict}"
                raise Outdated(f"{now}, not {kind}: write its sentence in pages/templates/results.md anew")
        effect, low, high, _ = verdict.estimate.shown
        return {"effect": Number(effect), "interval": Interval((low, high)), "n": verdict.estimate.n}

    return finding


def history(folder: ResultsFolder, chapters: Sequence[Chapter]) -> list[str]:
    """Return the page about changes of the rules: the verdicts that they altered, and those taken back."""
    verdicts: dict[tuple[str, str], dict[tuple[str, str, str], list[str]]] = {}
    for chapter in chapters:
        for claim in chapter.claims:
            for change in folder.history.changes_of(chapter.figure.name, chapter.budget, claim):
                earlier = change.earlier.partition(":")[0]
                of_change = verdicts.setdefault((change.day, change.change), {})
                of_change.setdefault((change.figure, earlier, claim.finding.word), []).append(claim.key)
    changes = []
    for (day, text), keys in sorted(verdicts.items(), key=lambda item: item[0][0]):
        texts = [f"{_findings(name, of)}: {old}, now {new}" for (name, old, new), of in keys.items()]
        changes.append([day, text, "; ".join(texts)])
    reviews = [
        [_findings(name, keys), reason]
        for name, reasons in folder.history.reviews.items()
        for reason, keys in grouped(reasons, reasons.__getitem__).items()
    ]
    return lines_of("history.md", changes=changes, reviews=reviews)


def _findings(name: str, keys: Iterable[str]) -> str:
    """Return the name of a figure at a budget, as a link to its page, and the keys of its claims."""
    return f"[{name}](pages/{name.split(',')[0]}.md) ({', '.join(key.replace('-', ' ') for key in keys)})"

"""The page about changes of the rules: the verdicts that they have altered, and those taken back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ga3c_tf.reproduce.figures.figure import grouped
from ga3c_tf.reproduce.measures.text import lines_of
from ga3c_tf.reproduce.pages.findings import Chapter
from ga3c_tf.reproduce.results.folder import ResultsFolder
from ga3c_tf.reproduce.results.history import History, named


def lines(folder: ResultsFolder, chapters: Sequence[Chapter]) -> list[str]:
    """Return the page.

    Args:
        folder: the results folder.
        chapters: its figures at each budget.
    """
    reviews = []
    for name, reasons in folder.history.reviews.items():
        for reason, keys in grouped(reasons, reasons.__getitem__).items():
            reviews.append([_findings(name, keys), reason])
    return lines_of("history.md", changes=_changes(folder.history, chapters), reviews=reviews)


def _changes(history: History, chapters: Sequence[Chapter]) -> list[list[str]]:
    """Return a row for each change of a rule: its day, what has changed, and the verdicts before and now."""
    keys: dict[tuple[str, str], dict[tuple[str, str, str], list[str]]] = {}
    for chapter in chapters:
        name = named(chapter.figure.name, chapter.budget)
        for claim, change in history.changes_of(name, chapter.claims):
            earlier = change.earlier.partition(":")[0]
            verdicts = keys.setdefault((change.day, change.change), {})
            verdicts.setdefault((name, earlier, claim.finding.word), []).append(claim.key)
    rows = []
    for (day, text), verdicts in sorted(keys.items(), key=lambda item: int(item[0][0].split()[0])):
        texts = [f"{_findings(name, of)}: {old}, now {new}" for (name, old, new), of in verdicts.items()]
        rows.append([day, text, "; ".join(texts)])
    return rows


def _findings(name: str, keys: Iterable[str]) -> str:
    """Return the name of a figure at a budget, as a link to its page, and the keys of its claims."""
    return f"[{name}](pages/{name.split(',')[0]}.md) ({', '.join(key.replace('-', ' ') for key in keys)})"

"""Compares a method of the user's own with the paper's: numbers and curves of the same runs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ga3c_tf.reproduce.figures.figure import Figure, Results, grouped, once_ended
from ga3c_tf.reproduce.measures.effects import judged, welch_effect
from ga3c_tf.reproduce.measures.text import lines_of, mean_ci, number
from ga3c_tf.reproduce.runs.run import Run
from ga3c_tf.reproduce.runs.specs import RunSpec, described


def by_setting(runs: Iterable[Run]) -> dict[RunSpec, list[Run]]:
    """Group runs by setting: runs of a group differ only in seed, method and random play."""
    return grouped(runs, lambda run: replace(run.spec.plain, seed=0, random_play=False))


def section(figure: Figure, paper: Results, own: Results) -> list[str]:
    """Return Markdown with the main number of each setting by both methods, and verdicts on their differences."""
    metric, unit = figure.main
    papers = by_setting(paper.runs)
    values = {
        setting: (_values(own, figure, runs), _values(paper, figure, papers.get(setting, [])))
        for setting, runs in by_setting(own.runs).items()
    }
    found = judged({setting: welch_effect(ours, theirs) for setting, (ours, theirs) in values.items()})
    rows = []
    for setting, runs in by_setting(own.runs).items():
        ours, theirs = values[setting]
        difference = sum(ours) / len(ours) - sum(theirs) / len(theirs) if ours and theirs else None
        numbers = [mean_ci(theirs), mean_ci(ours), number(difference)]
        finding = once_ended(found[setting], [*runs, *papers.get(setting, [])])
        rows.append([setting.slug, *numbers, finding.verdict, own.unfinished(runs)])
    method = described(own.runs[0].spec.changes)
    return [*lines_of("comparison.md", metric=metric, unit=unit, method=method, rows=rows), ""]


def _values(results: Results, figure: Figure, runs: Iterable[Run]) -> list[float]:
    """Return the main numbers of these runs; if they are scores, a diverged run scores as the random policy."""
    metric, unit = figure.main
    return results.scores(metric, runs) if unit == "points" else results.values(metric, runs)


def plot(paper: Results, own: Results, stem: Path) -> None:
    """Draw the scores of both methods against time and agent steps, one row for each setting."""
    from ga3c_tf.reproduce.drawing import score_plots

    papers = by_setting(paper.runs)
    rows = {
        "\n".join(textwrap.wrap(setting.slug.replace("-", " "), 24)): {
            "the paper's method": [run.curve for run in papers.get(setting, []) if run.finished],
            described(runs[0].spec.changes): [run.curve for run in runs if run.finished],
        }
        for setting, runs in by_setting(own.runs).items()
    }
    score_plots.score_curves(rows, stem)

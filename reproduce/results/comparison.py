"""Compares a method of the user's own with the paper's: numbers and curves of the same runs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pandas as pd

from ga3c_tf.reproduce.figures.figure import Figure, grouped
from ga3c_tf.reproduce.figures.measurements import measured_alike
from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.measures.estimates import Effect, paired, welch
from ga3c_tf.reproduce.measures.text import lines_of, mean_ci, number
from ga3c_tf.reproduce.measures.verdicts import RUNS_MISSING, SEVERAL_MACHINES, Above, Claim, Guard, judged
from ga3c_tf.reproduce.runs.run import RecordedRun, seeds_have_one_machine
from ga3c_tf.reproduce.runs.specs import RunSpec, described

PAPERS = "the paper's method"


def by_setting(runs: Iterable[RecordedRun]) -> dict[RunSpec, list[RecordedRun]]:
    """Group runs by setting: runs of a group differ only in seed, method and random play."""
    return grouped(runs, lambda run: replace(run.spec.plain, seed=0, random_play=False))


def section(figure: Figure, paper: Results, changed: Results) -> list[str]:
    """Return Markdown with the main number of each setting by both methods, and verdicts on their
    differences.

    Runs with a limit in minutes depend on the speed of the machine. They are compared by pairs of one seed,
    and only if the runs of each seed were made on one machine. Pairs whose calibrations differ are left out.
    """
    metric, unit = figure.main
    papers = by_setting(run for run in paper.runs if not run.spec.is_added)
    changed_runs = by_setting(changed.runs)
    names = _names(changed_runs)
    claims = []
    for setting, runs in changed_runs.items():
        compared = [*runs, *papers.get(setting, [])]
        several = setting.config.minutes is not None and not seeds_have_one_machine(compared)
        values = _values(changed, figure, runs), _values(paper, figure, papers.get(setting, []))
        test = Above(_effect(setting, *values, compared))
        guards = [
            Guard(RUNS_MISSING, not all(run.ended for run in compared)),
            Guard(SEVERAL_MACHINES, several),
        ]
        claims.append(Claim(names[setting], names[setting], test, guards))
    rows = []
    for claim, (setting, runs) in zip(judged(claims), changed_runs.items(), strict=True):
        groups = _values(paper, figure, papers.get(setting, [])), _values(changed, figure, runs)
        estimate = claim.finding.estimate
        effect = number(estimate.effect if estimate.n else None)
        rows.append(
            [claim.text, *map(mean_ci, groups), effect, claim.finding.verdict, changed.unfinished(runs)]
        )
    method = described(changed.runs[0].spec.changes)
    return [*lines_of("comparison.md", metric=metric, unit=unit, method=method, rows=rows), ""]


def _effect(
    setting: RunSpec, changed: pd.Series, paper: pd.Series, compared: Iterable[RecordedRun]
) -> Effect:
    """Compare the numbers of both methods: by pairs of one seed if the runs have a limit in minutes, else by
    groups.

    Args:
        setting: the setting of the runs.
        changed, paper: numbers by seed of the user's method and of the paper's.
        compared: the runs of both.
    """
    if setting.config.minutes is None:
        return welch(changed, paper)
    seeds = grouped(compared, lambda run: run.spec.seed)
    return paired(changed[[measured_alike(seeds[seed]) for seed in changed.index]], paper)


def _names(settings: Iterable[RunSpec]) -> dict[RunSpec, str]:
    """Return a name for each setting: its slug, and values in which it differs from others with this slug."""
    names = {}
    for slug, alike in grouped(settings, lambda setting: setting.slug).items():
        values = {setting: setting.given for setting in alike}
        keys = dict.fromkeys(key for given in values.values() for key in given)
        differing = [key for key in keys if len({str(given.get(key)) for given in values.values()}) > 1]
        for setting, given in values.items():
            differences = [f"{key.replace('_', ' ')} {given[key]}" for key in differing if key in given]
            names[setting] = ", ".join([slug, *differences])
    return names


def _values(results: Results, figure: Figure, runs: Iterable[RecordedRun]) -> pd.Series:
    """Return the main number of each seed; if it is a score, a diverged run scores as the random policy."""
    metric, unit = figure.main
    number_of = results.score if unit == "points" else results.value
    values = {run.spec.seed: number_of(run, metric) for run in runs}
    return pd.Series(values, dtype=float).dropna()


def plot(paper: Results, changed: Results, stem: Path) -> None:
    """Draw the scores of both methods against time and agent steps, one row for each setting."""
    from ga3c_tf.reproduce.drawing import score_plots

    papers = by_setting(run for run in paper.runs if not run.spec.is_added)
    changed_runs = by_setting(changed.runs)
    names = _names(changed_runs)
    titles = {
        setting: "\n".join(textwrap.wrap(name.replace("-", " "), 24)) for setting, name in names.items()
    }
    goals = {titles[setting]: goal for setting in titles if (goal := setting.config.target_score) is not None}
    rows = {
        titles[setting]: {
            PAPERS: [run.curve for run in papers.get(setting, []) if run.finished],
            described(runs[0].spec.changes): [run.curve for run in runs if run.finished],
        }
        for setting, runs in changed_runs.items()
    }
    score_plots.score_curves(rows, stem, goals=goals)

"""Compares a method of the user's own with the paper's: numbers and curves of the same runs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pandas as pd

from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.measurements import grouped, measured_alike
from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.measures.estimates import paired, welch
from ga3c_tf.reproduce.measures.text import mean_ci, number, table
from ga3c_tf.reproduce.measures.verdicts import RUNS_MISSING, SEVERAL_MACHINES, Claim, Guard, above, judged
from ga3c_tf.reproduce.runs.run import RecordedRun, seeds_have_one_machine
from ga3c_tf.reproduce.runs.specs import RunSpec, described

PAPERS = "the paper's method"
Groups = dict[RunSpec, tuple[list[RecordedRun], list[RecordedRun]]]
"""Runs of a setting by the paper's method and by the user's; they differ in seed and random play only."""


def _settings(paper: Results, changed: Results) -> Groups:
    groups = [
        grouped(runs, lambda run: replace(run.spec.plain, seed=0, random_play=False))
        for runs in ([run for run in paper.runs if not run.spec.is_added], changed.runs)
    ]
    return {setting: (groups[0].get(setting, []), runs) for setting, runs in groups[1].items()}


def section(figure: Figure, paper: Results, changed: Results) -> list[str]:
    """Return a table of the main number of each setting by both methods, with verdicts on the differences."""
    settings = _settings(paper, changed)
    names = _names(settings)
    numbers = {
        setting: (_values(paper, figure, of_paper), _values(changed, figure, of_user))
        for setting, (of_paper, of_user) in settings.items()
    }
    claims = [
        _claim(names[setting], setting, [*of_paper, *of_user], *numbers[setting])
        for setting, (of_paper, of_user) in settings.items()
    ]
    rows = []
    for claim, (setting, (_, of_user)) in zip(judged(claims), settings.items(), strict=True):
        estimate = claim.finding.estimate
        effect = number(estimate.effect if estimate.n else None)
        means = map(mean_ci, numbers[setting])
        rows.append([claim.text, *means, effect, claim.finding.verdict, changed.unfinished(of_user)])
    method = described(changed.runs[0].spec.changes)
    return table(["setting", PAPERS, method, "difference", "greater than the paper's", "not finished"], rows)


def _claim(
    name: str, setting: RunSpec, runs: list[RecordedRun], papers: pd.Series, users: pd.Series
) -> Claim:
    """Return the claim that the user's numbers, by seed, are above the paper's; `runs` are those of both.

    Runs with a limit in minutes depend on the speed of the machine. They are compared by pairs of one seed,
    and only if the runs of each seed were made on one machine. Pairs whose calibrations differ are left out.
    """
    timed = setting.config.minutes is not None
    if timed:
        seeds = grouped(runs, lambda run: run.spec.seed)
        effect = paired(users[[measured_alike(seeds[seed]) for seed in users.index]], papers)
    else:
        effect = welch(users, papers)
    guards = [
        Guard(RUNS_MISSING, not all(run.ended for run in runs)),
        Guard(SEVERAL_MACHINES, timed and not seeds_have_one_machine(runs)),
    ]
    return Claim(name, name, above(effect), guards)


def _names(settings: Iterable[RunSpec]) -> dict[RunSpec, str]:
    """Return a name for each setting: its slug, and values in which it differs from others with this slug."""
    names = {}
    for slug, alike in grouped(settings, lambda setting: setting.slug).items():
        values = pd.DataFrame([setting.given for setting in alike]).map(str)
        differing = values.loc[:, values.nunique() > 1].columns
        for setting in alike:
            given = [(key, setting.given[key]) for key in differing if key in setting.given]
            names[setting] = ", ".join([slug, *(f"{key.replace('_', ' ')} {value}" for key, value in given)])
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

    settings = _settings(paper, changed)
    panels = []
    for setting, name in _names(settings).items():
        title = "\n".join(textwrap.wrap(name.replace("-", " "), 24))
        methods = (PAPERS, described(changed.runs[0].spec.changes))
        curves = {
            method: [run.curve for run in runs if run.finished]
            for method, runs in zip(methods, settings[setting], strict=True)
        }
        panels.append(score_plots.Panel(title, curves, goal=setting.config.target_score))
    score_plots.score_curves(panels, stem)

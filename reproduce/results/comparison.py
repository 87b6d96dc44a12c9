"""Compares a method of the user's own with the paper's: numbers and curves of the same runs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pandas as pd

from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.measurements import (
    Results,
    Row,
    grouped,
    unfinished,
)
from ga3c_tf.reproduce.measures.estimates import paired, welch
from ga3c_tf.reproduce.measures.text import mean_ci, number, table
from ga3c_tf.reproduce.measures.verdicts import (
    RUNS_MISSING,
    SEVERAL_MACHINES,
    SPEED_CHANGED,
    Claim,
    Guard,
    above,
    judged,
)
from ga3c_tf.reproduce.runs.comparable import measured_alike, seeds_have_one_machine
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec, described

PAPERS = "the paper's method"
Groups = dict[RunSpec, tuple[list[Row], list[Row]]]
"""Runs of a setting by the paper's method and by the user's; they differ in seed and random play only."""


def _settings(figure: Figure, paper: Results, changed: Results) -> Groups:
    """Return the runs by setting."""
    planned, users = map(figure.table, (paper, changed))
    groups = [
        grouped(table.rows, lambda row: replace(row.run.spec.plain, seed=0, random_play=False))
        for table in (planned.select(added=False), users)
    ]
    return {setting: (groups[0].get(setting, []), rows) for setting, rows in groups[1].items()}


def section(figure: Figure, paper: Results, changed: Results) -> list[str]:
    """Return a table of the main number of each setting by both methods, with verdicts on the differences."""
    settings = _settings(figure, paper, changed)
    names = _names(settings)
    metric, _ = figure.main
    numbers = {setting: tuple(_values(rows, metric) for rows in both) for setting, both in settings.items()}
    claims = [
        _claim(names[setting], setting, [row.run for rows in both for row in rows], *numbers[setting])
        for setting, both in settings.items()
    ]
    lines = []
    for claim, (setting, (_, of_user)) in zip(judged(claims), settings.items(), strict=True):
        estimate = claim.finding.estimate
        effect = number(estimate.effect if estimate.n else None)
        means = map(mean_ci, numbers[setting])
        lines.append([claim.text, *means, effect, claim.finding.verdict, unfinished(of_user)])
    method = described(changed.runs[0].spec.changes)
    return table(["setting", PAPERS, method, "difference", "greater than the paper's", "not finished"], lines)


def _claim(
    name: str, setting: RunSpec, runs: list[RecordedRun], papers: pd.Series, users: pd.Series
) -> Claim:
    """Return the claim that the user's numbers, by seed, are above the paper's; `runs` are those of both.

    Runs with a limit in minutes depend on the speed of the machine. They are compared by pairs of one seed,
    and only if the runs of each seed were made on one machine. Pairs whose calibrations differ are left out.
    """
    timed = setting.config.minutes is not None
    alike = [True]
    if timed:
        seeds = grouped(runs, lambda run: run.spec.seed)
        alike = [measured_alike(seeds[seed]) for seed in users.index]
        effect = paired(users[alike], papers)
    else:
        effect = welch(users, papers)
    guards = [
        # A run that diverged has ended, and may have no value.
        Guard(RUNS_MISSING, not all(run.ended for run in runs) or len(papers) + len(users) < len(runs)),
        Guard(SEVERAL_MACHINES, timed and not seeds_have_one_machine(runs)),
        Guard(SPEED_CHANGED, bool(alike) and not any(alike)),
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


def _values(rows: Iterable[Row], metric: str) -> pd.Series:
    """Return the value of each seed that has one."""
    values = {row.run.spec.seed: row.values[metric] for row in rows if metric in row.values}
    return pd.Series(values, dtype=float)


def plot(figure: Figure, paper: Results, changed: Results, stem: Path) -> None:
    """Draw the scores of both methods against time and agent steps, one row for each setting."""
    from ga3c_tf.reproduce.drawing import score_plots

    settings = _settings(figure, paper, changed)
    panels = []
    for setting, name in _names(settings).items():
        title = "\n".join(textwrap.wrap(name.replace("-", " "), 24))
        methods = (PAPERS, described(changed.runs[0].spec.changes))
        curves = {
            method: [row.run.curve for row in rows if row.run.finished]
            for method, rows in zip(methods, settings[setting], strict=True)
        }
        panels.append(score_plots.Panel(title, curves, goal=setting.config.target_score))
    score_plots.score_curves(panels, stem)

"""Compares a method of the user's own with the paper's: numbers and curves of the same runs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from ga3c_tf.reproduce.figures.figure import Figure, grouped, on_one_machine, once_ended
from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.measures.effects import Effect, paired_effect, welch_effect
from ga3c_tf.reproduce.measures.judging import judged
from ga3c_tf.reproduce.measures.text import lines_of, mean_ci, number
from ga3c_tf.reproduce.runs.run import RecordedRun, comparable
from ga3c_tf.reproduce.runs.specs import RunSpec, described


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
    values = {
        setting: (_values(changed, figure, runs), _values(paper, figure, papers.get(setting, [])))
        for setting, runs in by_setting(changed.runs).items()
    }
    effects = {
        setting: _effect(setting, *values[setting], _changed_speed([*runs, *papers.get(setting, [])]))
        for setting, runs in by_setting(changed.runs).items()
    }
    findings = judged(effects)
    names = _names(values)
    rows = []
    for setting, runs in by_setting(changed.runs).items():
        changed_values, paper_values = ([*by_seed.values()] for by_seed in values[setting])
        effect = effects[setting]
        numbers = [
            mean_ci(paper_values),
            mean_ci(changed_values),
            number(effect.mean if effect.seeds else None),
        ]
        compared = [*runs, *papers.get(setting, [])]
        finding = findings[setting]
        if _is_timed(setting):
            finding = on_one_machine(finding, compared)
        finding = once_ended(finding, compared)
        rows.append([names[setting], *numbers, finding.verdict, changed.unfinished(runs)])
    method = described(changed.runs[0].spec.changes)
    return [*lines_of("comparison.md", metric=metric, unit=unit, method=method, rows=rows), ""]


def _is_timed(setting: RunSpec) -> bool:
    """Return whether runs of this setting have a limit in minutes, so the machine decides what they reach."""
    return setting.config.minutes is not None


def _effect(
    setting: RunSpec, changed: Mapping[int, float], paper: Mapping[int, float], without: set[int]
) -> Effect:
    """Compare the numbers of both methods: by pairs of one seed if the runs have a limit in minutes, else by
    groups.

    Args:
        setting: the setting of the runs.
        changed, paper: numbers by seed of the user's method and of the paper's.
        without: seeds that make no pair.
    """
    if _is_timed(setting):
        return paired_effect({seed: value for seed, value in changed.items() if seed not in without}, paper)
    return welch_effect([*changed.values()], [*paper.values()])


def _changed_speed(runs: Iterable[RecordedRun]) -> set[int]:
    """Return the seeds between whose runs the speed of the machine changed, by their calibrations."""
    seeds = grouped((run for run in runs if run.finished), lambda run: run.spec.seed)
    return {seed for seed, group in seeds.items() if not comparable(group)}


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


def _values(results: Results, figure: Figure, runs: Iterable[RecordedRun]) -> dict[int, float]:
    """Return the main number of each seed; if it is a score, a diverged run scores as the random policy."""
    metric, unit = figure.main
    number_of = results.score if unit == "points" else results.value
    by_seed = {run.spec.seed: number_of(run, metric) for run in runs}
    return {seed: value for seed, value in by_seed.items() if value is not None}


def plot(paper: Results, changed: Results, stem: Path) -> None:
    """Draw the scores of both methods against time and agent steps, one row for each setting."""
    from ga3c_tf.reproduce.drawing import score_plots

    papers = by_setting(run for run in paper.runs if not run.spec.is_added)
    names = _names(by_setting(changed.runs))
    titles = {
        setting: "\n".join(textwrap.wrap(name.replace("-", " "), 24)) for setting, name in names.items()
    }
    goals = {titles[setting]: goal for setting in titles if (goal := setting.config.target_score) is not None}
    rows = {
        titles[setting]: {
            "the paper's method": [run.curve for run in papers.get(setting, []) if run.finished],
            described(runs[0].spec.changes): [run.curve for run in runs if run.finished],
        }
        for setting, runs in by_setting(changed.runs).items()
    }
    score_plots.score_curves(rows, stem, goals=goals)

"""The verdicts on all recorded runs: code that alters one must change tests/data/verdicts.json.

PYTHONPATH=. python tests/reproduction/test_golden.py writes that file anew. Each difference needs a reason.
"""

import json
import math
from pathlib import Path

import pytest

from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.results.folder import ResultsFolder

ROOT = Path(__file__).parents[2]
FILE = ROOT / "tests" / "data" / "verdicts.json"


def numbers(estimate, p):
    effect, low, high, _ = estimate.shown
    values = {"effect": effect, "low": low, "high": high, "p": p}
    rounded = {name: float(f"{value:.10g}") for name, value in values.items() if not math.isnan(value)}
    return {**rounded, "n": estimate.n}


def row(claim):
    finding = claim.finding
    values = {"kind": finding.kind, "reason": finding.reason, "margin": finding.margin}
    return {name: value for name, value in values.items() if value} | numbers(finding.estimate, finding.p)


def key_of(claim):
    return claim.key if claim.game in ("", claim.key) else f"{claim.game} {claim.key}"


def verdicts():
    """The verdict of each claim by its key, by figure and budget."""
    folder = ResultsFolder(ROOT / "results")
    by_figure = {}
    for figure in FIGURES.values():
        for budget in figure.games:
            if folder.has_records(figure, budget):
                results = folder.results(figure, budget)
                rows = {key_of(claim): row(claim) for claim in figure.verdicts(results)}
                if rows:
                    by_figure[f"{figure.name} {budget}"] = rows
    return by_figure


def test_the_recorded_runs_have_the_verdicts_that_they_always_had():
    """Numbers may differ in the last digits between versions of NumPy and SciPy."""
    golden, present = json.loads(FILE.read_text()), verdicts()
    assert {name: list(rows) for name, rows in present.items()} == {
        name: list(rows) for name, rows in golden.items()
    }
    assert sum(map(len, golden.values())) == 90
    for name, rows in golden.items():
        for key, values in rows.items():
            recorded = present[name][key]
            assert recorded.keys() == values.keys(), (name, key)
            for field, value in values.items():
                expected = pytest.approx(value, rel=1e-6, abs=1e-9) if isinstance(value, float) else value
                assert recorded[field] == expected, (name, key, field)


if __name__ == "__main__":
    figures = [
        f" {json.dumps(name)}: {{\n"
        + ",\n".join(f"  {json.dumps(key)}: {json.dumps(values)}" for key, values in rows.items())
        + "\n }"
        for name, rows in verdicts().items()
    ]
    FILE.write_text("{\n" + ",\n".join(figures) + "\n}\n")

"""The verdicts on all recorded runs: code that alters one must change tests/data/verdicts.json."""

import json
from pathlib import Path

from ga3c_tf.reproduce.figures.learning import scores
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.results.folder import ResultsFolder

ROOT = Path(__file__).parents[2]
GOLDEN = json.loads((ROOT / "tests" / "data" / "verdicts.json").read_text())
FOLDER = ResultsFolder(ROOT / "results")


def verdicts():
    """The verdict of each claim, by figure and budget."""
    by_figure = {}
    for figure in FIGURES.values():
        for budget in figure.games:
            if FOLDER.measured_file(figure, budget).exists():
                results = FOLDER.results(figure, budget)
                listed = [(claim.text, claim.finding.verdict) for claim in figure.all_claims(results)]
                if figure.name == "scores":
                    listed += [(game, scores.verdict(results, game)) for game in scores.NINE_GAMES]
                if listed:
                    by_figure[f"{figure.name} {budget}"] = listed
    return by_figure


def golden():
    return {
        name: [
            (row["claim"], row.get("verdict") or ": ".join(filter(None, (row["kind"], row["reason"]))))
            for row in rows
        ]
        for name, rows in GOLDEN.items()
    }


def test_the_recorded_runs_have_the_verdicts_that_they_always_had():
    assert verdicts() == golden()
    assert sum(map(len, GOLDEN.values())) == 69

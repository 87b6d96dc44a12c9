"""What the rules' history says of the runs with fixed numbers of workers, computed from their records."""

from pathlib import Path

import numpy as np

from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.figures.throughput import adjustment, fixed_numbers
from ga3c_tf.reproduce.results.folder import ResultsFolder

ROOT = Path(__file__).parents[2]


def test_the_scatter_and_the_slowdown_of_the_machine_are_those_of_the_records():
    known = adjustment.speeds(ResultsFolder(ROOT / "results").results(FIGURES["adjustment"], "quick"))
    scatters = []
    for place in range(len(fixed_numbers.WORKERS)):
        boxing, pong = (fixed_numbers.ratios_of(known[game], place) for game in ("boxing", "pong"))
        double = [np.log(boxing[pair] / pong[pair]) for pair in boxing]
        scatters.append(np.std(double, ddof=1) / 2)  # four runs make one double ratio
    by_seed = [
        np.mean([np.log(tps) for runs in known.values() for run, tps in runs.items() if run.seed == seed])
        for seed in (1, 4)
    ]
    text = " ".join((ROOT / "reproduce/pages/templates/history.md").read_text().split())
    assert (
        f"these runs have one of {100 * np.mean(scatters):.0f} %, since the machine became a fifth slower"
        in text
    )
    assert round(1 - np.exp(by_seed[1] - by_seed[0]), 1) == 0.2

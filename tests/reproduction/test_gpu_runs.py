"""What docs/performance.md says of the runs on a GPU, computed from their records."""

from pathlib import Path

import numpy as np
import pytest

from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.figures.throughput import pps, utilization
from ga3c_tf.reproduce.results.folder import ResultsFolder

ROOT = Path(__file__).parents[2]
STARTED_S = 11.0
"""When all runs are training."""


@pytest.fixture(scope="module")
def text():
    return " ".join((ROOT / "docs" / "performance.md").read_text().split())


def table(name):
    results = ResultsFolder(ROOT / "results").results(FIGURES[name], "gpu")
    return FIGURES[name].table(results)


def speed(run):
    """Return the agent steps per second without the start of the run."""
    rows = run.metrics["time_s"] >= STARTED_S
    steps, times = (run.metrics[name][rows] for name in ("agent_steps", "time_s"))
    return (steps[-1] - steps[0]) / (times[-1] - times[0])


def test_ratios_without_the_start_are_those_of_the_docs(text):
    ratios = []
    for _, part in table("pps").parts("network"):
        ga3c, a3c = (part.select(system=system).runs for system in ("GA3C", "A3C"))
        pairs = zip(ga3c, a3c, strict=True)
        ratios.append(f"{np.mean([speed(run) / speed(other) for run, other in pairs]):.2f}")
    assert (
        f"Counted from {STARTED_S:.0f} s on, the ratios are {', '.join(ratios[:-1])} and {ratios[-1]}."
        in text
    )


def test_some_runs_make_their_first_update_while_they_are_measured(text):
    runs = table("pps").select(system="GA3C").runs
    warm_up_s = pps.WARM_UP_SHARES[pps.MINUTES["gpu"]] * 60 * pps.MINUTES["gpu"]
    late = [run for run in runs if run.metrics["updates"][run.metrics["time_s"] >= warm_up_s][0] == 0]
    assert f"In {len(late)} of the {len(runs)} runs of GA3C, the first update" in text


def test_the_shares_of_busy_time_are_those_of_the_docs(text):
    gpu, cpu = (
        100 * table("utilization").series(name, ["network"]) for name in (utilization.GPU, utilization.CPU)
    )
    small, large = gpu.iloc[0], gpu.iloc[-1]
    assert f"{small:.0f} % of the time with the small network and {large:.0f} % with the largest" in text
    assert f"and the cores for {cpu.min():.0f} to {cpu.max():.0f} %" in text

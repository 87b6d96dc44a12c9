"""What the pages say of the runs on a GPU, beside tables that are checked elsewhere, computed from their records."""

import re
from pathlib import Path

import numpy as np
import pytest

from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.figures.throughput import pps
from ga3c_tf.reproduce.results.folder import ResultsFolder

ROOT = Path(__file__).parents[2]
STARTED_S = 11.0
"""When all runs are training."""


def words_of(file):
    return " ".join((ROOT / file).read_text().split())


@pytest.fixture(scope="module")
def results():
    return ResultsFolder(ROOT / "results").results(FIGURES["pps"], "gpu")


def speed(run):
    """Return the agent steps per second without the start of the run."""
    rows = run.metrics["time_s"] >= STARTED_S
    steps, times = (run.metrics[name][rows] for name in ("agent_steps", "time_s"))
    return (steps[-1] - steps[0]) / (times[-1] - times[0])


def test_ratios_without_the_start_are_those_of_the_docs(results):
    ratios = [
        np.mean(
            [
                speed(ours) / speed(theirs)
                for ours, theirs in zip(
                    *(pps.runs_of(results, network, system) for system in ("ga3c", "a3c")), strict=True
                )
            ]
        )
        for network in pps.networks(results)
    ]
    *first, last = [f"{ratio:.2f}" for ratio in ratios]
    text = words_of("docs/performance.md")
    assert f"Counted from {STARTED_S:.0f} s on, the ratios are {', '.join(first)} and {last}." in text


def test_some_runs_make_their_first_update_while_they_are_measured(results):
    runs = [run for run in results.runs if run.spec.system == "ga3c"]
    warm_up_s = pps.WARM_UP_SHARES[pps.MINUTES["gpu"]] * 60 * pps.MINUTES["gpu"]
    late = [run for run in runs if run.metrics["updates"][run.metrics["time_s"] >= warm_up_s][0] == 0]
    assert f"In {len(late)} of the {len(runs)} runs of GA3C, the first update" in words_of("docs/performance.md")


def test_calibrations_say_little_about_the_speed_of_these_runs(results):
    text = words_of("reproduce/pages/templates/history.md")
    # 1. How far calibrations are apart, and speeds of one setting.
    taken = [calibration for run in results.runs for calibration in run.calibrations]
    columns = np.array([(each.gflops, each.frames_s) for each in taken]).T
    apart = max(max(column) / min(column) for column in columns)
    groups = [pps.runs_of(results, network, system) for network in pps.networks(results) for system in ("ga3c", "a3c")]
    speeds = [results.values("pps", runs) for runs in groups]
    scatter = max(max(each) / min(each) for each in speeds)
    assert f"calibrations differed by up to {apart:.1f} times" in text
    assert f"runs of one setting differed by at most {scatter:.2f} times" in text
    # 2. Whether runs that were faster than others of their setting had faster calibrations.
    ends = [np.log([speed(run) for run in runs]) for runs in groups]
    frames = [np.log([np.mean([each.frames_s for each in run.calibrations]) for run in runs]) for runs in groups]
    faster, calibrated = (np.concatenate([each - each.mean() for each in values]) for values in (ends, frames))
    assert f"(correlation {np.corrcoef(faster, calibrated)[0, 1]:.2f} of {len(faster)} runs)" in text


def test_two_calibrations_after_runs_that_ended_together_differ(results):
    [ours], [theirs] = (
        [run for run in pps.runs_of(results, "large stride 2", system) if run.spec.seed == 1]
        for system in ("ga3c", "a3c")
    )
    assert abs(ours.started_s - theirs.started_s) <= 1
    ratio = theirs.calibrations[-1].frames_s / ours.calibrations[-1].frames_s
    [said] = re.findall(
        r"by ([\d.]+) times between two that were taken after runs that began within a second",
        words_of("reproduce/pages/templates/history.md"),
    )
    assert f"{ratio:.1f}" == said

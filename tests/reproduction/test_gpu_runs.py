"""What the pages say of the runs on a GPU, beside tables checked elsewhere, computed from their records."""

import re
from pathlib import Path

import numpy as np
import pytest

from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.figures.throughput import pps, utilization
from ga3c_tf.reproduce.measures.effects import paired_effect
from ga3c_tf.reproduce.measures.judging import holm
from ga3c_tf.reproduce.results.folder import ResultsFolder
from ga3c_tf.reproduce.runs.run import RecordedRun

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
    assert f"In {len(late)} of the {len(runs)} runs of GA3C, the first update" in words_of(
        "docs/performance.md"
    )


def test_calibrations_say_little_about_the_speed_of_these_runs(results):
    text = words_of("reproduce/pages/templates/history.md")
    # 1. How far calibrations are apart, and speeds of one setting.
    taken = [calibration for run in results.runs for calibration in run.calibrations]
    columns = np.array([(each.gflops, each.frames_s) for each in taken]).T
    apart = max(max(column) / min(column) for column in columns)
    groups = [
        pps.runs_of(results, network, system)
        for network in pps.networks(results)
        for system in ("ga3c", "a3c")
    ]
    speeds = [results.values("pps", runs) for runs in groups]
    scatter = max(max(each) / min(each) for each in speeds)
    assert f"calibrations differed by up to {apart:.1f} times" in text
    assert f"runs of one setting differed by at most {scatter:.2f} times" in text
    # 2. Whether runs that were faster than others of their setting had faster calibrations.
    ends = [np.log([speed(run) for run in runs]) for runs in groups]
    frames = [
        np.log([np.mean([each.frames_s for each in run.calibrations]) for run in runs]) for runs in groups
    ]
    faster, calibrated = (
        np.concatenate([each - each.mean() for each in values]) for values in (ends, frames)
    )
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


def test_the_shares_of_busy_time_are_those_of_the_docs():
    """They include what the four runs of seed 5, which are not counted, would have changed."""
    folder = ResultsFolder(ROOT / "results")
    results = folder.results(FIGURES["utilization"], "gpu")
    groups = [pps.runs_of(results, network, "ga3c") for network in pps.networks(results)]
    means = [100 * np.mean(results.values(utilization.GPU, groups[place])) for place in (0, -1)]
    text = words_of("docs/performance.md")
    assert (
        "busy for {:.0f} % of the time with the small network and {:.0f} % with the largest".format(*means)
        in text
    )
    cores = [100 * np.mean(results.values(utilization.CPU, runs)) for runs in groups]
    assert f"and the cores for {min(cores):.0f} to {max(cores):.0f} %" in text
    # With seed 5, whose slope is that of four networks.
    specs = [spec for seed in range(1, 6) for spec in utilization.specs("gpu", "pong", seed)]
    gpu, cpu = (effect_of_all(specs, folder, name) for name in ("gpu_utilization", "cpu_utilization"))
    [chance, _] = holm([gpu.chance, cpu.chance])
    rise, low, high = np.exp([gpu.mean, gpu.low, gpu.high])
    told = (
        f"GPU use would rise {rise:.2f} times [{low:.2f}, "
        f"{high:.2f}] from network to network, p = {chance:.2g}"
    )
    assert told in words_of("reproduce/pages/templates/history.md")


def effect_of_all(specs, folder, name):
    """Return the effect on the slopes of a share over the networks, for each seed over those run."""
    slopes = {}
    for seed in {spec.seed for spec in specs}:
        runs = [RecordedRun.of(spec, folder.runs) for spec in specs if spec.seed == seed]
        shares = {place: run.result[name] for place, run in enumerate(runs) if run.finished}
        slopes[seed], _ = np.polyfit(list(shares), np.log(list(shares.values())), 1)
    assert sorted(slopes) == [1, 2, 3, 4, 5]
    return paired_effect(slopes, dict.fromkeys(slopes, 0.0))

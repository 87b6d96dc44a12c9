"""Slide 38: how busy processor and GPU are under GA3C, for networks of growing size."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ga3c_tf.reproduce.figures.figure import Figure, Measure, Results
from ga3c_tf.reproduce.figures.throughput import pps
from ga3c_tf.reproduce.measures.text import lines_of, mean_ci, number
from ga3c_tf.reproduce.measures.verdicts import FEW_SEEDS, LEAST_SEEDS, NEEDS_GPU, Finding, falls, grows
from ga3c_tf.reproduce.runs.run import Run
from ga3c_tf.reproduce.runs.specs import RunSpec

PROTOCOL = "share of the time of all cores that the run's processes used, from its first row of metrics on"
GPU_PROTOCOL = "median of nvidia-smi's busy share, asked every 2 s, from the run's first row of metrics on"
CPU = "CPU utilization"
GPU = "GPU utilization"


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return the GA3C runs of `pps`."""
    return [spec for spec in pps.specs(budget, game, seed) if spec.system == "ga3c"]


def measures(run: Run) -> list[Measure]:
    """Return the two shares; the GPU's where the model was on one."""
    found = [_share(CPU, run.result["cpu_utilization"], PROTOCOL)]
    if run.on_gpu:
        found.append(_share(GPU, run.result["gpu_utilization"], GPU_PROTOCOL))
    return found


def _share(metric: str, share: float | None, protocol: str) -> Measure:
    return Measure(metric, float("nan") if share is None else share, "share", protocol, "too short a run")


def means(results: Results, metric: str) -> list[float | None]:
    """Return the mean share over seeds for each network, None where none was measured."""
    found = [results.values(metric, pps.runs_of(results, network, "ga3c")) for network in pps.networks(results)]
    return [sum(values) / len(values) if values else None for values in found]


def findings(results: Results) -> dict[str, Finding]:
    """Judge how the shares change from network to network; without a GPU nothing can be said."""
    return {
        "gpu_rises": _finding(results, GPU, grows),
        "cpu_falls": _finding(results, CPU, falls),
    }


def _finding(results: Results, metric: str, judge: Callable[[list[float | None]], str]) -> Finding:
    shares = means(results, metric)
    because = ", ".join(map(number, shares))
    if not any(share is not None for share in means(results, GPU)):
        return Finding(NEEDS_GPU, because)
    of_networks = [results.values(metric, pps.runs_of(results, name, "ga3c")) for name in pps.networks(results)]
    if min(map(len, of_networks)) < LEAST_SEEDS:
        return Finding(FEW_SEEDS, because)
    return Finding(judge(shares), because)


def section(results: Results) -> list[str]:
    """Return the shares, and what is to be seen in them."""
    rows = []
    for network in pps.networks(results):
        runs = pps.runs_of(results, network, "ga3c")
        rows.append([network, mean_ci(results.values(CPU, runs)), mean_ci(results.values(GPU, runs))])
    measured = any(share is not None for share in means(results, GPU))
    return lines_of("utilization.md", rows=rows, measured=measured, **findings(results))


def plot(results: Results, stem: Path) -> None:
    """Draw the shares by network."""
    from ga3c_tf.reproduce.drawing import plots

    bars = {
        metric: [results.values(metric, pps.runs_of(results, network, "ga3c")) for network in pps.networks(results)]
        for metric in (CPU, GPU)
    }
    plots.utilization_lines(pps.networks(results), bars, stem)


FIGURE = Figure(
    name="utilization",
    place=10,
    paper="slide 38",
    shows="how busy CPU and GPU are, for five networks",
    claim="GPU use rises and CPU use falls as the network grows",
    games=pps.FIGURE.games,
    seeds=pps.FIGURE.seeds,
    specs=specs,
    measures=measures,
    main=(CPU, "share"),
    section=section,
    plot=plot,
    by_game=True,
)

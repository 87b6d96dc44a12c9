"""Slide 38: how busy processor and GPU are under GA3C, for networks of growing size."""

from __future__ import annotations

from pathlib import Path

from reproduce.figures import pps
from reproduce.figures.figure import Figure, Measure, Results
from reproduce.measures.text import number, spread, table
from reproduce.measures.verdicts import UNKNOWN, Finding, falls, grows
from reproduce.runs.run import Run
from reproduce.runs.specs import RunSpec

PROTOCOL = "share of the time of all cores that the run's processes used, from its first row of metrics on"
GPU_PROTOCOL = "median of nvidia-smi's busy share, asked every 2 s, from the run's first row of metrics on"
CPU, GPU = "CPU utilization", "GPU utilization"


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """The GA3C runs of `pps`."""
    return [spec for spec in pps.specs(budget, game, seed) if spec.system == "ga3c"]


def measures(run: Run) -> list[Measure]:
    """The two shares; the GPU's where the model was on one."""
    shares = [(CPU, "cpu_utilization", PROTOCOL)] + [(GPU, "gpu_utilization", GPU_PROTOCOL)] * run.on_gpu
    return [
        Measure(
            metric, float("nan") if (share := run.result[key]) is None else share, "share", protocol, "too short a run"
        )
        for metric, key, protocol in shares
    ]


def section(results: Results) -> list[str]:
    """The shares, and what is to be seen in them."""
    found: dict[str, list[float | None]] = {CPU: [], GPU: []}
    rows = []
    for network in pps.networks(results):
        shares = {metric: results.values(metric, pps.runs_of(results, network, "ga3c")) for metric in found}
        for metric, values in shares.items():
            found[metric].append(sum(values) / len(values) if values else None)
        rows.append([network, *(spread(values) for values in shares.values())])
    rule = "each network's share at least that of the one before less 5 %, the last more than 5 % above the first"
    measured = any(value is not None for value in found[GPU])
    findings = [
        Finding("GPU use rises as the network grows", grows(found[GPU]), rule, ", ".join(map(number, found[GPU]))),
        Finding(
            "CPU use falls as the network grows",
            falls(found[CPU]) if measured else UNKNOWN,
            "the same the other way round, and only where the model is on a GPU",
            ", ".join(map(number, found[CPU])),
        ),
    ]
    return [
        *table(["network", "CPU (share of all cores)", "GPU (share of the time)"], rows),
        "",
        "The paper's curves could not be read: there is no number of its own here. "
        + (
            ""
            if measured
            else "No GPU was used in these runs, so predicting and training load the CPU; nothing here is about GPUs."
        ),
        "",
        *(finding.line() for finding in findings),
    ]


def plot(results: Results, stem: Path) -> None:
    """The shares by network."""
    from reproduce.drawing import plots

    bars = {
        metric: [results.values(metric, pps.runs_of(results, network, "ga3c")) for network in pps.networks(results)]
        for metric in (CPU, GPU)
    }
    plots.utilization_lines(pps.networks(results), bars, stem)


FIGURE = Figure(
    name="utilization",
    paper="slide 38",
    shows="how busy CPU and GPU are, for five networks",
    games=pps.FIGURE.games,
    seeds=pps.FIGURE.seeds,
    specs=specs,
    measures=measures,
    main=(CPU, "share"),
    section=section,
    plot=plot,
    by_game=True,
)

"""Slide 38: CPU and GPU utilization under GA3C, for networks of growing size."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

from ga3c_tf.reproduce.figures.figure import Figure, Measure, Table, mean_of, seeds_by_budget
from ga3c_tf.reproduce.figures.measurements import Measurements, words_of
from ga3c_tf.reproduce.figures.throughput import pps
from ga3c_tf.reproduce.measures.estimates import growth
from ga3c_tf.reproduce.measures.verdicts import NEEDS_GPU, Above, Claim, Guard
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec

PROTOCOL = "share of the time of all cores that the run's processes used"
GPU_PROTOCOL = "median of nvidia-smi's busy share, asked every 2 s"
EARLIER_START = "first row of metrics"
"""Where the measurement began in runs whose records do not say it."""
CPU = "CPU utilization"
GPU = "GPU utilization"
GPU_MINUTES = 0.35
"""Length of a run at the budget `gpu`. The first update comes 3 to 9 s after its start."""
LEAST_SHARE = 0.001
"""Lower limit of a share, because shares are compared by their logarithms."""


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return the GA3C runs of `pps`. At the budget `gpu` they are longer, and not those of `pps`.

    Raises:
        UserError: the networks are not for this game.
    """
    minutes = GPU_MINUTES if budget == "gpu" else None
    return [spec for spec in pps.specs(budget, game, seed, minutes) if spec.system == "ga3c"]


def measures(run: RecordedRun) -> list[Measure]:
    """Return the CPU utilization, and the GPU utilization if the model was on a GPU."""
    listed = [_share(run, CPU, run.result["cpu_utilization"], PROTOCOL)]
    if run.on_gpu:
        listed.append(_share(run, GPU, run.result["gpu_utilization"], GPU_PROTOCOL))
    return listed


def _share(run: RecordedRun, metric: str, share: float | None, protocol: str) -> Measure:
    protocol += f", from the run's {run.result.get('utilization_from', EARLIER_START)} on"
    return Measure(metric, math.nan if share is None else share, "share", protocol, "too short a run")


def claims(table: Measurements) -> list[Claim]:
    """Return the paper's claims about the use of GPU and CPU."""
    rising = growth(_by_network(table, GPU))
    falling = growth(1 / _by_network(table, CPU))
    guards = [Guard(NEEDS_GPU, not table.numbers(GPU)), table.missing, table.several_machines]
    shown = table.results.judges_gpu
    return [
        Claim("gpu-rises", "GPU use rises as the network grows", Above(rising), guards, shown=shown),
        Claim("cpu-falls", "CPU use falls as the network grows", Above(falling), guards, shown=shown),
    ]


def _by_network(table: Measurements, metric: str) -> pd.DataFrame:
    """Return the shares by seed and network. A share below `LEAST_SHARE` counts as that."""
    return pd.DataFrame(
        {network: part.series(metric).clip(lower=LEAST_SHARE) for network, part in table.parts("network")}
    )


def plot(table: Measurements, stem: Path) -> None:
    """Draw the shares by network."""
    from ga3c_tf.reproduce.drawing import speed_plots

    shares = {
        metric: {name: part.numbers(metric) for name, part in table.parts("network")} for metric in (CPU, GPU)
    }
    speed_plots.utilization_marks(shares, stem)


FIGURE = Figure(
    name="utilization",
    place=10,
    paper="slide 38",
    shows="how busy CPU and GPU are, for five networks",
    headline="GPU use rises and CPU use falls as the network grows",
    games=pps.FIGURE.games,
    seeds=seeds_by_budget(quick=5, gpu=4),
    specs=specs,
    dimensions=words_of("network"),
    measures=measures,
    main=(CPU, "share"),
    claims=claims,
    tables=[Table(("network",), {CPU: mean_of(CPU), GPU: mean_of(GPU)})],
    plot=plot,
    by_game=True,
)

"""Slide 38: CPU and GPU utilization under GA3C, for networks of growing size."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from ga3c_tf.reproduce.drawing import canvas
from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.measurements import Measure
from ga3c_tf.reproduce.figures.tables import means_of
from ga3c_tf.reproduce.figures.throughput import pps
from ga3c_tf.reproduce.measures.estimates import growth
from ga3c_tf.reproduce.measures.verdicts import NEEDS_GPU, Guard, above
from ga3c_tf.reproduce.runs.run import RecordedRun

CPU = "CPU utilization"
GPU = "GPU utilization"
PROTOCOLS = {
    CPU: "share of the time of all cores that the run's processes used",
    GPU: "median of nvidia-smi's busy share, asked every 2 s",
}
GPU_LENGTH = {"minutes": 0.35}
"""Length of a run at the budget `gpu`. The first update comes 3 to 9 s after its start."""
LEAST_SHARE = 0.001
"""Lower limit of a share, because shares are compared by their logarithms."""


def _measures(run: RecordedRun) -> list[Measure]:
    start = run.result["utilization_from"]
    shares = {CPU: run.result["cpu_utilization"]}
    if run.on_gpu:
        shares[GPU] = run.result["gpu_utilization"]
    values = {metric: math.nan if share is None else share for metric, share in shares.items()}
    return [
        Measure(metric, share, "share", f"{PROTOCOLS[metric]}, from the run's {start} on", "not measured")
        for metric, share in values.items()
    ]


class UtilizationFigure(Figure):
    """Has the GA3C runs of `pps`; at the budget `gpu` they are longer."""

    name = "utilization"
    games = pps.PpsFigure.games
    counts = {"quick": 5, "gpu": 4}
    smoke = ({"called": ("mlp",)},)
    labels = {"network": str}
    measured = (_measures,)
    main = (CPU, "share")
    by_game = True
    rows = ("network",)
    columns = means_of(CPU, GPU)

    def planned(self, budget, game, seed):
        length = GPU_LENGTH if budget == "gpu" else {}
        return [spec for spec in pps.specs(budget, game, seed, **length) if spec.system == "ga3c"]

    def claims(self, table):
        gpu, cpu = (
            pd.DataFrame({network: part.series(metric) for network, part in table.parts("network")})
            for metric in (GPU, CPU)
        )
        guards = [
            Guard(NEEDS_GPU, gpu.empty or not all(run.on_gpu for run in table.finished)),
            table.missing,
            table.several_machines,
        ]
        growths = {"gpu-rises": growth(gpu.clip(LEAST_SHARE)), "cpu-falls": growth(1 / cpu.clip(LEAST_SHARE))}
        shown = table.judges_gpu
        return [self.claim(key, above(estimate), guards, shown) for key, estimate in growths.items()]

    def plot(self, table, stem):
        parts = dict(table.parts("network"))
        percent = {
            metric: {name: [100 * share for share in part.numbers(metric)] for name, part in parts.items()}
            for metric in (CPU, GPU)
        }
        usual: dict[str, Any] = {"columns": 2, "apart": 0.1, "ends": (0, 102)}
        canvas.mark_picture(percent, "busy (%)", stem, 1.9, **usual)

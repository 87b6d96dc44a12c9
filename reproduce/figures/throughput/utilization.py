"""Slide 38: CPU and GPU utilization under GA3C, for networks of growing size."""

from __future__ import annotations

from pathlib import Path

from ga3c_tf.reproduce.figures.figure import Figure, Measure, on_one_machine, once_ended, seeds_by_budget
from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.figures.throughput import pps
from ga3c_tf.reproduce.measures.effects import growth
from ga3c_tf.reproduce.measures.judging import judged
from ga3c_tf.reproduce.measures.text import lines_of, mean_ci
from ga3c_tf.reproduce.measures.verdicts import NEEDS_GPU, Claim, Finding
from ga3c_tf.reproduce.measures.wording import described_ratio
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
    return Measure(metric, float("nan") if share is None else share, "share", protocol, "too short a run")


def findings(results: Results) -> dict[str, Finding]:
    """Judge how shares change from network to network. Without a measured GPU share, nothing is judged."""
    rising = growth(_of_networks(results, GPU, 1))
    falling = growth(_of_networks(results, CPU, -1))
    by_claim = judged({"gpu_rises": rising, "cpu_falls": falling}, described_ratio)
    if not results.values(GPU, results.runs):
        return dict.fromkeys(by_claim, Finding(NEEDS_GPU, "no GPU use was measured"))
    return {
        name: once_ended(on_one_machine(finding, results.runs), results.runs)
        for name, finding in by_claim.items()
    }


def claims(results: Results) -> list[Claim]:
    """Return the paper's claims about the use of GPU and CPU."""
    if not results.judges_gpu:
        return []
    by_claim = findings(results)
    return [
        Claim("GPU use rises as the network grows", by_claim["gpu_rises"]),
        Claim("CPU use falls as the network grows", by_claim["cpu_falls"]),
    ]


def _of_networks(results: Results, metric: str, power: int) -> list[dict[int, float]]:
    """Return the shares of each network by seed, raised to a power. A share below `LEAST_SHARE` counts as
    that.

    Args:
        results: results with the shares.
        metric: `CPU` or `GPU`.
        power: 1 for the shares, -1 for their reciprocals.
    """
    powers = []
    for network in pps.networks(results):
        runs = pps.runs_of(results, network, "ga3c")
        shares = {run.spec.seed: results.value(run, metric) for run in runs}
        powers.append(
            {seed: max(share, LEAST_SHARE) ** power for seed, share in shares.items() if share is not None}
        )
    return powers


def details(results: Results) -> list[str]:
    """Return the table of the shares by network."""
    rows = []
    for network in pps.networks(results):
        runs = pps.runs_of(results, network, "ga3c")
        rows.append([network, mean_ci(results.values(CPU, runs)), mean_ci(results.values(GPU, runs))])
    measured = bool(results.values(GPU, results.runs))
    return lines_of("utilization.md", rows=rows, measured=measured)


def plot(results: Results, stem: Path) -> None:
    """Draw the shares by network."""
    from ga3c_tf.reproduce.drawing import speed_plots

    bars = {
        metric: [
            results.values(metric, pps.runs_of(results, network, "ga3c")) for network in pps.networks(results)
        ]
        for metric in (CPU, GPU)
    }
    speed_plots.utilization_lines(pps.networks(results), bars, stem)


FIGURE = Figure(
    name="utilization",
    place=10,
    paper="slide 38",
    shows="how busy CPU and GPU are, for five networks",
    headline="GPU use rises and CPU use falls as the network grows",
    games=pps.FIGURE.games,
    seeds=seeds_by_budget(quick=5, gpu=4),
    specs=specs,
    measures=measures,
    main=(CPU, "share"),
    claims=claims,
    details=details,
    plot=plot,
    by_game=True,
)

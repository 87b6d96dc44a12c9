"""Table 2 and slide 37: predictions per second of GA3C and of A3C on a CPU, for networks of growing size."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.drawing import speed_plots
from ga3c_tf.reproduce.figures.figure import Figure
from ga3c_tf.reproduce.figures.measurements import Measure, Measurements, Pairs, speed_changed
from ga3c_tf.reproduce.figures.plans import AGENTS, speed_spec, workers
from ga3c_tf.reproduce.figures.tables import mean_of
from ga3c_tf.reproduce.measures.estimates import growth
from ga3c_tf.reproduce.measures.text import mean_ci, number
from ga3c_tf.reproduce.measures.verdicts import NEEDS_GPU, RUNS_MISSING, Guard, above, all_above
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import SYSTEMS, RunSpec, is_atari

NETWORKS = {
    "small": "small",
    "large-4": "large stride 4",
    "large-3": "large stride 3",
    "large-2": "large stride 2",
    "large-1": "large stride 1",
}
LENGTHS: dict[str, dict[str, Any]] = {
    "quick": {"minutes": 0.75, "log_seconds": 5.0},
    "gpu": {"minutes": 0.3, "log_seconds": 3.0},
    "paper": {"minutes": 30.0, "log_seconds": 5.0},
}
WARM_UP_SHARE = 0.25
WARM_UP_SHARES: dict[float | None, float] = {LENGTHS["gpu"]["minutes"]: 0.45}
"""Warm-up share by minutes of a run, for runs too short for `WARM_UP_SHARE`: agents take seconds to start."""


def specs(budget: str, game: str, seed: int, **length: Any) -> list[RunSpec]:
    """Return a run for every network and system, the systems of a network one after another.

    Args:
        budget, game, seed: as of `Figure.specs`.
        length: settings that replace those of `LENGTHS`.

    Raises:
        UserError: the networks are not for this game.
    """
    if not is_atari(game):
        raise UserError(
            f"the figures pps and utilization compare networks for Atari games; they do not go with {game}"
        )
    settings = LENGTHS[budget] | length
    return [
        speed_spec(game, seed, system, network=network, **workers(agents), **settings).called(words)
        for network, words in NETWORKS.items()
        for system, agents in AGENTS[budget].items()
    ]


def speed_ups(table: Measurements) -> dict[str, Pairs]:
    """Return the PPS of GA3C and of A3C, by network and seed. Only GA3C may use a GPU."""
    return {
        network: part.pairs("pps", {"system": "GA3C"}, {"system": "A3C"})
        for network, part in table.parts("network")
    }


def with_or_without_gpu(table: Measurements) -> str:
    """Return the first words of a claim, which say whether a finished run used a GPU."""
    if not table.finished:
        return ""
    return "with a GPU, " if any(run.on_gpu for run in table.finished) else "without a GPU, "


def papers_ratio(table: Measurements, network: str) -> float | None:
    """Return the paper's speed-up over A3C with this network, or None."""
    return table.papers("pps", metric=f"speed-up, {network}")


def _measures(run: RecordedRun) -> list[Measure]:
    config = run.spec.config
    steady = run.steady(WARM_UP_SHARES.get(config.minutes, WARM_UP_SHARE) * 3600 * run.hours)
    protocol = f"agent steps per second over the last {steady['seconds']:.0f} s, {config.num_agents} agents"
    if run.spec.system == "ga3c":
        protocol += f", minimum batch {config.min_training_batch}"
    return [Measure("pps", steady["pps"], "predictions/s", protocol)]


class PpsFigure(Figure):
    """Ratios are of runs of one seed on one machine; their growth needs GA3C on a GPU, as in the paper."""

    name = "pps"
    games = {"smoke": ("cartpole",), "quick": ("pong",), "gpu": ("pong",), "paper": ("pong",)}
    counts = {"quick": 5}
    smoke = tuple({"system": system, "called": ("mlp",)} for system in SYSTEMS)
    labels = {"network": str}
    measured = (_measures,)
    main = ("pps", "predictions/s")
    by_game = True
    rows = ("network",)
    columns = {
        **{name: mean_of("pps", system=name) for name in SYSTEMS.values()},
        "GA3C / A3C": lambda part: mean_ci(list(speed_ups(part).popitem()[1].ratio)),
        "GA3C / A3C (paper, system I)": lambda part: number(papers_ratio(part, part.names("network")[0])),
    }

    def planned(self, budget, game, seed):
        return specs(budget, game, seed)

    def claims(self, table):
        pairs = speed_ups(table)
        ratios = pd.DataFrame({network: pair.ratio for network, pair in pairs.items()})
        empty = len(pairs) < len(NETWORKS) or any(pair.first.empty for pair in pairs.values())
        missing = Guard(RUNS_MISSING, empty or table.missing.applies)
        guards = [missing, table.several_machines, speed_changed(*pairs.values())]
        on_gpu = all(run.on_gpu for run in table.finished if run.spec.system == "ga3c")
        rise = above(growth(ratios))
        faster = all_above([pair.factor(what=name) for name, pair in pairs.items()])
        gpu_guards = [Guard(NEEDS_GPU, not on_gpu), *guards]
        where = with_or_without_gpu(table)
        return [
            self.claim("faster", faster, [*guards, *table.unfair_to_a3c], where=where),
            self.claim("grows", rise, gpu_guards, table.judges_gpu),
        ]

    def plot(self, table, stem):
        papers = {name: papers_ratio(table, name) for name in table.names("network")}
        ratios = {
            "ours, this machine": {name: list(pair.ratio) for name, pair in speed_ups(table).items()},
            "paper, GPU (system I)": {name: [ratio] for name, ratio in papers.items() if ratio is not None},
        }
        speeds = {system: part.lists("pps", "network") for system, part in table.parts("system")}
        speed_plots.speed_points(speeds, ratios, stem)

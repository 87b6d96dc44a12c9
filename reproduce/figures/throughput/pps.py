"""Table 2 and slide 37: predictions per second of GA3C and of A3C on a CPU, for networks of growing size."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures.figure import (
    Figure,
    Measure,
    Table,
    mean_of,
    seeds_by_budget,
    smoke_spec,
    unfinished,
)
from ga3c_tf.reproduce.figures.measurements import Measurements, Pairs, speed_changed, words_of
from ga3c_tf.reproduce.measures.estimates import growth, paired_ratio
from ga3c_tf.reproduce.measures.text import mean_ci, number
from ga3c_tf.reproduce.measures.verdicts import NEEDS_GPU, RUNS_MISSING, Above, AllAbove, Claim, Guard
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import SYSTEMS, RunSpec, is_atari, run_spec

NETWORKS = {
    "small": "small",
    "large-4": "large stride 4",
    "large-3": "large stride 3",
    "large-2": "large stride 2",
    "large-1": "large stride 1",
}
AGENTS = {
    "quick": {"ga3c": 32, "a3c": 4, "a2c": 32},  # A3C: two replicas of the network for each of 2 cores
    "gpu": {"ga3c": 128, "a3c": 16},
    "paper": {"ga3c": 128, "a3c": 16, "a2c": 128},
}
MINUTES = {"quick": 0.75, "gpu": 0.3, "paper": 30.0}
LOG_SECONDS = {"quick": 5.0, "gpu": 3.0, "paper": 5.0}
WARM_UP_SHARE = 0.25
WARM_UP_SHARES: dict[float | None, float] = {MINUTES["gpu"]: 0.45}
"""Warm-up share by minutes of a run, for runs too short for `WARM_UP_SHARE`: agents take seconds to start."""


def specs(budget: str, game: str, seed: int, minutes: float | None = None) -> list[RunSpec]:
    """Return a run for every network and system, the systems of a network one after another.

    Args:
        budget: budget of the runs.
        game: name of the game.
        seed: seed of the runs.
        minutes: length of the runs, instead of that of the budget; without effect at `smoke`.

    Raises:
        UserError: the networks are not for this game.
    """
    if budget == "smoke":
        return [smoke_spec(game, seed, system).called("mlp") for system in SYSTEMS]
    if not is_atari(game):
        raise UserError(
            f"the figures pps and utilization compare networks for Atari games; they do not go with {game}"
        )
    return [
        run_spec(
            game,
            seed,
            system,
            network=network,
            num_agents=agents,
            num_predictors=2,
            num_trainers=2,
            min_training_batch=0,
            minutes=minutes or MINUTES[budget],
            log_seconds=LOG_SECONDS[budget],
            checkpoint_minutes=60.0,
        ).called(words)
        for network, words in NETWORKS.items()
        for system, agents in AGENTS[budget].items()
    ]


def measures(run: RecordedRun) -> list[Measure]:
    """Return the PPS after the warm-up, measured as agent steps per second."""
    warm_up_share = WARM_UP_SHARES.get(run.spec.config.minutes, WARM_UP_SHARE)
    steady = run.steady(warm_up_share * 3600 * run.hours)
    protocol = (
        f"agent steps per second over the last {steady['seconds']:.0f} s, {run.spec.config.num_agents} agents"
    )
    if run.spec.system == "ga3c":
        protocol += f", minimum batch {run.spec.config.min_training_batch}"
    return [Measure("pps", steady["pps"], "predictions/s", protocol)]


def speed_ups(table: Measurements, other: str = "A3C") -> dict[str, Pairs]:
    """Return the PPS of GA3C and of the other system, by network and seed. Only GA3C may use a GPU."""
    return {
        network: part.pairs("pps", {"system": "GA3C"}, {"system": other})
        for network, part in table.parts("network")
    }


def claims(table: Measurements) -> list[Claim]:
    """Return the paper's claims about the speed of GA3C relative to A3C."""
    pairs = speed_ups(table)
    ratios = pd.DataFrame({network: pair.first / pair.second for network, pair in pairs.items()})
    empty = len(pairs) < len(NETWORKS) or any(pair.first.empty for pair in pairs.values())
    missing = Guard(RUNS_MISSING, empty or table.missing.applies)
    on_gpu = all(run.on_gpu for run in table.finished if run.spec.system == "ga3c")
    means = ", ".join(number(ratio) for ratio in ratios.mean())
    papers = ", ".join(number(papers_ratio(table, network)) for network in pairs)
    faster = [paired_ratio(pair.first, pair.second, what=network) for network, pair in pairs.items()]
    rise = growth(ratios, what="from one network to the next", note=f"ratios {means}; the paper's {papers}")
    return [
        Claim(
            "faster",
            f"{with_or_without_gpu(table)}GA3C makes more predictions per second than A3C with every network",
            AllAbove(faster),
            [missing, speed_changed(*pairs.values()), *table.unfair_to_a3c],
            "the ratio of runs of one seed on one machine; the network with the lowest ratio is shown",
        ),
        Claim(
            "grows",
            "the speed-up over A3C grows with the network",
            Above(rise),
            [Guard(NEEDS_GPU, not on_gpu), missing, speed_changed(*pairs.values())],
            "the slope of the ratio's logarithm over the five networks, as a mean over seeds; this needs "
            "GA3C on a GPU, as in the paper",
            shown=table.results.judges_gpu,
        ),
    ]


def with_or_without_gpu(table: Measurements) -> str:
    """Return the first words of a claim, which say whether a finished run used a GPU."""
    if not table.finished:
        return ""
    return "with a GPU, " if any(run.on_gpu for run in table.finished) else "without a GPU, "


def papers_ratio(table: Measurements, network: str) -> float | None:
    """Return the paper's speed-up over A3C with this network, or None."""
    paper = table.results.papers("pps", game=table.game, metric=f"speed-up, {network}")
    return paper.value if paper else None


def answer(table: Measurements) -> str:
    """Return the mean speed-ups over A3C by network; an empty text without any, or for several games."""
    means = [number(float((pair.first / pair.second).mean())) for pair in speed_ups(table).values()]
    if "nan" in means or len(table.names("game")) > 1:
        return ""
    return f"GA3C / A3C with networks of growing size: {', '.join(means)}"


def ratio(part: Measurements) -> str:
    """Return a cell with the speed-up over A3C."""
    (pair,) = speed_ups(part).values()
    return mean_ci(list(pair.first / pair.second))


def plot(table: Measurements, stem: Path) -> None:
    """Draw the PPS as points on a log axis, with our speed-ups and the paper's in a panel above."""
    from ga3c_tf.reproduce.drawing import speed_plots

    speeds = {
        system: {network: part.numbers("pps") for network, part in runs.parts("network")}
        for system, runs in table.parts("system")
    }
    ratios = {
        "ours, this machine": {
            name: list(pair.first / pair.second) for name, pair in speed_ups(table).items()
        },
        "paper, GPU (system I)": {
            name: [value]
            for name in table.names("network")
            if (value := papers_ratio(table, name)) is not None
        },
    }
    speed_plots.speed_points(speeds, ratios, stem)


FIGURE = Figure(
    name="pps",
    place=2,
    paper="Table 2, slide 37",
    shows="predictions per second of GA3C and A3C, and of our A2C, for five networks, and the speed-ups",
    headline="GA3C makes more predictions than A3C (4 to 45 times on the paper's GPUs), "
    "most with large networks",
    games={"smoke": ("cartpole",), "quick": ("pong",), "gpu": ("pong",), "paper": ("pong",)},
    seeds=seeds_by_budget(quick=5),
    specs=specs,
    dimensions=words_of("network"),
    measures=measures,
    main=("pps", "predictions/s"),
    claims=claims,
    answer=answer,
    tables=[
        Table(
            ("network",),
            {
                **{name: mean_of("pps", system=name) for name in SYSTEMS.values()},
                "GA3C / A3C": ratio,
                "GA3C / A3C (paper, system I)": lambda part: number(
                    papers_ratio(part, part.names("network")[0])
                ),
                "not finished": unfinished,
            },
        )
    ],
    plot=plot,
    by_game=True,
)

"""Figure 3: model updates per second for combinations of agents, predictors and trainers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from ga3c_tf.reproduce.figures.figure import Figure, Measure, Table, seeds_by_budget, smoke_spec
from ga3c_tf.reproduce.figures.measurements import Measurements, measured_alike, speed_changed
from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS, Effect, paired_ratio, pooled
from ga3c_tf.reproduce.measures.verdicts import (
    MARGIN,
    NOT_TRIED,
    SPEED_CHANGED,
    Above,
    AllAbove,
    Claim,
    Guard,
)
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec, network_of, run_spec, workers_of

AGENTS = {"quick": (8, 16, 32, 64), "gpu": (32, 128), "paper": (16, 32, 64, 128)}
PREDICTORS = {"quick": (1, 2, 4, 8), "gpu": (2,), "paper": (1, 2, 4, 8, 16)}
TRAINERS = {"quick": (1, 2, 4), "gpu": (1, 2, 4), "paper": (1, 2, 4, 8, 16)}
SCHEDULINGS = {"quick": ("plain", "tuned"), "gpu": ("plain",), "paper": ("plain",)}
WARM_UP_S = {"quick": 15.0, "gpu": 9.0, "paper": 60.0}
MEASURED_S = {"quick": 30.0, "gpu": 9.0, "paper": 16 * 60.0}
MINUTES = {budget: (WARM_UP_S[budget] + MEASURED_S[budget]) / 60 for budget in WARM_UP_S}
LOG_SECONDS = {"quick": 2.5, "gpu": 3.0, "paper": 5.0}
WARM_UP_OF: dict[float | None, float] = {MINUTES[budget]: WARM_UP_S[budget] for budget in MINUTES}
PLOTTED = 3
"""Number of settings that the paper plots for each number of agents."""
PAPERS_GAP = 0.14
PAPERS_PREDICTORS = 4
SETTING = ("agents", "predictors", "trainers", "scheduling")
"""The dimensions that are varied."""


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return a run for every combination. `queues` uses the same runs, and only it has the budget `gpu`."""
    if budget == "smoke":
        return [
            smoke_spec(game, seed),
            smoke_spec(game, seed, num_agents=8, num_predictors=2, num_trainers=2),
        ]
    return [
        run_spec(
            game,
            seed,
            num_agents=agents,
            num_predictors=predictors,
            num_trainers=trainers,
            scheduling=scheduling,
            **network_of(game),
            min_training_batch=0,
            minutes=MINUTES[budget],
            log_seconds=LOG_SECONDS[budget],
            checkpoint_minutes=60.0,
        )
        for agents in AGENTS[budget]
        for predictors in PREDICTORS[budget]
        for trainers in TRAINERS[budget]
        for scheduling in SCHEDULINGS[budget]
    ]


def dimensions(spec: RunSpec) -> dict[str, object]:
    """Return the numbers of workers and the scheduling."""
    return dict(zip(SETTING, (*workers_of(spec.config), spec.config.scheduling), strict=True))


def warm_up_s(run: RecordedRun) -> float:
    """Return the seconds at the start of each session of the run that are left out."""
    return WARM_UP_OF.get(run.spec.config.minutes, 0.0)


def measures(run: RecordedRun) -> list[Measure]:
    """Return updates per second and agent steps per second, after the warm-up."""
    steady = run.steady(warm_up_s(run))
    minimum = run.spec.config.min_training_batch
    protocol = f"over the last {steady['seconds']:.0f} s, minimum batch {minimum}"
    return [
        Measure("tps", steady["tps"], "updates/s", protocol),
        Measure("pps", steady["pps"], "predictions/s", protocol),
    ]


def claims(table: Measurements) -> list[Claim]:
    """Return the paper's claims about the numbers of workers.

    Two numbers of workers are compared by the ratio of the TPS of runs that differ in nothing else.
    """
    *fewer, most = sorted(table.names("agents"))
    more = sorted(number for number in table.names("predictors") if number > PAPERS_PREDICTORS)
    agents = [_ratio(table, "agents", most, other) for other in fewer]
    predictors = [_ratio(table, "predictors", PAPERS_PREDICTORS, other, 1 / (1 + MARGIN)) for other in more]
    gap, compared = _gap(table)
    where = "" if all(run.on_gpu for run in table.finished) else "without a GPU, "
    return [
        Claim(
            "most-agents",
            f"{where}TPS is highest with the most agents",
            AllAbove([estimate for estimate, _ in agents], MARGIN),
            [table.missing, *(guard for _, guard in agents)],
            f"higher than with every smaller number of agents; 'no difference larger than {MARGIN:.0%}' if "
            "this is so for one of them",
        ),
        Claim(
            "few-predictors",
            f"{where}more than {PAPERS_PREDICTORS} predictors do not increase TPS",
            AllAbove([estimate for estimate, _ in predictors]),
            [table.missing, Guard(NOT_TRIED, not more), *(guard for _, guard in predictors)],
            f"more predictors are less than {MARGIN:.0%} faster than {PAPERS_PREDICTORS}",
        ),
        Claim(
            "close-together",
            f"{where}the number of agents matters little",
            Above(gap),
            [
                table.missing,
                table.several_machines,
                Guard(SPEED_CHANGED, bool(compared) and not measured_alike(compared)),
            ],
            f"the fastest three settings of the slowest number are less than {PAPERS_GAP:.0%} below those of "
            "the fastest, on average over the schedulings",
        ),
    ]


def _ratio(
    table: Measurements, kind: str, first: int, second: int, limit: float = 1.0
) -> tuple[Effect, Guard]:
    """Compare the TPS at two numbers of one kind of worker, by pairs of runs that differ in nothing else."""
    by = [name for name in (*SETTING, "seed") if name != kind]
    pairs = table.pairs("tps", {kind: first}, {kind: second}, by)
    what = f"TPS with {first} relative to {second} {kind}"
    return paired_ratio(pairs.first, pairs.second, limit, of="pair", what=what), speed_changed(pairs)


def fastest(table: Measurements, agents: int, scheduling: str) -> pd.Series:
    """Return the TPS of the settings that the paper would plot: the fastest three, by setting."""
    part = table.select(agents=agents, scheduling=scheduling)
    return part.series("tps", SETTING).sort_values(ascending=False, kind="stable")[:PLOTTED]


def _gap(table: Measurements) -> tuple[Effect, list[RecordedRun]]:
    """Compare the slowest number of agents with the fastest one, by the fastest settings of each.

    The settings of each scheduling are compared by the logarithms of their TPS, and the differences are
    averaged over the schedulings.

    Returns:
        The estimate, and the runs that it compares.
    """
    best = {
        agents: [np.log(fastest(table, agents, scheduling)) for scheduling in table.names("scheduling")]
        for agents in table.names("agents")
    }
    whole = {agents: groups for agents, groups in best.items() if all(map(len, groups))}
    if not whole:
        return Effect(ratio=True), []
    means = {agents: np.mean([group.mean() for group in groups]) for agents, groups in whole.items()}
    slow = whole[min(means, key=means.__getitem__)]
    fast = whole[max(means, key=means.__getitem__)]
    what = "TPS of the slowest three numbers of agents relative to the fastest"
    estimate = pooled(list(zip(slow, fast, strict=True)), math.log(1 - PAPERS_GAP), of="setting", what=what)
    if estimate.n >= LEAST_SEEDS:
        estimate = replace(estimate, n=sum(map(len, slow)))
    return replace(estimate, ratio=True), _runs_of(table, [*slow, *fast])


def _runs_of(table: Measurements, groups: Sequence[pd.Series]) -> list[RecordedRun]:
    settings = {setting for group in groups for setting in group.index}
    return [run for setting, part in table.parts(*SETTING) if setting in settings for run in part.runs]


def best_settings(part: Measurements) -> str:
    """Return a cell with the TPS of the fastest settings, and their predictors and trainers."""
    best = fastest(part, part.names("agents")[0], part.names("scheduling")[0])
    return ", ".join(f"{tps:.1f} ({setting[1]}/{setting[2]})" for setting, tps in best.items())


def plot(table: Measurements, stem: Path) -> None:
    """Draw the TPS of every setting as a share of the best, by number of agents, a panel per scheduling."""
    from ga3c_tf.reproduce.drawing import speed_plots

    panels = {
        f"{scheduling} scheduling": part.series("tps", SETTING).to_dict()
        for scheduling, part in table.parts("scheduling")
    }
    speed_plots.normalized_tps(panels, PLOTTED, stem)


FIGURE = Figure(
    name="tps",
    place=4,
    paper="Figure 3",
    shows="updates per second for combinations of agents, predictors and trainers",
    headline="the most agents are fastest, more than 4 predictors do not help, and the number of agents "
    "matters little",
    games={"smoke": ("cartpole",), "quick": ("pong",), "paper": ("pong",)},
    seeds=seeds_by_budget(gpu=1, paper=1),
    specs=specs,
    dimensions=dimensions,
    measures=measures,
    main=("tps", "updates/s"),
    claims=claims,
    tables=[Table(("scheduling", "agents"), {"TPS of the fastest (predictors/trainers)": best_settings})],
    plot=plot,
    by_game=True,
)

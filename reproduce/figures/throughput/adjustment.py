"""Figure 2 and slide 34: dynamic adjustment finds the best numbers of agents, predictors and trainers for a game."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from ga3c_tf.reproduce.figures.figure import (
    Figure,
    Measure,
    grouped,
    on_one_machine,
    once_ended,
    seeds_by_budget,
    smoke_spec,
)
from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.measures.effects import described, holm, welch_effect
from ga3c_tf.reproduce.measures.text import lines_of, mean_ci
from ga3c_tf.reproduce.measures.verdicts import CHANCE, FEW_SEEDS, HOLDS, LEAST_SEEDS, NO_DIFFERENCE, Claim, Finding
from ga3c_tf.reproduce.runs.run import Run
from ga3c_tf.reproduce.runs.specs import RunSpec, env_id_of, run_spec

WORKERS = ("agents", "predictors", "trainers")
MINUTES = {"quick": 20.0, "paper": 240.0}
PERIOD_S = {"quick": 20.0, "paper": 60.0}
PAPERS_NETWORK: dict[str, Any] = {"network": "small"}
"""Network for Atari games. Other environments have networks of their own."""


def dynamic(budget: str, game: str, seed: int, minutes: float | None = None) -> RunSpec:
    """Return a run that starts from 1/1/1 workers and is adjusted by the paper's rule. `speed` uses it too.

    Args:
        budget: one of `BUDGETS` that the figure has.
        game: name of the game.
        seed: seed of the run.
        minutes: duration of the run; None for the default of the budget. `smoke` ignores it.
    """
    if budget == "smoke":
        return smoke_spec(
            game,
            seed,
            num_agents=1,
            max_agents=8,
            adjustment="paper",
            adjustment_seconds=1.0,
            steps=None,
            minutes=0.1,
        )
    return run_spec(
        game,
        seed,
        num_agents=1,
        num_predictors=1,
        num_trainers=1,
        **(PAPERS_NETWORK if env_id_of(game).startswith("ALE/") else {}),
        min_training_batch=0,
        adjustment="paper",
        adjustment_seconds=PERIOD_S[budget],
        max_agents=128,
        minutes=minutes or MINUTES[budget],
        log_seconds=5.0 if budget == "quick" else 30.0,
        checkpoint_minutes=60.0,
    )


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return the only run of a game and seed."""
    return [dynamic(budget, game, seed)]


def measures(run: Run) -> list[Measure]:
    """Return the last accepted setting, and the mean rates of the first accepted setting and of the last."""
    rows = run.adjustment
    accepted = np.flatnonzero(rows["accepted"] == 1)
    period = run.spec.config.adjustment_seconds
    protocol = f"{len(rows['time_s'])} periods of {period:g} s, moves of one (D6), from 1/1/1"
    why_not = "no period of the adjustment has ended"

    def at(column: str, place: int) -> float:
        return float(rows[column][accepted[place]]) if len(accepted) else float("nan")

    def rate(place: int) -> float:
        """Return the mean rate over all periods with the setting of this accepted period."""
        same = np.all([rows[name] == at(name, place) for name in WORKERS], axis=0)
        return float(rows["rate"][same].mean()) if len(accepted) else float("nan")

    return [
        *(Measure(f"final {name}", at(name, -1), "workers", protocol, why_not) for name in WORKERS),
        Measure("first rate", rate(0), "trained samples/s", protocol, why_not),
        Measure("final rate", rate(-1), "trained samples/s", protocol, why_not),
    ]


def different_optimum(found: dict[str, np.ndarray]) -> Finding:
    """Judge whether two games differ in any of the three numbers of workers.

    Args:
        found: log2 of N_A, N_P and N_T at the end of each run, by game; float [seeds, 3].
    """
    effects = {
        f"log2 of {name}, {one} minus {other}": welch_effect(list(found[one][:, column]), list(found[other][:, column]))
        for one, other in combinations(found, 2)
        for column, name in enumerate(WORKERS)
    }
    if not effects or any(effect.seeds < LEAST_SEEDS for effect in effects.values()):
        return Finding(FEW_SEEDS, f"needs two games with {LEAST_SEEDS} seeds each")
    corrected = dict(zip(effects, holm([effect.chance for effect in effects.values()]), strict=True))
    clearest = min(corrected, key=corrected.__getitem__)
    verdict = HOLDS if corrected[clearest] < CHANCE else NO_DIFFERENCE
    return Finding(verdict, f"{clearest}: {described(effects[clearest], corrected[clearest])}")


def claims(results: Results) -> list[Claim]:
    """Return the paper's claim that games differ in the best numbers of workers."""
    optima = {}
    for game, runs in grouped(results.runs, lambda run: run.spec.game).items():
        workers = [results.values(f"final {name}", runs) for name in WORKERS]
        optima[game] = np.log2(list(zip(*workers, strict=True))).reshape(-1, len(WORKERS))
    return [
        Claim(
            "the best numbers of agents, predictors and trainers differ between games",
            once_ended(on_one_machine(different_optimum(optima), results.runs), results.runs),
            "the mean log2 of N_A, N_P or N_T differs between two games; the most significant difference is shown",
        )
    ]


def details(results: Results) -> list[str]:
    """Return the table of the settings found, and of the rates of the first and the last setting."""
    rows = []
    for game, runs in grouped(results.runs, lambda run: run.spec.game).items():
        metrics = [*(f"final {name}" for name in WORKERS), "first rate", "final rate"]
        reasons = sorted({results.status(run) for run in runs if not run.finished})
        rows.append([game, *(mean_ci(results.values(metric, runs)) for metric in metrics), "; ".join(reasons)])
    return lines_of("adjustment.md", rows=rows, quick=results.budget == "quick")


def plot(results: Results, stem: Path) -> None:
    """Draw N_A, N_P, N_T and TPS over time, a column for each game."""
    from ga3c_tf.reproduce.drawing import speed_plots

    speed_plots.adjustment_courses([run for run in results.runs if run.finished], stem)


FIGURE = Figure(
    name="adjustment",
    place=3,
    paper="Figure 2, slide 34",
    shows="agents, predictors, trainers and TPS over time under dynamic adjustment",
    headline="the best numbers of agents, predictors and trainers differ between games",
    games={"smoke": ("cartpole",), "quick": ("boxing", "pong"), "paper": ("boxing", "pong")},
    seeds=seeds_by_budget(),
    specs=specs,
    measures=measures,
    main=("final agents", "workers"),
    claims=claims,
    details=details,
    plot=plot,
)

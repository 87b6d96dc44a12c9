"""Figure 2 and slide 34: dynamic adjustment, and whether games differ in their best numbers of workers.

The search of the dynamic adjustment changes one number by one at a time and does not settle within minutes.
Therefore runs with fixed numbers judge the claim about games.
"""

from __future__ import annotations

from pathlib import Path

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
from ga3c_tf.reproduce.figures.throughput import fixed_numbers
from ga3c_tf.reproduce.figures.throughput.fixed_numbers import WORKERS, WorkersAndSeed
from ga3c_tf.reproduce.figures.throughput.pps import with_or_without_gpu
from ga3c_tf.reproduce.measures.text import lines_of, mean_ci
from ga3c_tf.reproduce.measures.verdicts import EQUAL_WIDE, Claim
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec, network_of, run_spec, workers_of

MINUTES = {"quick": 20.0, "paper": 240.0}
PERIOD_S = {"quick": 20.0, "paper": 60.0}


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
        **network_of(game),
        min_training_batch=0,
        adjustment="paper",
        adjustment_seconds=PERIOD_S[budget],
        max_agents=128,
        minutes=minutes or MINUTES[budget],
        log_seconds=5.0 if budget == "quick" else 30.0,
        checkpoint_minutes=60.0,
    )


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return the runs with fixed numbers and for seed 1 that with adjustment. `smoke` has only the latter."""
    if budget == "smoke":
        return [dynamic(budget, game, seed)]
    return [*([dynamic(budget, game, seed)] if seed == 1 else []), *fixed_numbers.specs(game, seed)]


def measures(run: RecordedRun) -> list[Measure]:
    """Return the TPS; with dynamic adjustment, also the last accepted setting and the rates of the first and
    the last.

    The rates are means over all periods with that setting.
    """
    if not _is_dynamic(run):
        return fixed_numbers.measures(run)
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
        Measure("tps", run.steady(0.0)["tps"], "updates/s", "mean over the run"),
        *(Measure(f"final {name}", at(name, -1), "workers", protocol, why_not) for name in WORKERS),
        Measure("first rate", rate(0), "trained samples/s", protocol, why_not),
        Measure("final rate", rate(-1), "trained samples/s", protocol, why_not),
    ]


def _is_dynamic(run: RecordedRun) -> bool:
    return run.spec.config.adjustment != "off"


def _runs_of(results: Results, dynamic: bool) -> dict[str, list[RecordedRun]]:
    """Return the runs with dynamic adjustment, or those with fixed numbers, by game."""
    return grouped((run for run in results.runs if _is_dynamic(run) == dynamic), lambda run: run.spec.game)


def speeds(results: Results) -> dict[str, dict[WorkersAndSeed, float]]:
    """Return the TPS of every run with fixed numbers that made an update after its start, by game."""
    return {
        game: {
            WorkersAndSeed(workers_of(run.spec.config), run.spec.seed): value
            for run in runs
            if (value := results.value(run, "tps"))
        }
        for game, runs in _runs_of(results, dynamic=False).items()
    }


def claims(results: Results) -> list[Claim]:
    """Return the paper's claim that games differ in the best numbers of workers."""
    runs = [run for of_game in _runs_of(results, dynamic=False).values() for run in of_game]
    if not runs:
        return []
    return [
        Claim(
            f"{with_or_without_gpu(results)}the best numbers of agents, predictors and trainers differ "
            "between games",
            once_ended(on_one_machine(fixed_numbers.different(speeds(results)), runs), runs),
            f"with {_numbers()}: more workers of a kind raise the TPS of one game and lower that of another; "
            f"'{EQUAL_WIDE}' if, for each kind, "
            "the factors by which they change the TPS of games differ by less",
        )
    ]


def _numbers() -> str:
    """Describe the compared numbers, such as '8 or 32 agents, 1 or 2 predictors and 1 or 2 trainers'."""
    kinds = [
        f"{small} or {large} {name}"
        for (small, large), name in zip(fixed_numbers.NUMBERS, WORKERS, strict=True)
    ]
    return f"{', '.join(kinds[:-1])} and {kinds[-1]}"


def details(results: Results) -> list[str]:
    """Return the tables of the settings that the search found, and of the TPS with fixed numbers."""
    rows = []
    for game, runs in _runs_of(results, dynamic=True).items():
        metrics = [*(f"final {name}" for name in WORKERS), "first rate", "final rate"]
        reasons = sorted({results.status(run) for run in runs if not run.finished})
        rows.append(
            [game, *(mean_ci(results.values(metric, runs)) for metric in metrics), "; ".join(reasons)]
        )
    return lines_of("adjustment.md", rows=rows, fixed=_of_fixed(results), quick=results.budget == "quick")


def _of_fixed(results: Results) -> list[list[str]]:
    """Return the mean TPS over seeds of each game and setting, as rows of a table."""
    rows: dict[tuple[int, ...], list[str]] = {}
    games = _runs_of(results, dynamic=False)
    for game in games:
        settings = grouped(games[game], lambda run: workers_of(run.spec.config))
        for workers, runs in settings.items():
            rows.setdefault(workers, ["/".join(map(str, workers))]).append(
                mean_ci(results.values("tps", runs))
            )
    return [["N_A/N_P/N_T", *games], *rows.values()]


def plot(results: Results, stem: Path) -> None:
    """Draw N_A, N_P, N_T and TPS over time, a column for each game."""
    from ga3c_tf.reproduce.drawing import speed_plots

    speed_plots.adjustment_courses([run for run in results.runs if run.finished and _is_dynamic(run)], stem)


FIGURE = Figure(
    name="adjustment",
    place=3,
    paper="Figure 2, slide 34",
    shows="agents, predictors, trainers and TPS over time under dynamic adjustment",
    headline="the best numbers of agents, predictors and trainers differ between games",
    games={"smoke": ("cartpole",), "quick": ("boxing", "pong"), "paper": ("boxing", "pong")},
    seeds=seeds_by_budget(quick=4, paper=4),
    specs=specs,
    measures=measures,
    main=("tps", "updates/s"),
    claims=claims,
    details=details,
    plot=plot,
)

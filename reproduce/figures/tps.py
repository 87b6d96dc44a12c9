"""Figure 3: model updates per second for combinations of agents, predictors and trainers."""

from __future__ import annotations

from pathlib import Path

from ga3c_tf.reproduce.figures.figure import Figure, Measure, Results, grouped, seeds_by_budget, smoke_spec
from ga3c_tf.reproduce.measures.text import lines_of, number
from ga3c_tf.reproduce.measures.verdicts import (
    NOT_TRIED,
    RUNS_MISSING,
    SEVERAL_MACHINES,
    TIE,
    WITHIN_NOISE,
    Finding,
    holds_if,
)
from ga3c_tf.reproduce.runs.run import Run
from ga3c_tf.reproduce.runs.specs import RunSpec, run_spec, workers_of

AGENTS = {"quick": (8, 16, 32, 64), "paper": (16, 32, 64, 128)}
THREADS = {"quick": (1, 2, 4), "paper": (1, 2, 4, 8, 16)}
WARM_UP_S = {"quick": 15.0, "paper": 60.0}
MEASURED_S = {"quick": 30.0, "paper": 16 * 60.0}
MINUTES = {budget: (WARM_UP_S[budget] + MEASURED_S[budget]) / 60 for budget in WARM_UP_S}
WARM_UP_OF: dict[float | None, float] = {MINUTES[budget]: WARM_UP_S[budget] for budget in MINUTES}
PLOTTED = 3
"""Settings that the paper plots for each number of agents."""
PAPERS_GAP = 0.14
PAPERS_PREDICTORS = 4


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return every combination; `queues` is made of the same runs."""
    if budget == "smoke":
        return [smoke_spec(game, seed), smoke_spec(game, seed, num_agents=8, num_predictors=2, num_trainers=2)]
    return [
        run_spec(
            game,
            seed,
            num_agents=agents,
            num_predictors=predictors,
            num_trainers=trainers,
            network="small",
            min_training_batch=0,
            minutes=MINUTES[budget],
            log_seconds=2.5 if budget == "quick" else 5.0,
            checkpoint_minutes=60.0,
        )
        for agents in AGENTS[budget]
        for predictors in THREADS[budget]
        for trainers in THREADS[budget]
    ]


def warm_up_s(run: Run) -> float:
    """Return the seconds of the run that are left out."""
    return WARM_UP_OF.get(run.spec.config.minutes, 0.0)


def measures(run: Run) -> list[Measure]:
    """Return updates per second, and agent steps per second beside them."""
    steady = run.steady(warm_up_s(run))
    minimum = run.spec.config.min_training_batch
    protocol = f"over the last {steady['seconds']:.0f} s, minimum batch {minimum}"
    return [
        Measure("tps", steady["tps"], "updates/s", protocol),
        Measure("pps", steady["pps"], "predictions/s", protocol),
    ]


def by_setting(results: Results, metric: str) -> dict[tuple[int, int, int], float]:
    """Return the mean over seeds of this number for every N_A, N_P, N_T that has one."""
    found = {
        setting: results.values(metric, runs)
        for setting, runs in grouped(results.runs, lambda run: workers_of(run.spec.config)).items()
    }
    return {setting: sum(values) / len(values) for setting, values in found.items() if values}


def best_of(tps: dict[tuple[int, int, int], float], agents: int) -> list[tuple[int, int, int]]:
    """Return the settings with so many agents that the paper would plot: the fastest three, fastest first."""
    return sorted((each for each in tps if each[0] == agents), key=lambda each: -tps[each])[:PLOTTED]


def words(setting: tuple[int, int, int]) -> str:
    """Write a setting as '32/2/2'."""
    return "/".join(map(str, setting))


def lacking(measured: int, planned: int, one_machine: bool) -> str:
    """Return why a sweep with so many settings measured cannot be judged, empty where it can."""
    if measured < planned or planned <= PLOTTED:
        return RUNS_MISSING
    return "" if one_machine else SEVERAL_MACHINES


def findings(
    tps: dict[tuple[int, int, int], float], planned: set[tuple[int, int, int]], one_machine: bool
) -> dict[str, Finding]:
    """Judge the paper's findings where all planned settings were measured, on one machine."""
    reason = lacking(len(tps), len(planned), one_machine)
    shown = [each for agents in {each[0] for each in tps} for each in best_of(tps, agents)]
    return {
        "most_agents": _most_agents(tps, max(agents for agents, _, _ in planned), reason),
        "few_predictors": _few_predictors(shown, max(predictors for _, predictors, _ in planned), reason),
        "close_together": _close_together([tps[each] for each in shown], reason),
    }


def _most_agents(tps: dict[tuple[int, int, int], float], most: int, reason: str) -> Finding:
    """Judge whether the fastest setting has the most agents."""
    if not tps:
        return Finding(RUNS_MISSING, "nothing measured")
    lead = _lead(tps, most)
    because = f"the fastest {words(max(tps, key=tps.__getitem__))}; {most} agents against fewer {lead:+.1%}"
    if reason:
        return Finding(reason, because)
    if abs(lead) <= TIE:
        return Finding(WITHIN_NOISE, because)
    return Finding(holds_if(lead > 0), because)


def _lead(tps: dict[tuple[int, int, int], float], agents: int) -> float:
    """Return by which part the fastest setting with so many agents is faster than the fastest of all others."""
    own = [value for each, value in tps.items() if each[0] == agents]
    others = [value for each, value in tps.items() if each[0] != agents]
    return max(own) / max(others) - 1 if own and others else 0.0


def _few_predictors(shown: list[tuple[int, int, int]], most: int, reason: str) -> Finding:
    """Judge whether the best settings have few predictors; it takes runs with more."""
    because = f"the most that was tried is {most}"
    if most <= PAPERS_PREDICTORS:
        return Finding(NOT_TRIED, because)
    if reason:
        return Finding(reason, because)
    return Finding(holds_if(all(predictors <= PAPERS_PREDICTORS for _, predictors, _ in shown)), because)


def _close_together(shown: list[float], reason: str) -> Finding:
    """Judge whether the plotted settings are about as fast as each other."""
    if not shown:
        return Finding(RUNS_MISSING, "nothing measured")
    gap = 1 - min(shown) / max(shown)
    because = f"they lie within {gap:.1%}"
    if reason:
        return Finding(reason, because)
    if abs(gap - PAPERS_GAP) <= TIE:
        return Finding(WITHIN_NOISE, because)
    return Finding(holds_if(gap < PAPERS_GAP), because)


def section(results: Results) -> list[str]:
    """Return the fastest three for each N_A, and the findings."""
    tps = by_setting(results, "tps")
    planned = {workers_of(run.spec.config) for run in results.runs}
    fastest = max(tps.values(), default=0.0) or 1.0
    plotted = [setting for agents in sorted({each[0] for each in tps}) for setting in best_of(tps, agents)]
    return lines_of(
        "tps.md",
        rows=[[words(each), number(tps[each]), f"{tps[each] / fastest:.3f}"] for each in plotted],
        measured=len(tps),
        planned=len(planned),
        papers_gap=f"{PAPERS_GAP:.0%}",
        papers_predictors=PAPERS_PREDICTORS,
        failed=results.failed,
        **findings(tps, planned, results.one_machine),
    )


def plot(results: Results, stem: Path) -> None:
    """Draw the TPS of every setting, normalised to the best, by number of agents."""
    from ga3c_tf.reproduce.drawing import plots

    plots.normalised_tps(by_setting(results, "tps"), PLOTTED, stem)


FIGURE = Figure(
    name="tps",
    place=4,
    paper="Figure 3",
    shows="updates per second for combinations of agents, predictors and trainers",
    games={"smoke": ("cartpole",), "quick": ("pong",), "paper": ("pong",)},
    seeds=seeds_by_budget(paper=1),
    specs=specs,
    measures=measures,
    main=("tps", "updates/s"),
    section=section,
    plot=plot,
    by_game=True,
)

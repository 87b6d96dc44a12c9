"""Figure 3: model updates per second for combinations of agents, predictors and trainers."""

from __future__ import annotations

from pathlib import Path

from reproduce.figures.figure import Figure, Measure, Results, seeds_by_budget, smoke_spec
from reproduce.measures.text import number, table
from reproduce.measures.verdicts import FAILS, HOLDS, TIE, UNKNOWN, Finding
from reproduce.runs.run import Run
from reproduce.runs.specs import RunSpec, run_spec, workers_of

AGENTS = {"quick": (8, 16, 32, 64), "paper": (16, 32, 64, 128)}
THREADS = {"quick": (1, 2, 4), "paper": (1, 2, 4, 8, 16)}
WARM_UP_S, MEASURED_S = {"quick": 15.0, "paper": 60.0}, {"quick": 30.0, "paper": 16 * 60.0}
MINUTES = {budget: (WARM_UP_S[budget] + MEASURED_S[budget]) / 60 for budget in WARM_UP_S}
WARM_UP_OF: dict[float | None, float] = {MINUTES[budget]: WARM_UP_S[budget] for budget in MINUTES}
PLOTTED = 3
"""Settings that the paper plots for each number of agents."""
PAPERS_GAP = 0.14


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Every combination; `queues` is made of the same runs."""
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
    """Seconds of the run that are left out."""
    return WARM_UP_OF.get(run.spec.config.minutes, 0.0)


def measures(run: Run) -> list[Measure]:
    """Updates per second, and agent steps per second beside them."""
    steady = run.steady(warm_up_s(run))
    minimum = run.spec.config.min_training_batch
    protocol = f"over the last {steady['seconds']:.0f} s, minimum batch {minimum}"
    return [
        Measure("tps", steady["tps"], "updates/s", protocol),
        Measure("pps", steady["pps"], "predictions/s", protocol),
    ]


def by_setting(results: Results, metric: str) -> dict[tuple[int, int, int], float]:
    """The mean over seeds of this number for every N_A, N_P, N_T that has one."""
    found: dict[tuple[int, int, int], list[float]] = {}
    for run in results.runs:
        value = results.value(run, metric)
        if value is not None:
            found.setdefault(workers_of(run.spec.config), []).append(value)
    return {setting: sum(values) / len(values) for setting, values in found.items()}


def best_of(tps: dict[tuple[int, int, int], float], agents: int) -> list[tuple[int, int, int]]:
    """The settings with so many agents that the paper would plot: the fastest three, fastest first."""
    return sorted((each for each in tps if each[0] == agents), key=lambda each: -tps[each])[:PLOTTED]


def words(setting: tuple[int, int, int]) -> str:
    """Such as '32/2/2'."""
    return "/".join(map(str, setting))


def section(results: Results) -> list[str]:
    """The fastest three for each N_A, and the findings."""
    tps = by_setting(results, "tps")
    fastest = max(tps.values(), default=0.0) or 1.0
    plotted = [setting for agents in sorted({each[0] for each in tps}) for setting in best_of(tps, agents)]
    rows = [[words(each), number(tps[each]), f"{tps[each] / fastest:.3f}"] for each in plotted]
    planned = {workers_of(run.spec.config) for run in results.runs}
    reasons = [f"- {run.spec.id}: {results.status(run)}" for run in results.runs if not run.finished and run.result]
    return [
        *table(["N_A/N_P/N_T", "TPS", "of the fastest"], rows),
        "",
        f"{len(tps)} of {len(planned)} settings measured; shown are the fastest three for each N_A. One short run a "
        "seed, whose speed changes while it runs: the order of neighbours means little (D29). The paper's "
        "curves could not be read; its text names 128/2/2 as the best. Its net with one more layer (7 % slower) is not "
        "among our networks and was not run. Without a GPU updates take turns, whatever N_T is (D24).",
        "",
        *(finding.line() for finding in findings(tps, planned, results.one_machine)),
        *reasons,
    ]


def findings(
    tps: dict[tuple[int, int, int], float], planned: set[tuple[int, int, int]], one_machine: bool
) -> list[Finding]:
    """The paper's findings, judged where all planned settings are there, from one machine."""
    whole = one_machine and len(tps) == len(planned) > PLOTTED
    most_agents, most_threads = max(each[0] for each in planned), max(each[1] for each in planned)
    shown = [each for agents in {each[0] for each in tps} for each in best_of(tps, agents)]
    tops = [tps[each] for each in shown]
    fastest = max(tops, default=0.0)
    gap = 1 - min(tops) / fastest if fastest else 0.0
    best = max(tps, key=lambda each: tps[each]) if tps else (0, 0, 0)
    lead = _lead(tps, most_agents)
    return [
        Finding(
            "most agents are best (the paper's best: 128/2/2, of 16 to 128 agents)",
            (HOLDS if lead > 0 else FAILS) if whole and abs(lead) > TIE else UNKNOWN,
            f"the fastest setting with the largest N_A against the fastest of all others; {TIE:.0%} may be noise",
            f"the fastest {words(best)}; {most_agents} agents against fewer {lead:+.1%}" if tps else "nothing measured",
        ),
        Finding(
            "the best settings have at most 4 predictors",
            (HOLDS if all(each[1] <= 4 for each in shown) else FAILS) if whole and most_threads > 4 else UNKNOWN,
            "all plotted settings have N_P <= 4; needs runs with more than 4",
            f"the most that was tried is {most_threads}",
        ),
        Finding(
            f"the plotted settings lie within {PAPERS_GAP:.0%} of the best",
            (HOLDS if gap < PAPERS_GAP else FAILS) if whole and abs(gap - PAPERS_GAP) > TIE else UNKNOWN,
            f"the slowest of the fastest three of each N_A against the fastest of all; {TIE:.0%} may be noise",
            f"they lie within {gap:.1%}" if tops else "nothing measured",
        ),
    ]


def _lead(tps: dict[tuple[int, int, int], float], agents: int) -> float:
    """By which part the fastest setting with so many agents is faster than the fastest of all others."""
    own, others = ([value for each, value in tps.items() if (each[0] == agents) is most] for most in (True, False))
    return max(own) / max(others) - 1 if own and others else 0.0


def plot(results: Results, stem: Path) -> None:
    """TPS of every setting, normalised to the best, by number of agents."""
    from reproduce.drawing import plots

    plots.normalised_tps(by_setting(results, "tps"), PLOTTED, stem)


FIGURE = Figure(
    name="tps",
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

"""Table 2 and slide 37: predictions per second of GA3C and of A3C on the CPU, for networks of growing size."""

from __future__ import annotations

from pathlib import Path

from reproduce.figures.figure import Figure, Measure, Results, seeds_by_budget, smoke_spec
from reproduce.measures.text import number, spread, table
from reproduce.measures.verdicts import UNKNOWN, Finding, grows
from reproduce.runs.run import Run
from reproduce.runs.specs import SYSTEMS, RunSpec, run_spec

NETWORKS = {
    "small": "small",
    "large-4": "large stride 4",
    "large-3": "large stride 3",
    "large-2": "large stride 2",
    "large-1": "large stride 1",
}
AGENTS = {
    "quick": {"ga3c": 32, "a3c": 4, "a2c": 32},  # A3C: two replicas of the network for each of 2 cores
    "paper": {"ga3c": 128, "a3c": 16, "a2c": 128},
}
MINUTES = {"quick": 2.0, "paper": 30.0}
WARM_UP_SHARE = 0.25


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Every network with every system, the systems of one network after another."""
    if budget == "smoke":
        return [smoke_spec(game, seed, system).called("mlp") for system in ("ga3c", "a3c", "a2c")]
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
            minutes=MINUTES[budget],
            log_seconds=5.0,
            checkpoint_minutes=60.0,
        ).called(words)
        for network, words in NETWORKS.items()
        for system, agents in AGENTS[budget].items()
    ]


def measures(run: Run) -> list[Measure]:
    """True agent steps per second after the warm-up."""
    warm_up = WARM_UP_SHARE * 3600 * run.hours
    steady = run.steady(warm_up)
    protocol = f"agent steps per second over the last {steady['seconds']:.0f} s, {run.spec.config.num_agents} agents"
    if run.spec.system == "ga3c":
        protocol += f", minimum batch {run.spec.config.min_training_batch}"
    return [Measure("pps", steady["pps"], "predictions/s", protocol)]


def networks(results: Results) -> list[str]:
    """Returns the networks in words, from the smallest to the largest."""
    return list(dict.fromkeys(word for run in results.runs for word in run.spec.label))


def runs_of(results: Results, network: str, system: str) -> list[Run]:
    """The runs with this network and system."""
    return [run for run in results.runs if run.spec.system == system and run.spec.label == (network,)]


def speed_ups(results: Results, network: str, other: str) -> list[float]:
    """PPS of GA3C over that of the other system, seed by seed, on the same machine: A3C never uses its GPU."""
    ratios = []
    for ours in runs_of(results, network, "ga3c"):
        for theirs in runs_of(results, network, other):
            pps, others = results.value(ours, "pps"), results.value(theirs, "pps")
            if pps and others and ours.spec.seed == theirs.spec.seed and ours.processor == theirs.processor:
                ratios.append(pps / others)
    return ratios


def section(results: Results) -> list[str]:
    """Speeds, ratios beside the paper's, and the finding."""
    rows, means, papers_ratios = [], [], []
    for network in networks(results):
        paper = results.papers("pps", game=results.runs[0].spec.game, metric=f"speed-up, {network}")
        ratios = {other: speed_ups(results, network, other) for other in ("a3c", "a2c")}
        speeds = [spread(results.values("pps", runs_of(results, network, system))) for system in ("ga3c", "a3c", "a2c")]
        papers_ratios.append(paper.value if paper else None)
        means.append(sum(ratios["a3c"]) / len(ratios["a3c"]) if ratios["a3c"] else None)
        rows.append([network, *speeds, *(spread(ratios[other]) for other in ratios), number(papers_ratios[-1])])
    header = ["network", "GA3C", "A3C", "A2C", "GA3C / A3C", "GA3C / A2C", "GA3C / A3C (paper, system I)"]
    finished = [run for run in results.runs if run.finished]
    where = "a GPU" if any(run.on_gpu for run in finished) else "the CPU, like everything else of the run"
    ours = f"Our GA3C ran on {where}; the paper's" if finished else "The paper's ran"
    on_gpu = bool(finished) and all(run.on_gpu for run in finished if run.spec.system == "ga3c")
    finding = Finding(
        "the speed-up over A3C grows with the network",
        grows(means) if on_gpu else UNKNOWN,
        "each network's ratio at least that of the one before less 5 %, the last more than 5 % above the first; it "
        "takes GA3C on a GPU, as in the paper",
        f"ratios {', '.join(number(mean) for mean in means)}; the paper's {', '.join(map(number, papers_ratios))}",
    )
    return [
        *table(header, rows),
        "",
        f"Predictions (agent steps) per second, true counts. {ours} on a GPU (system I: "
        "2x Xeon E5-2640v3, Titan X). The speeds of the two are not compared. The absolute numbers of the final "
        "Table 2 could not be read; these are of the first submission (all its numbers: [paper/](paper/pps.csv)):",
        "",
        *_first_submission(results),
        "",
        _conditions(finished),
        "",
        finding.line(),
        *(f"- {run.spec.id}: {results.status(run)}" for run in results.runs if not run.finished and run.result),
    ]


def _conditions(runs: list[Run]) -> str:
    """What the systems' speeds were reached with: agents, states of an update, and how busy the cores were."""
    parts = []
    for system, name in SYSTEMS.items():
        own = [run for run in runs if run.spec.system == system]
        busy = [100 * share for run in own if (share := run.result.get("cpu_utilization")) is not None]
        if busy:
            agents = " or ".join(str(each) for each in sorted({run.spec.config.num_agents for run in own}))
            states = [run.steady(0.0)["training_batch"] for run in own]
            parts.append(f"{name}: {agents} agents, {_range(states)} states an update, cores {_range(busy)} % busy")
    return (
        f"The systems differ in more than their architecture. {'; '.join(parts)}. A larger update costs less a state; "
        "what leaves cores idle could be faster."
        if parts
        else ""
    )


def _range(values: list[float]) -> str:
    return " to ".join(dict.fromkeys(f"{limit(values):.0f}" for limit in (min, max)))


def _first_submission(results: Results) -> list[str]:
    """The speeds that the paper's first version printed."""
    rows = []
    for system in ("I", "II", "III"):
        for size in ("small", "large"):
            found = [
                results.papers("pps", method=method, metric=f"pps, {size} network, system {system}")
                for method in ("A3C", "GA3C")
            ]
            a3c, ga3c = (record.value if record else None for record in found)
            rows.append([system, size, number(a3c), number(ga3c), number(ga3c / a3c if a3c and ga3c else None)])
    return table(["system (paper)", "network", "A3C", "GA3C", "GA3C / A3C"], rows)


def plot(results: Results, stem: Path) -> None:
    """Bars on a log axis, the speed-up above each pair; the paper's ratio beside ours."""
    from reproduce.drawing import plots

    groups = []
    for network in networks(results):
        paper = results.papers("pps", game=results.runs[0].spec.game, metric=f"speed-up, {network}")
        speeds = {system: results.values("pps", runs_of(results, network, system)) for system in ("a3c", "a2c", "ga3c")}
        groups.append((network, speeds, speed_ups(results, network, "a3c"), paper.value if paper else None))
    plots.speed_bars(groups, stem)


FIGURE = Figure(
    name="pps",
    paper="Table 2, slide 37",
    shows="predictions per second of GA3C and A3C, and of our A2C, for five networks, and the speed-ups",
    games={"smoke": ("cartpole",), "quick": ("pong",), "paper": ("pong",)},
    seeds=seeds_by_budget(),
    specs=specs,
    measures=measures,
    main=("pps", "predictions/s"),
    section=section,
    plot=plot,
    by_game=True,
)

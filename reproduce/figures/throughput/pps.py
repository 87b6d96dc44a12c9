"""Table 2 and slide 37: predictions per second of GA3C and of A3C on a CPU, for networks of growing size."""

from __future__ import annotations

from pathlib import Path

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures.figure import Figure, Measure, fair_to_a3c, seeds_by_budget, smoke_spec
from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.measures.effects import growth, paired_ratio
from ga3c_tf.reproduce.measures.judging import finding_of, holm, judged_together, open_level
from ga3c_tf.reproduce.measures.text import lines_of, mean_ci, number
from ga3c_tf.reproduce.measures.verdicts import NEEDS_GPU, RUNS_MISSING, Claim, Finding
from ga3c_tf.reproduce.measures.wording import described_ratio
from ga3c_tf.reproduce.runs.run import RecordedRun, made_together, make_a_pair
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
        return [smoke_spec(game, seed, system).called("mlp") for system in ("ga3c", "a3c", "a2c")]
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


def networks(results: Results) -> list[str]:
    """Return the names of the networks in words, from the smallest to the largest."""
    return list(dict.fromkeys(word for run in results.runs for word in run.spec.label))


def runs_of(results: Results, network: str, system: str) -> list[RecordedRun]:
    """Return the runs with this network and system."""
    return [run for run in results.runs if run.spec.system == system and run.spec.label == (network,)]


def speed_ups(results: Results, network: str, other: str) -> dict[int, float]:
    """Return the PPS of GA3C divided by that of the other system, by seed.

    Two runs are compared only if they ran on the same machine, and their calibrations agree or they began
    within a minute. GA3C may use a GPU, A3C never does.
    """
    ratios = {}
    for run in runs_of(results, network, "ga3c"):
        for other_run in runs_of(results, network, other):
            pps = results.value(run, "pps")
            others = results.value(other_run, "pps")
            if pps and others and make_a_pair(run, other_run):
                ratios[run.spec.seed] = pps / others
    return ratios


def findings(results: Results) -> dict[str, Finding]:
    """Judge the paper's findings, once all runs have ended.

    Returns:
        'faster': whether GA3C is faster than A3C with every network; 'grows': whether the speed-up grows with
        the network, which needs GA3C on a GPU.
    """
    names = networks(results)
    ratios = {network: speed_ups(results, network, "a3c") for network in names}
    if len(names) < len(NETWORKS) or not all(ratios.values()):
        missing = Finding(RUNS_MISSING, "not every network has a ratio")
        return {"faster": missing, "grows": missing}
    effects = {
        network: paired_ratio(by_seed, dict.fromkeys(by_seed, 1.0)) for network, by_seed in ratios.items()
    }
    rise = growth(list(ratios.values()))
    *chances, of_rise = holm([*(effect.chance for effect in effects.values()), rise.chance])
    level = open_level([*chances, of_rise])
    faster = judged_together(effects, dict(zip(names, chances, strict=True)), level)
    on_gpu = all(run.on_gpu for run in results.runs if run.finished and run.spec.system == "ga3c")
    papers = ", ".join(number(papers_ratio(results, network)) for network in names)
    means = ", ".join(number(sum(by_seed.values()) / len(by_seed)) for by_seed in ratios.values())
    because = (
        f"ratios {means}; the paper's {papers}; from one network to the next {described_ratio(rise, of_rise)}"
    )
    grows = finding_of(rise, of_rise, level, because) if on_gpu else Finding(NEEDS_GPU, because)
    if not results.ended:
        faster = Finding(RUNS_MISSING, faster.because)
        grows = Finding(RUNS_MISSING if on_gpu else NEEDS_GPU, because)
    return {"faster": fair_to_a3c(faster, results.runs), "grows": grows}


def claims(results: Results) -> list[Claim]:
    """Return the paper's claims about the speed of GA3C relative to A3C."""
    by_claim = findings(results)
    every = [
        Claim(
            f"{with_or_without_gpu(results)}GA3C makes more predictions per second than A3C with every "
            "network",
            by_claim["faster"],
            "the ratio of runs of one seed on one machine; the network with the lowest ratio is shown",
        ),
        Claim(
            "the speed-up over A3C grows with the network",
            by_claim["grows"],
            "the slope of the ratio's logarithm over the five networks, as a mean over seeds; this needs "
            "GA3C on a GPU, as in the paper",
        ),
    ]
    if results.judges_gpu:
        return every
    return every[:1]


def with_or_without_gpu(results: Results) -> str:
    """Return the first words of a claim, which say whether a finished run used a GPU."""
    finished = [run for run in results.runs if run.finished]
    if not finished:
        return ""
    return "with a GPU, " if any(run.on_gpu for run in finished) else "without a GPU, "


def papers_ratio(results: Results, network: str) -> float | None:
    """Return the paper's speed-up over A3C with this network, or None."""
    paper = results.papers("pps", game=results.runs[0].spec.game, metric=f"speed-up, {network}")
    return paper.value if paper else None


def answer(results: Results) -> str:
    """Return the mean speed-ups over A3C by network; an empty text without any, or for several games."""
    ratios = [list(speed_ups(results, network, "a3c").values()) for network in networks(results)]
    means = [number(sum(by_seed) / len(by_seed)) for by_seed in ratios if by_seed]
    if not means or len({run.spec.game for run in results.runs}) > 1:
        return ""
    return f"GA3C / A3C with networks of growing size: {', '.join(means)}"


def details(results: Results) -> list[str]:
    """Return the speeds, and our speed-ups next to the paper's."""
    rows = []
    for network in networks(results):
        speeds = [results.values("pps", runs_of(results, network, system)) for system in AGENTS["quick"]]
        ratios = [list(speed_ups(results, network, other).values()) for other in ("a3c", "a2c")]
        rows.append([network, *map(mean_ci, speeds + ratios), number(papers_ratio(results, network))])
    finished = [run for run in results.runs if run.finished]
    return lines_of(
        "pps.md",
        rows=rows,
        finished=bool(finished),
        on_gpu=any(run.on_gpu for run in finished),
        judges_gpu=results.judges_gpu,
        first_submission=_first_submission(results),
        conditions=_conditions(finished),
        together=made_together(finished),
        short=results.budget == "gpu",
        failed=results.failed,
    )


def _conditions(runs: list[RecordedRun]) -> list[dict[str, str]]:
    """Return the conditions of each system's speed: agents, states per update and how busy cores were (%)."""
    conditions = []
    for system, name in SYSTEMS.items():
        system_runs = [run for run in runs if run.spec.system == system]
        shares = [run.result.get("cpu_utilization") for run in system_runs]
        busy = [100 * share for share in shares if share is not None]
        if busy:
            agents = sorted({run.spec.config.num_agents for run in system_runs})
            states = [run.steady(0.0)["training_batch"] for run in system_runs]
            counts = " or ".join(map(str, agents))
            conditions.append(
                {"system": name, "agents": counts, "states": _range(states), "busy": _range(busy)}
            )
    return conditions


def _range(values: list[float]) -> str:
    return " to ".join(dict.fromkeys(f"{limit(values):.0f}" for limit in (min, max)))


def _first_submission(results: Results) -> list[list[str]]:
    """Return the speeds in the paper's first version, by machine and network, as rows of a table."""
    rows = []
    for system in ("I", "II", "III"):
        for size in ("small", "large"):
            records = [
                results.papers("pps", method=method, metric=f"pps, {size} network, system {system}")
                for method in ("A3C", "GA3C")
            ]
            a3c, ga3c = (record.value if record else None for record in records)
            ratio = ga3c / a3c if a3c and ga3c else None
            rows.append([system, size, number(a3c), number(ga3c), number(ratio)])
    return rows


def plot(results: Results, stem: Path) -> None:
    """Draw the PPS as points on a log axis, with our speed-ups and the paper's in a panel above."""
    from ga3c_tf.reproduce.drawing import speed_plots

    groups = []
    for network in networks(results):
        speeds = {
            system: results.values("pps", runs_of(results, network, system))
            for system in ("a3c", "a2c", "ga3c")
        }
        ratios = list(speed_ups(results, network, "a3c").values())
        groups.append((network, speeds, ratios, papers_ratio(results, network)))
    speed_plots.speed_points(groups, stem)


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
    measures=measures,
    main=("pps", "predictions/s"),
    claims=claims,
    answer=answer,
    details=details,
    plot=plot,
    by_game=True,
)

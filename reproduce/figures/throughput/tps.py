"""Figure 3: model updates per second for combinations of agents, predictors and trainers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from ga3c_tf.reproduce.figures.figure import Figure, Measure, seeds_by_budget, smoke_spec
from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.measures.effects import Effect, equality, paired_ratio, pooled_effect
from ga3c_tf.reproduce.measures.judging import effect_verdict, holm, judged_together, open_level
from ga3c_tf.reproduce.measures.text import lines_of
from ga3c_tf.reproduce.measures.verdicts import (
    CHANCE,
    EQUAL,
    LEAST_SEEDS,
    MARGIN,
    NO_DIFFERENCE,
    NOT_TRIED,
    RUNS_MISSING,
    SEVERAL_MACHINES,
    Claim,
    Finding,
)
from ga3c_tf.reproduce.measures.wording import described_ratio
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
NOT_MORE = Finding(NOT_TRIED, f"no run has more than {PAPERS_PREDICTORS}")
NOTHING_MEASURED = Finding(RUNS_MISSING, "nothing measured")


class Setting(NamedTuple):
    """The settings that are varied."""

    agents: int
    predictors: int
    trainers: int
    scheduling: str


AGENTS_PLACE, PREDICTORS_PLACE = map(Setting._fields.index, ("agents", "predictors"))


class Conditions(NamedTuple):
    """Conditions of a run. Pairs of compared runs differ in one entry of the setting only."""

    setting: Setting
    seed: int
    machine: str


Rates = Mapping[Conditions, float]


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


def setting_of(run: RecordedRun) -> Setting:
    """Return the setting of a run."""
    return Setting(*workers_of(run.spec.config), run.spec.config.scheduling)


def by_setting(results: Results, metric: str) -> dict[Setting, float]:
    """Return the mean of a metric over seeds, for every setting that has a value."""
    return _by_setting(
        (setting_of(run), value) for run in results.runs if (value := results.value(run, metric)) is not None
    )


def _by_setting(values: Iterable[tuple[Setting, float]]) -> dict[Setting, float]:
    """Return the mean of the values of each setting."""
    lists: dict[Setting, list[float]] = {}
    for setting, value in values:
        lists.setdefault(setting, []).append(value)
    return {setting: _mean(numbers) for setting, numbers in lists.items()}


def by_scheduling(values: Mapping[Setting, float]) -> dict[str, dict[Setting, float]]:
    """Return the values of each kind of scheduling, by the title of its panels."""
    grouped: dict[str, dict[Setting, float]] = {}
    for setting, value in values.items():
        grouped.setdefault(f"{setting.scheduling} scheduling", {})[setting] = value
    return grouped


def rates(results: Results) -> dict[Conditions, float]:
    """Return the TPS of every run that has one."""
    return {
        Conditions(setting_of(run), run.spec.seed, run.machine): value
        for run in results.runs
        if (value := results.value(run, "tps"))
    }


def fastest(tps: Mapping[Setting, float], agents: int, scheduling: str) -> list[Setting]:
    """Return the settings the paper would plot for a number of agents: the fastest three, fastest first."""
    candidates = [setting for setting in tps if (setting.agents, setting.scheduling) == (agents, scheduling)]
    return sorted(candidates, key=lambda setting: -tps[setting])[:PLOTTED]


def findings(measured: Rates, planned: int) -> dict[str, Finding]:
    """Judge the paper's findings, once every run has been measured.

    Two numbers of workers are compared by the ratio of the TPS of runs that differ in nothing else.

    Args:
        measured: TPS of each run that has been measured.
        planned: number of runs of the figure, measured or not.
    """
    if not measured:
        return dict.fromkeys(("most_agents", "few_predictors", "close_together"), NOTHING_MEASURED)
    *fewer, most = sorted({run.setting.agents for run in measured})
    more = sorted({run.setting.predictors for run in measured if run.setting.predictors > PAPERS_PREDICTORS})
    # 1. All comparisons, whose p values are corrected together.
    margin = math.log(1 + MARGIN)
    agents = {
        f"TPS with {most} relative to {other} agents": _ratio(measured, AGENTS_PLACE, most, other)
        for other in fewer
    }
    equal = {f"{name}, equal": equality(effect, margin) for name, effect in agents.items()}
    predictors = {
        f"TPS with {PAPERS_PREDICTORS} relative to {other} predictors": _ratio(
            measured, PREDICTORS_PLACE, PAPERS_PREDICTORS, other, math.exp(-margin)
        )
        for other in more
    }
    gap = {"TPS of the slowest three numbers of agents relative to the fastest": _gap(measured)}
    effects = {**agents, **predictors, **gap}
    tests = {**{name: effect.chance for name, effect in effects.items()}, **equal}
    chances = holm(list(tests.values()))
    corrected = dict(zip(tests, chances, strict=True))
    level = open_level(chances)
    # 2. Each finding is judged by its own comparisons.
    by_claim = {
        "most_agents": _most_agents(agents, corrected, level),
        "few_predictors": judged_together(predictors, corrected, level, "pair") if more else NOT_MORE,
        "close_together": judged_together(gap, corrected, level, "setting")._replace(test=None),
    }
    if len({(run.seed, run.machine) for run in measured}) > len({run.seed for run in measured}):
        by_claim["close_together"] = Finding(SEVERAL_MACHINES, by_claim["close_together"].because)
    if len(measured) < planned:
        return {name: Finding(RUNS_MISSING, finding.because) for name, finding in by_claim.items()}
    return by_claim


def claims(results: Results) -> list[Claim]:
    """Return the paper's claims about the numbers of workers."""
    by_claim = findings(rates(results), len(results.runs))
    where = "" if _on_gpu(results) else "without a GPU, "
    return [
        Claim(
            f"{where}TPS is highest with the most agents",
            by_claim["most_agents"],
            f"higher than with every smaller number of agents; '{EQUAL}' if this is so for one of them",
        ),
        Claim(
            f"{where}more than {PAPERS_PREDICTORS} predictors do not increase TPS",
            by_claim["few_predictors"],
            f"more predictors are less than {MARGIN:.0%} faster than {PAPERS_PREDICTORS}",
        ),
        Claim(
            f"{where}the number of agents matters little",
            by_claim["close_together"],
            f"the fastest three settings of the slowest number are less than {PAPERS_GAP:.0%} below those of "
            "the fastest, on average over the schedulings",
        ),
    ]


def _on_gpu(results: Results) -> bool:
    return all(run.on_gpu for run in results.runs if run.finished)


def _most_agents(agents: Mapping[str, Effect], corrected: Mapping[str, float], level: float) -> Finding:
    """Judge whether the most agents have the highest TPS, or differ from one of the others by less than
    `MARGIN`.

    Args:
        agents: effects on the TPS of the most agents relative to fewer, by name of the comparison.
        corrected: corrected p values by name, and those of equality by name with ', equal'.
        level: significance level that Holm's method leaves.
    """
    finding = judged_together(agents, corrected, level, "pair")
    if finding.verdict != NO_DIFFERENCE:
        return finding
    undecided = [name for name in agents if effect_verdict(agents[name], corrected[name]) == NO_DIFFERENCE]
    equal = [name for name in undecided if corrected[f"{name}, equal"] < CHANCE]
    if not equal:
        return finding
    least = min(equal, key=lambda name: agents[name].mean)
    because = described_ratio(agents[least], corrected[f"{least}, equal"], "pair")
    return Finding(EQUAL, f"{least}: {because}")


def _ratio(measured: Rates, place: int, first: int, second: int, limit: float = 1.0) -> Effect:
    """Compare the TPS at two numbers of one kind of worker, by pairs of runs that differ in nothing else.

    Args:
        measured: TPS of each run.
        place: index of the kind of worker in a `Setting`.
        first, second: the two numbers of workers.
        limit: ratio `first` / `second` that is tested against.
    """

    def having(count: int) -> dict[tuple, float]:
        return {
            (*run.setting[:place], *run.setting[place + 1 :], run.seed, run.machine): value
            for run, value in measured.items()
            if run.setting[place] == count
        }

    return paired_ratio(having(first), having(second), limit)


def _gap(measured: Rates) -> Effect:
    """Compare the slowest number of agents with the fastest one, by the fastest settings of each.

    The settings of each scheduling are compared by the logarithms of their TPS, and the differences are
    averaged over the schedulings.
    """
    tps = _by_setting((run.setting, value) for run, value in measured.items())
    schedulings = {setting.scheduling for setting in tps}
    logarithms = {
        agents: [
            [math.log(tps[setting]) for setting in fastest(tps, agents, scheduling)]
            for scheduling in schedulings
        ]
        for agents in {setting.agents for setting in tps}
    }
    means = {agents: _mean(map(_mean, groups)) for agents, groups in logarithms.items() if all(groups)}
    if not means:
        return pooled_effect([])
    slow, fast = (logarithms[choose(means, key=means.__getitem__)] for choose in (min, max))
    effect = pooled_effect(list(zip(slow, fast, strict=True)), limit=math.log(1 - PAPERS_GAP))
    return effect._replace(seeds=sum(map(len, slow))) if effect.seeds >= LEAST_SEEDS else effect


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


def details(results: Results) -> list[str]:
    """Return the table of the fastest three settings for each scheduling and number of agents."""
    tps = by_setting(results, "tps")
    rows = []
    for scheduling in dict.fromkeys(setting.scheduling for setting in tps):
        for agents in sorted({setting.agents for setting in tps}):
            best = fastest(tps, agents, scheduling)
            cells = [f"{tps[setting]:.1f} ({setting.predictors}/{setting.trainers})" for setting in best]
            rows.append([scheduling, str(agents), *cells, *["-"] * (PLOTTED - len(cells))])
    return lines_of(
        "tps.md",
        rows=rows,
        measured=len(tps),
        planned=len({setting_of(run) for run in results.runs}),
        failed=results.failed,
        on_gpu=_on_gpu(results),
    )


def plot(results: Results, stem: Path) -> None:
    """Draw the TPS of every setting as a share of the best, by number of agents, a panel per scheduling."""
    from ga3c_tf.reproduce.drawing import speed_plots

    speed_plots.normalized_tps(by_scheduling(by_setting(results, "tps")), PLOTTED, stem)


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
    measures=measures,
    main=("tps", "updates/s"),
    claims=claims,
    details=details,
    plot=plot,
    by_game=True,
)

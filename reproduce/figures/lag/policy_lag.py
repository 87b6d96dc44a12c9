"""Figure 7 and slide 40: what a minimum training batch does to the policy lag, to stability and to speed.

Every run lasts as long, so that settings are compared by the mean score over equal time; and as its curve says what had
been learned in `EQUAL_STEPS`, by that over equal steps too. Throughput counts in the first comparison only.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from ga3c_tf.reproduce.figures.figure import Figure, Measure, Results, grouped, smoke_spec
from ga3c_tf.reproduce.figures.lag.divergences import (
    BOOTSTRAP,
    KL,
    LAG,
    LAG_STATES,
    SPREAD,
    TOTAL_VARIATION,
    lag_measures,
)
from ga3c_tf.reproduce.measures.curves import mean_score
from ga3c_tf.reproduce.measures.effects import (
    Effect,
    described,
    described_ratio,
    effect_verdict,
    holm,
    paired_effect,
    paired_ratio,
    welch_effect,
)
from ga3c_tf.reproduce.measures.random_policy import RANDOM_SCORES
from ga3c_tf.reproduce.measures.records import NOT_RUN
from ga3c_tf.reproduce.measures.text import lines_of, mean_ci, number
from ga3c_tf.reproduce.measures.verdicts import (
    FEW_SEEDS,
    LEAST_SEEDS,
    RUNS_MISSING,
    SEVERAL_MACHINES,
    TOO_SHORT,
    Finding,
    collapsed,
    holds_if,
    share_lost,
)
from ga3c_tf.reproduce.runs.run import Run
from ga3c_tf.reproduce.runs.specs import RunSpec, run_spec

MINIMA = (0, 20, 40, 160)
RATES = {"normal": 1e-3, "large": 4e-3}
MINUTES = {"quick": 4.0, "paper": 24 * 60.0}
EQUAL_STEPS = 500_000
GAIN = 2.0
"""Points above its first score from where a run has learned."""
GOOD = ("minimum 20", "minimum 40")
"""The minimum batches that the paper recommends."""
LARGE_RATE_HARMS = {"pong": False, "breakout": True}
"""Whether the paper finds that runs of the game fail to learn at a large learning rate."""
SCORE = "mean score over equal time"
SCORE_AT_STEPS = "mean score over equal steps"
END = "score at the end"
LOST = "time lost"
COLLAPSED = "collapsed"
PPS = "pps"
COLUMNS = [
    ("policy lag, mean", LAG),
    ("in states", LAG_STATES),
    ("versions within a segment", SPREAD),
    ("lag of the bootstrap value", BOOTSTRAP),
    ("KL divergence", KL),
    ("total variation", TOTAL_VARIATION),
    ("PPS", PPS),
    ("mean score, equal time", SCORE),
    ("mean score, equal steps", SCORE_AT_STEPS),
    ("score at the end", END),
    ("time lost", LOST),
]
"""What the table shows of each way to make batches: heading and metric."""


NOTHING_LEARNED = {SCORE: 0.0, SCORE_AT_STEPS: 0.0, LOST: 1.0}
"""What counts for a run that diverged or never learned."""
OF_TIME = (SCORE, PPS)
"""What depends on the machine."""


class Label(NamedTuple):
    """What a run is called: how its batches are made, and its learning rate."""

    setting: str
    rate: str


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return five ways to make batches at two learning rates. A2C is the control: its policy lag is zero."""
    if budget == "smoke":
        return [
            smoke_spec(game, seed, min_training_batch=0).called("minimum 0", "normal"),
            smoke_spec(game, seed).called("minimum 20", "normal"),
            smoke_spec(game, seed, "a2c").called("A2C", "normal"),
        ]
    thirty_two: dict[str, Any] = {"num_agents": 32, "num_predictors": 2, "num_trainers": 2}
    systems: dict[str, tuple[str, dict[str, Any]]] = {
        **{f"minimum {size}": ("ga3c", {**thirty_two, "min_training_batch": size}) for size in MINIMA},
        "A2C": ("a2c", {"num_agents": 32}),
    }
    return [
        run_spec(
            game,
            seed,
            system,
            **settings,
            learning_rate=value,
            minutes=MINUTES[budget],
            log_seconds=5.0 if budget == "quick" else 60.0,
            checkpoint_minutes=30.0,
        ).called(setting, rate)
        for rate, value in RATES.items()
        for setting, (system, settings) in systems.items()
    ]


def seeds(budget: str, game: str) -> int:
    """Return five on MinAtar, where minutes are enough to learn; on Atari more than one would take days if quick."""
    return {"smoke": 1, "quick": 5 if game.startswith("minatar") else 1, "paper": 3}[budget]


def measures(run: Run) -> list[Measure]:
    """Return scores, instability, speed, and lag in updates, in states and as a divergence."""
    curve = run.curve
    rolling = run.spec.config.rolling_episodes
    settled = {name: column[curve["episodes"] >= rolling] for name, column in curve.items()}
    steps = settled["agent_steps"]
    early = steps <= EQUAL_STEPS
    reached = run.agent_steps >= EQUAL_STEPS
    protocol = f"rolling score (training, {rolling} episodes)"
    pps = run.steady(0.1 * 3600 * run.hours)["pps"]
    return [
        Measure(SCORE, mean_score(settled, "time_s"), "points", f"mean of the {protocol} over time", "no such score"),
        Measure(
            SCORE_AT_STEPS,
            mean_score(settled, high=EQUAL_STEPS) if reached else math.nan,
            "points",
            f"mean of the {protocol} over the first {EQUAL_STEPS:,} agent steps",
            "the run ended before",
        ),
        Measure(END, run.final_score, "points", f"mean of the {protocol} over the last tenth", "no episode ended"),
        Measure(
            LOST,
            share_lost(settled["rolling_score"][early], steps[early], GAIN) if reached else math.nan,
            "share",
            f"of the first {EQUAL_STEPS:,} agent steps",
            "nothing learned in that time",
        ),
        Measure(COLLAPSED, collapsed(settled["rolling_score"], GAIN), "0 or 1", protocol, "nothing learned"),
        *lag_measures(run),
        Measure(PPS, pps, "predictions/s", "after the first tenth"),
    ]


def groups(results: Results) -> dict[Label, list[Run]]:
    """Group the runs of one game by what they are called."""
    return grouped(results.runs, lambda run: Label(*run.spec.label))


def failed_to_learn(results: Results, runs: Iterable[Run]) -> int:
    """Count the runs that collapsed, diverged or never improved."""
    known = [run for run in runs if results.status(run) != NOT_RUN]
    return sum(run.diverged or (run.finished and results.value(run, COLLAPSED) != 0) for run in known)


def findings(results: Results, game: str, runs: dict[Label, list[Run]]) -> dict[str, Finding]:
    """Judge what the paper says of the minimum batch, for one game.

    Nothing is judged before all runs have ended: with some of the seeds a verdict could still turn.
    """

    def effect(metric: str, ours: tuple[str, ...], others: tuple[str, ...], rate: str = "normal") -> Effect:
        mine, theirs = (values(results, runs, metric, *settings, rate=rate) for settings in (ours, others))
        if metric in OF_TIME:
            return paired_ratio(mine, theirs) if metric == PPS else paired_effect(mine, theirs)
        return welch_effect(list(mine.values()), list(theirs.values()))

    none, most, control = ("minimum 0",), ("minimum 160",), ("A2C",)
    compared = {
        "lowers_lag": (LAG_STATES, effect(LAG_STATES, none, ("minimum 40",))),
        "raises_speed": (PPS, effect(PPS, GOOD, none)),
        "stabilises": (LOST, effect(LOST, none, GOOD, rate="large")),
    }
    for rate in RATES:
        compared |= {
            f"faster_{rate}": (SCORE, effect(SCORE, GOOD, none, rate)),
            f"better_steps_{rate}": (SCORE_AT_STEPS, effect(SCORE_AT_STEPS, GOOD, none, rate)),
            f"larger_is_slower_{rate}": (SCORE, effect(SCORE, GOOD, most, rate)),
            f"without_lag_{rate}": (SCORE_AT_STEPS, effect(SCORE_AT_STEPS, control, most, rate)),
        }
    corrected = holm([effect.chance for _, effect in compared.values()])
    found = {
        name: Finding(
            _verdict(results, metric, effect, chance),
            (described_ratio if metric == PPS else described)(effect, chance),
        )
        for (name, (metric, effect)), chance in zip(compared.items(), corrected, strict=True)
    }
    if game in LARGE_RATE_HARMS:
        found["large_rate"] = _large_rate(results, LARGE_RATE_HARMS[game], runs)
    return found


def _verdict(results: Results, metric: str, effect: Effect, corrected: float) -> str:
    if not results.ended:
        return RUNS_MISSING
    by_seed = grouped(results.runs, lambda run: run.spec.seed)
    if metric in OF_TIME and any(len({run.machine for run in each if run.finished}) > 1 for each in by_seed.values()):
        return SEVERAL_MACHINES
    return effect_verdict(effect, corrected)


def values(
    results: Results, runs: dict[Label, list[Run]], metric: str, *settings: str, rate: str = "normal"
) -> dict[int, float]:
    """Return one number for each seed that has all of the settings: their mean."""
    by_seed: dict[int, list[float]] = {}
    for setting in settings:
        for run in runs.get(Label(setting, rate), []):
            value = results.value(run, metric)
            if value is None and (run.finished or run.diverged):
                value = NOTHING_LEARNED.get(metric)
            if value is not None:
                by_seed.setdefault(run.spec.seed, []).append(value)
    return {seed: sum(each) / len(each) for seed, each in by_seed.items() if len(each) == len(settings)}


def _large_rate(results: Results, harms: bool, runs: dict[Label, list[Run]]) -> Finding:
    """Judge whether runs without a minimum batch fail to learn at a large learning rate, as the paper says of the game.

    Args:
        results: of the game.
        harms: whether the paper finds that they do.
        runs: as `groups` gives them.
    """
    done = [run for run in runs.get(Label("minimum 0", "large"), []) if run.finished or run.diverged]
    lost = failed_to_learn(results, done)
    because = f"{lost} of {len(done)}"
    if len(done) < LEAST_SEEDS:
        return Finding(FEW_SEEDS, because)
    # It says nothing about the learning rate where the time is too short to learn at all.
    learned = [run for run in runs.get(Label("minimum 20", "normal"), []) if run.finished]
    if not learned:
        return Finding(RUNS_MISSING, because)
    if failed_to_learn(results, learned):
        return Finding(TOO_SHORT, because)
    return Finding(holds_if((lost > 0) == harms), because)


def section(results: Results) -> list[str]:
    """Return a table and the findings of one game."""
    game = results.runs[0].spec.game
    runs = groups(results)
    rows = []
    for label, each in runs.items():
        cells = [
            mean_ci(list(values(results, {label: each}, metric, label.setting, rate=label.rate).values()))
            for _, metric in COLUMNS
        ]
        reasons = Counter(results.status(run) for run in each if not run.finished)
        ended = sum(run.finished or run.diverged for run in each)
        rows.append([*label, *cells, f"{failed_to_learn(results, each)} of {ended}", _counted(reasons)])
    return lines_of(
        "policy-lag.md",
        columns=[name for name, _ in COLUMNS],
        rows=rows,
        rates=", ".join(f"{name} {value:g}" for name, value in RATES.items()),
        game=game,
        harms=LARGE_RATE_HARMS.get(game),
        equal_steps=f"{EQUAL_STEPS:,}",
        findings=findings(results, game, runs),
        gain=number(GAIN),
    )


def _counted(reasons: Counter[str]) -> str:
    """Write reasons as '4 not run'."""
    return "; ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))


def plot(results: Results, stem: Path) -> None:
    """Draw curves at both learning rates, and the distribution of the measured lag beside them."""
    from ga3c_tf.reproduce.drawing import lag_plots

    rates: dict[str, dict[str, list[Run]]] = {}
    for label, runs in groups(results).items():
        rates.setdefault(f"{label.rate} learning rate", {})[label.setting] = [run for run in runs if run.finished]
    lag_plots.lag_picture(rates, RANDOM_SCORES.get(results.runs[0].spec.game), stem)


FIGURE = Figure(
    name="policy-lag",
    place=9,
    paper="Figure 7, slide 40",
    shows="learning curves without and with a minimum training batch, the measured lag beside them",
    claim="a minimum batch of 20 to 40 is more stable and generally faster, a larger one slower",
    games={
        "smoke": ("cartpole",),
        "quick": ("minatar_breakout",),
        "paper": ("pong", "breakout"),
    },
    seeds=seeds,
    specs=specs,
    measures=measures,
    main=(SCORE, "points"),
    section=section,
    plot=plot,
    by_game=True,
)

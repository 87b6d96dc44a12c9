"""Figure 7 and slide 40: what a minimum training batch does to the policy lag, to stability and to speed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from ga3c_tf.reproduce.figures.figure import Figure, Measure, Results, grouped, smoke_spec
from ga3c_tf.reproduce.measures.records import NOT_RUN
from ga3c_tf.reproduce.measures.text import compared, lines_of, mean_ci
from ga3c_tf.reproduce.measures.verdicts import (
    FEW_SEEDS,
    LEAST_SEEDS,
    RUNS_MISSING,
    TOO_SHORT,
    Finding,
    chance_rise,
    collapsed,
    holds_if,
    largest_drop,
)
from ga3c_tf.reproduce.runs.run import Run
from ga3c_tf.reproduce.runs.specs import RunSpec, run_spec

MINIMA = (0, 20, 40, 160)
RATES = {"normal": 1e-3, "large": 4e-3}
MINUTES = {"quick": 12.0, "paper": 24 * 60.0}
LONG_QUEUE: dict[str, Any] = {
    "num_agents": 128,
    "num_predictors": 4,
    "num_trainers": 1,
    "min_training_batch": 0,
    "max_training_queue": 2000,
}
GOOD = ("minimum 20", "minimum 40")
"""The minimum batches that the paper recommends."""
LARGE_RATE_HARMS = {"pong": False, "breakout": True}
"""Whether the paper finds that runs of the game fail to learn at a large learning rate."""
SCORE = "score at the end"
DROP = "largest drop"
COLLAPSED = "collapsed"
LAG = "policy lag, mean"
LAG_P95 = "policy lag, 95th percentile"
LAG_STATES = "policy lag in states"
PPS = "pps"
COLUMNS = [
    ("policy lag, mean", LAG),
    ("95 %", LAG_P95),
    ("in states", LAG_STATES),
    ("PPS", PPS),
    ("score at the end", SCORE),
    ("largest drop", DROP),
]
"""What the table shows of each way to make batches: heading and metric."""


class Label(NamedTuple):
    """What a run is called: how its batches are made, and its learning rate."""

    setting: str
    rate: str


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return six ways to make batches at two learning rates. A2C is the control: its policy lag is zero."""
    if budget == "smoke":
        return [
            smoke_spec(game, seed, min_training_batch=0).called("minimum 0", "normal"),
            smoke_spec(game, seed).called("minimum 20", "normal"),
            smoke_spec(game, seed, "a2c").called("A2C", "normal"),
        ]
    thirty_two: dict[str, Any] = {"num_agents": 32, "num_predictors": 2, "num_trainers": 2}
    systems: dict[str, tuple[str, dict[str, Any]]] = {
        **{f"minimum {size}": ("ga3c", {**thirty_two, "min_training_batch": size}) for size in MINIMA},
        "long queue": ("ga3c", LONG_QUEUE),
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
    """Return score, instability, speed, and lag in updates and in the states that those train on."""
    curve = run.curve
    rolling = run.spec.config.rolling_episodes
    kept = curve["episodes"] >= rolling
    kept |= not kept.any()  # a run with fewer has only means of fewer
    settled, episodes = (curve[name][kept].tolist() for name in ("rolling_score", "episodes"))
    chance = chance_rise(settled, episodes, rolling)
    steady = run.steady(0.1 * 3600 * run.hours)
    protocol = f"rolling score (training, {rolling} episodes)"
    flat = "the rolling score never improved on its first value by more than chance does"
    lag = "mean over the rows of metrics.csv after the first tenth"
    states = steady["policy_lag_mean"] * steady["training_batch"]
    return [
        Measure(SCORE, run.final_score, "points", f"mean of the {protocol} over the last tenth", "no episode ended"),
        Measure(DROP, largest_drop(settled, chance), "share", protocol, flat),
        Measure(COLLAPSED, collapsed(settled, chance), "0 or 1", protocol, flat),
        Measure(LAG, steady["policy_lag_mean"], "updates", f"{lag}, of each row's mean", "no update"),
        Measure(LAG_P95, steady["policy_lag_p95"], "updates", f"{lag}, of each row's percentile", "no update"),
        Measure(LAG_STATES, states, "states", f"{lag}: of the lag times of the batch", "no update"),
        Measure(PPS, steady["pps"], "predictions/s", "after the first tenth"),
    ]


def groups(results: Results) -> dict[Label, list[Run]]:
    """Group the runs of one game by what they are called."""
    return grouped(results.runs, lambda run: Label(*run.spec.label))


def failed_to_learn(results: Results, runs: Iterable[Run]) -> int:
    """Count the runs that collapsed, diverged or never improved."""
    known = [run for run in runs if results.status(run) != NOT_RUN]
    return sum(run.diverged or (run.finished and results.value(run, COLLAPSED) != 0) for run in known)


def findings(results: Results, game: str, runs: dict[Label, list[Run]]) -> dict[str, Finding]:
    """Judge what the paper says of the minimum batch, for one game."""
    lags = [values(results, runs, LAG, setting) for setting in ("minimum 0", "minimum 40")]
    drops = [values(results, runs, DROP, *settings, rate="large") for settings in (("minimum 0",), GOOD)]
    scores = {setting: values(results, runs, SCORE, setting) for setting in ("minimum 0", "minimum 160")}
    good = values(results, runs, SCORE, *GOOD)
    found = {
        "lowers_lag": compared(*lags),
        "stabilises": compared(*drops),
        "faster": compared(good, scores["minimum 0"]),
        "larger_is_slower": compared(good, scores["minimum 160"]),
    }
    if game in LARGE_RATE_HARMS:
        found["large_rate"] = _large_rate(results, LARGE_RATE_HARMS[game], runs)
    return found


def values(
    results: Results, runs: dict[Label, list[Run]], metric: str, *settings: str, rate: str = "normal"
) -> list[float]:
    """Return one number for each seed that has all of the settings: their mean."""
    by_seed: dict[int, list[float]] = {}
    for setting in settings:
        for run in runs.get(Label(setting, rate), []):
            value = results.value(run, metric)
            if metric == DROP and value is None and (run.finished or run.diverged):
                value = 1.0  # nothing learnt, or nothing left of it
            if value is not None:
                by_seed.setdefault(run.spec.seed, []).append(value)
    return [sum(each) / len(each) for each in by_seed.values() if len(each) == len(settings)]


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
    learnt = [run for run in runs.get(Label("minimum 20", "normal"), []) if run.finished]
    if not learnt:
        return Finding(RUNS_MISSING, because)
    if failed_to_learn(results, learnt):
        return Finding(TOO_SHORT, because)
    return Finding(holds_if((lost > 0) == harms), because)


def section(results: Results) -> list[str]:
    """Return a table and the findings of one game."""
    game = results.runs[0].spec.game
    runs = groups(results)
    rows = []
    for label, each in runs.items():
        cells = [mean_ci(results.values(metric, each)) for _, metric in COLUMNS]
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
        **findings(results, game, runs),
    )


def _counted(reasons: Counter[str]) -> str:
    """Write reasons as '4 not run'."""
    return "; ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))


def plot(results: Results, stem: Path) -> None:
    """Draw curves at both learning rates, and the distribution of the measured lag beside them."""
    from ga3c_tf.reproduce.drawing import plots

    rates: dict[str, dict[str, list[Run]]] = {}
    for label, runs in groups(results).items():
        rates.setdefault(f"{label.rate} learning rate", {})[label.setting] = [run for run in runs if run.finished]
    plots.lag_picture(rates, stem)


FIGURE = Figure(
    name="policy-lag",
    place=8,
    paper="Figure 7, slide 40",
    shows="learning curves without and with a minimum training batch, the measured lag beside them",
    games={
        "smoke": ("cartpole",),
        "quick": ("minatar_breakout", "minatar_asterix", "pong", "breakout"),
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

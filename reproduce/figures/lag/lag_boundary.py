"""How much policy lag learning tolerates, by learning rate and batch size, for two optimizers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from ga3c_tf.reproduce.figures.figure import Figure, Measure, smoke_spec
from ga3c_tf.reproduce.figures.lag.tolerance import (
    ADAPTIVE,
    AGENTS,
    AUTHORS,
    GAIN,
    HALFWAY,
    LAGS,
    OCTAVES,
    RATES,
    Cell,
    area,
    judged,
    shares,
)
from ga3c_tf.reproduce.figures.results import Results
from ga3c_tf.reproduce.measures.curves import mean_score, score_at_start
from ga3c_tf.reproduce.measures.text import lines_of, mean_ci, number
from ga3c_tf.reproduce.measures.verdicts import (
    FAILS,
    FEW_SEEDS,
    HOLDS,
    LEAST_SEEDS,
    NO_DIFFERENCE,
    RUNS_MISSING,
    TOO_SHORT,
    Claim,
    Finding,
)
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import RunSpec, run_spec
from ga3c_tf.trained.intervals import mean_interval

T_MAX = 5
STEPS = 200_000
SETTINGS: dict[str, dict[str, Any]] = {
    AUTHORS: {},
    ADAPTIVE: {"loss_reduction": "mean", "rmsprop_epsilon": 1e-5},
}
EXTENDED = "minatar_breakout"
"""The game that got more seeds, because the three shifts were undecided."""
SEEDS = 5
"""Number of seeds after which the findings were judged for the first time."""
MORE_SEEDS = 10
"""Number of seeds of `EXTENDED` at `quick`, which the three shifts use."""
SCORE = "mean score of the run"
START = "score at the start"
DELAY = 16
"""Lag in batches at which BA3C's claim is judged: the first of `LAGS` above ten."""
KEPT = 0.5
"""Learning counts as stopped if it gains less than this share of the gain without lag."""
LEAST_ROWS = 3
"""Number of rows of the table that must have learned without lag before a claim about all is supported."""
CONFIDENCE = 0.99
"""Confidence of the finding about `DELAY`.

Its error of 1 % is within the quarter of 5 % that Holm's method leaves for this finding.
"""


def specs(budget: str, game: str, seed: int) -> list[RunSpec]:
    """Return a run for each optimizer, learning rate, batch size and lag."""
    if budget == "smoke":
        return [
            smoke_spec(game, seed, "a2c", num_agents=agents, lag=1).called(AUTHORS, "0.001", str(agents), "1")
            for agents in (2, 4)
        ]
    return [
        run_spec(
            game,
            seed,
            "a2c",
            **settings,
            num_agents=agents,
            learning_rate=rate,
            lag=lag,
            steps=STEPS + lag * agents * T_MAX,  # in the first rounds, no batch is old enough
            log_seconds=10.0,
        ).called(optimizer, f"{rate:g}", str(agents), str(lag))
        for optimizer, settings in SETTINGS.items()
        for rate in RATES
        for agents in AGENTS
        for lag in LAGS
    ]


def seeds(budget: str, game: str) -> int:
    """Return the default number of seeds."""
    return {"smoke": 1, "quick": MORE_SEEDS if game == EXTENDED else SEEDS}[budget]


def measures(run: RecordedRun) -> list[Measure]:
    """Return the mean score from the first update on, and the score at the start."""
    config = run.spec.config
    protocol = f"mean of {config.rolling_episodes} episodes of training"
    score = mean_score(run.curve, low=config.lag * config.num_agents * T_MAX)
    start = score_at_start(run.curve, config.rolling_episodes)
    return [
        Measure(
            SCORE,
            score,
            "points",
            f"{protocol}, over the agent steps from the first update",
            "no episode ended",
        ),
        Measure(START, start, "points", f"{protocol}, of the first", "fewer episodes ended"),
    ]


def gains(results: Results) -> dict[Cell, dict[int, float]]:
    """Return the gain of each run, by cell and lag: its mean score minus its first, or 0 if it diverged."""
    by_cell: dict[Cell, dict[int, float]] = {}
    for run in results.runs:
        score, start = results.value(run, SCORE), results.value(run, START)
        gain = score - start if score is not None and start is not None else None
        if run.diverged:
            gain = 0.0
        if gain is not None:
            optimizer, rate, agents, lag = run.spec.label
            by_cell.setdefault(Cell(optimizer, float(rate), int(agents), run.spec.seed), {})[int(lag)] = gain
    return by_cell


def findings(results: Results) -> dict[str, Finding]:
    """Judge the three shifts of `QUESTIONS`, once all runs have ended."""
    by_claim = judged(gains(results), _again(results))
    if results.ended:
        return by_claim
    return {name: Finding(RUNS_MISSING, finding.because) for name, finding in by_claim.items()}


def _again(results: Results) -> bool:
    """Return whether the runs include seeds that were planned after a first judgement."""
    return results.runs[0].spec.game == EXTENDED and len({run.spec.seed for run in results.runs}) > SEEDS


def claims(results: Results) -> list[Claim]:
    """Return the predictions about the three shifts, and BA3C's claim."""
    by_claim = findings(results)
    small, large = (T_MAX * agents for agents in AGENTS)
    confidence = f"{100 * CONFIDENCE:g}"
    return [
        Claim(
            f"{AUTHORS}: a batch of {small} states tolerates more than twice the lag in updates of a batch "
            f"of {large} (four times, if the lag in states decides)",
            by_claim["states"],
        ),
        Claim(
            f"{ADAPTIVE}: a batch of {small} states tolerates less than twice the lag in updates of a batch "
            f"of {large} (as much, if the lag in updates decides)",
            by_claim["updates"],
        ),
        Claim(
            "a quarter of the learning rate tolerates more than twice the lag, "
            "on average over the two optimizers",
            by_claim["rate"],
        ),
        Claim(
            "more than ten batches of delay stop learning (BA3C, arXiv 1705.06936)",
            ten_batches(results),
            f"relative to the gain without lag, at a lag of {DELAY}, over the rows of the table that "
            f"learned; supported if all rows are below {KEPT:.0%}, not supported if any is above, by "
            f"simultaneous {confidence} % intervals",
        ),
    ]


def ten_batches(results: Results) -> Finding:
    """Judge whether more than ten batches of delay stop learning, with all settings that learn without lag.

    The claim is not supported if the gain at a lag of `DELAY` is significantly more than the share `KEPT` of
    the gain without lag for any setting. It is supported if the gain is significantly less for all settings,
    of which there must be at least `LEAST_ROWS`. The intervals of the settings are simultaneous, by
    Bonferroni's method. If the other findings got more seeds, only the first `SEEDS` count, because this one
    had been decided.
    """
    last = SEEDS if _again(results) else math.inf
    gain = {cell: by_lag for cell, by_lag in gains(results).items() if cell.seed <= last}
    ended = all(run.ended for run in results.runs if run.spec.seed <= last)
    by_cell: dict[tuple, list[tuple[float, float]]] = {}
    for cell in shares(gain):
        by_cell.setdefault(cell[:3], []).append((gain[cell][DELAY], gain[cell][0]))
    if not by_cell:
        if ended:
            return Finding(TOO_SHORT, "no setting learned")
        return Finding(RUNS_MISSING, "runs are missing")
    means = [np.mean(pairs, 0) for pairs in by_cell.values()]
    left = [delayed / without for delayed, without in means]
    because = f"{min(left):.2f} to {max(left):.2f} of the gain is left"
    if not ended:
        return Finding(RUNS_MISSING, because)
    if min(map(len, by_cell.values())) < LEAST_SEEDS:
        return Finding(FEW_SEEDS, because)
    confidence = 1 - (1 - CONFIDENCE) / len(by_cell)
    differences = [[delayed - KEPT * without for delayed, without in pairs] for pairs in by_cell.values()]
    intervals = [mean_interval(values, confidence) for values in differences]
    if any(low > 0 for low, _ in intervals):
        return Finding(FAILS, because)
    if all(high < 0 for _, high in intervals):
        return Finding(HOLDS if len(intervals) >= LEAST_ROWS else TOO_SHORT, because)
    return Finding(NO_DIFFERENCE, because)


def details(results: Results) -> list[str]:
    """Return the table of the gain at each lag, and of the mean share of the gain that is left."""
    gain = gains(results)
    parts = shares(gain)
    rows = []
    for optimizer in SETTINGS:
        for rate in RATES:
            for agents in AGENTS:
                alike = (optimizer, rate, agents)
                cells = [by_lag for cell, by_lag in gain.items() if cell[:3] == alike]
                means = [_mean([by_lag[lag] for by_lag in cells if lag in by_lag]) for lag in LAGS]
                left = [area(by_lag) / OCTAVES for cell, by_lag in parts.items() if cell[:3] == alike]
                rows.append([optimizer, number(rate), str(T_MAX * agents), *means, mean_ci(left)])
    return lines_of(
        "lag-boundary.md",
        lags=[f"lag {lag}" for lag in LAGS],
        rows=rows,
        steps=f"{STEPS:,}",
        first=LAGS[1],
        last=f"{LAGS[-1]:,}",
        halfway=number(HALFWAY),
        gain=number(GAIN),
        least_rows=LEAST_ROWS,
        again=_again(results),
        first_seeds=SEEDS,
    )


def _mean(values: list[float]) -> str:
    return f"{sum(values) / len(values):.2f} ({len(values)})" if values else "-"


def plot(results: Results, stem: Path) -> None:
    """Draw the share of the gain against learning rate times lag, in updates and in states."""
    from ga3c_tf.reproduce.drawing import lag_plots

    points: dict[str, dict[tuple[int, float], list[tuple[int, float]]]] = {name: {} for name in SETTINGS}
    for cell, by_lag in shares(gains(results)).items():
        of_cell = points[cell.optimizer].setdefault((T_MAX * cell.agents, cell.rate), [])
        of_cell += [(lag, share) for lag, share in by_lag.items() if lag]
    lag_plots.boundaries(points, KEPT, stem)


FIGURE = Figure(
    name="lag-boundary",
    place=15,
    paper="not in the paper",
    shows="the policy lag that learning tolerates, by learning rate, batch size and optimizer",
    headline="is the tolerance to policy lag determined by the lag in states or in updates?",
    games={"smoke": ("cartpole",), "quick": ("minatar_breakout",)},
    seeds=seeds,
    specs=specs,
    measures=measures,
    main=(SCORE, "points"),
    claims=claims,
    details=details,
    plot=plot,
    by_game=True,
)

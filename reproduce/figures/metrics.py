"""Numbers of a run that several figures share: scores of training and evaluation, and policy lag."""

from __future__ import annotations

import math

import numpy as np

from ga3c_tf.reproduce.figures.measurements import Measure, Row
from ga3c_tf.reproduce.measures.curves import mean_score, score_at_end, score_at_start
from ga3c_tf.reproduce.runs.run import RecordedRun

SCORE = "mean score of the run"
END = "score at the end"
START = "score at the start"
FINAL = "final rolling score"
BEST = "best rolling score"
EVALUATED = "score"
RANDOM = "score of the random policy"
LAG = "policy lag, mean"
LAG_STATES = "policy lag in states"
KL = "KL divergence"
TOTAL_VARIATION = "total variation"
SAMPLE_SIZE = "effective sample size"
CLIPPED = "share of ratios clipped"
FLOORED = "share of logarithms floored"
SPREAD = "versions within a segment"
BOOTSTRAP = "lag of the bootstrap value"
COLUMNS = {
    LAG: ("policy_lag_mean", "updates"),
    "policy lag, 95th percentile": ("policy_lag_p95", "updates"),
    KL: ("kl", "nats"),
    TOTAL_VARIATION: ("total_variation", "share"),
    SAMPLE_SIZE: ("effective_sample_size", "share"),
    CLIPPED: ("clipped", "share"),
    FLOORED: ("floored", "share"),
    SPREAD: ("version_spread", "updates"),
    BOOTSTRAP: ("bootstrap_lag", "updates"),
}
"""Column of metrics.csv and unit of each measure of lag."""


def score_of_run(run: RecordedRun, over: str = "over the agent steps", after: int = 0) -> list[Measure]:
    """Return the mean score over the agent steps of a run, of which the first `after` are left out."""
    return _score(run, SCORE, mean_score(run.curve, low=after), over)


def score_from_first_update(run: RecordedRun) -> list[Measure]:
    """Return the mean score over a run's agent steps, without the rounds before a batch is old enough."""
    config = run.spec.config
    before = config.lag * config.num_agents * config.t_max
    return score_of_run(run, "over the agent steps from the first update", before)


def final_score(
    run: RecordedRun, metric: str = END, over: str = "over the last tenth of the steps"
) -> list[Measure]:
    """Return the mean score over the last tenth of the agent steps."""
    return _score(run, metric, score_at_end(run.curve), over)


def first_score(run: RecordedRun) -> list[Measure]:
    """Return the first score over a full window of episodes."""
    value = score_at_start(run.curve, run.spec.config.rolling_episodes)
    return _score(run, START, value, "of the first", "fewer episodes ended")


def _score(
    run: RecordedRun, metric: str, value: float, over: str, why_not: str = "no episode ended"
) -> list[Measure]:
    protocol = f"mean of {run.spec.config.rolling_episodes} episodes of training, {over}"
    return [Measure(metric, value, "points", protocol, why_not)]


def rolling_scores(run: RecordedRun) -> list[Measure]:
    """Return the rolling score at the end and at its best."""
    window = run.spec.config.rolling_episodes
    rolling = run.curve["rolling_score"]
    best = np.max(rolling[run.curve["episodes"] >= window], initial=-math.inf)
    protocol = f"mean score of the last {window} episodes of training"
    final = float([math.nan, *rolling][-1])
    return [
        Measure(FINAL, final, "points", f"{protocol}, of all if fewer", "no episode ended"),
        Measure(
            BEST,
            float(best) if best > -math.inf else math.nan,
            "points",
            protocol,
            f"fewer than {window} episodes ended",
        ),
    ]


def evaluations(run: RecordedRun) -> list[Measure]:
    """Return mean scores of the evaluated checkpoint and the random policy, over as many whole episodes."""
    played = ((EVALUATED, "evaluation", None), (RANDOM, "random", "random"))
    return [
        Measure(
            metric,
            float(np.mean(result["scores"])),
            "points",
            result["protocol"],
            method=method,
            agent_steps=result["agent_steps"],
        )
        for metric, name, method in played
        if (result := run.result.get(name))
    ]


def lag_measures(run: RecordedRun) -> list[Measure]:
    """Return a run's policy lag and divergences. Not all corrections clip or floor anything."""
    steady = run.steady(0.1 * 3600 * run.hours)
    rows = "mean over the rows of metrics.csv after the first tenth"
    states = steady["policy_lag_mean"] * steady["training_batch"]
    values = [(name, steady[column], unit, rows) for name, (column, unit) in COLUMNS.items()]
    values.append((LAG_STATES, states, "states", f"{rows}: of the lag times of the batch"))
    measures = [Measure(*value, "not measured") for value in values]
    return [measure for measure in measures if measure.metric not in (CLIPPED, FLOORED) or measure.value >= 0]


OF_LAGGED_RUNS = (score_from_first_update, final_score, first_score, lag_measures)
"""The numbers of runs that are compared by their policy lag."""


def gain(row: Row) -> float:
    """Return the mean score of a run minus its first score; 0 if it diverged."""
    if row.run.diverged:
        return 0.0
    return row.values.get(SCORE, math.nan) - row.values.get(START, math.nan)

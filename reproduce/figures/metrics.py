"""Numbers of a run that several figures share: scores of training and evaluation, and policy lag."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ga3c_tf.reproduce.figures.measurements import Measure, Row
from ga3c_tf.reproduce.measures.curves import mean_score, score_at_end, score_at_start
from ga3c_tf.reproduce.runs.run import RecordedRun

SCORE = "mean score of the run"
END = "score at the end"
START = "score at the start"
FINAL = "final rolling score"
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
CHI_SQUARED = "chi squared"
M2 = "second moment of log-ratios"
K3 = "K3"
COLUMNS = {
    LAG: ("policy_lag_mean", "updates"),
    KL: ("kl", "nats"),
    TOTAL_VARIATION: ("total_variation", "share"),
    SAMPLE_SIZE: ("effective_sample_size", "share"),
    CLIPPED: ("clipped", "share"),
    FLOORED: ("floored", "share"),
    SPREAD: ("version_spread", "updates"),
    BOOTSTRAP: ("bootstrap_lag", "updates"),
    CHI_SQUARED: ("chi_squared", "share"),
    M2: ("m2", "share"),
    K3: ("k3", "nats"),
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


def final_score(run: RecordedRun) -> list[Measure]:
    """Return the mean score over the last tenth of the agent steps."""
    return _score(run, END, score_at_end(run.curve), "over the last tenth of the steps")


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
    """Return the rolling score at the end."""
    window = run.spec.config.rolling_episodes
    final = float([math.nan, *run.curve["rolling_score"]][-1])
    protocol = f"mean score of the last {window} episodes of training, of all if fewer"
    return [Measure(FINAL, final, "points", protocol, "no episode ended")]


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


def lag_measures(*names: str) -> Callable[[RecordedRun], list[Measure]]:
    """Return the function that measures the policy lag and divergences of a run.

    Args:
        names: `LAG_STATES` and names in `COLUMNS`. Not all corrections clip or floor anything.
    """
    rows = "mean over the rows of metrics.csv after the first tenth"

    def measured(run: RecordedRun) -> list[Measure]:
        steady = run.steady(0.1 * 3600 * run.hours)
        measures = []
        for name in names:
            if name == LAG_STATES:
                states = steady["policy_lag_mean"] * steady["training_batch"]
                words = f"{rows}: of the lag times of the batch"
                measures.append(Measure(name, states, "states", words, "not measured"))
                continue
            column, unit = COLUMNS[name]
            if name not in (CLIPPED, FLOORED) or steady[column] >= 0:
                measures.append(Measure(name, steady[column], unit, rows, "not measured"))
        return measures

    return measured


OF_LAGGED_RUNS = (score_from_first_update, final_score, first_score)
"""The scores of runs that are compared by their policy lag."""


def gain(row: Row) -> float:
    """Return the mean score of a run minus its first score; 0 if it diverged."""
    if row.run.diverged:
        return 0.0
    return row.values.get(SCORE, math.nan) - row.values.get(START, math.nan)

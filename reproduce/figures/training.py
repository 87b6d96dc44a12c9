"""Measures of training scores that several figures share."""

from __future__ import annotations

from ga3c_tf.reproduce.figures.figure import Measure
from ga3c_tf.reproduce.measures.curves import mean_score, score_at_end, score_at_start
from ga3c_tf.reproduce.runs.run import RecordedRun

SCORE = "mean score of the run"
END = "score at the end"
START = "score at the start"


def score_of_run(run: RecordedRun, over: str = "over the agent steps", after: int = 0) -> Measure:
    """Return the mean score over the agent steps of a run, of which the first `after` are left out."""
    return _measure(run, SCORE, mean_score(run.curve, low=after), over)


def final_score(
    run: RecordedRun, metric: str = END, over: str = "over the last tenth of the steps"
) -> Measure:
    """Return the mean score over the last tenth of the agent steps."""
    return _measure(run, metric, score_at_end(run.curve), over)


def first_score(run: RecordedRun) -> Measure:
    """Return the first score over a full window of episodes."""
    value = score_at_start(run.curve, run.spec.config.rolling_episodes)
    return _measure(run, START, value, "of the first", "fewer episodes ended")


def _measure(
    run: RecordedRun, metric: str, value: float, over: str, why_not: str = "no episode ended"
) -> Measure:
    protocol = f"mean of {run.spec.config.rolling_episodes} episodes of training, {over}"
    return Measure(metric, value, "points", protocol, why_not)

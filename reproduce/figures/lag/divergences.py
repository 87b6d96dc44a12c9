"""Measures of policy lag that several figures share: in updates, in states and as a divergence."""

from __future__ import annotations

import math

from ga3c_tf.reproduce.figures.figure import Measure
from ga3c_tf.reproduce.runs.run import RecordedRun

LAG = "policy lag, mean"
LAG_P95 = "policy lag, 95th percentile"
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
    LAG_P95: ("policy_lag_p95", "updates"),
    KL: ("kl", "nats"),
    TOTAL_VARIATION: ("total_variation", "share"),
    SAMPLE_SIZE: ("effective_sample_size", "share"),
    CLIPPED: ("clipped", "share"),
    FLOORED: ("floored", "share"),
    SPREAD: ("version_spread", "updates"),
    BOOTSTRAP: ("bootstrap_lag", "updates"),
}
"""Column of metrics.csv and unit of each measure."""
OPTIONAL = (CLIPPED, FLOORED)
"""Measures that a run may lack, because some corrections neither clip nor floor anything."""


def lag_measures(run: RecordedRun) -> list[Measure]:
    """Return a run's policy lag and divergences, without the measures that do not apply to its correction."""
    steady = run.steady(0.1 * 3600 * run.hours)
    rows = "mean over the rows of metrics.csv after the first tenth"
    measures = [
        Measure(name, steady[column], unit, rows, "not measured") for name, (column, unit) in COLUMNS.items()
    ]
    states = steady["policy_lag_mean"] * steady["training_batch"]
    measures.append(
        Measure(LAG_STATES, states, "states", f"{rows}: of the lag times of the batch", "not measured")
    )
    return [
        measure for measure in measures if measure.metric not in OPTIONAL or not math.isnan(measure.value)
    ]

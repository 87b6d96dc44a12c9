"""Rates of a run without the start of its sessions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ga3c_tf.runs.curve import Columns

AVERAGED = (
    "prediction_batch",
    "training_batch",
    "training_queue",
    "prediction_queue",
    "policy_lag_mean",
    "policy_lag_p95",
    "kl",
    "total_variation",
    "effective_sample_size",
    "clipped",
    "floored",
    "version_spread",
    "bootstrap_lag",
    "chi_squared",
    "k3",
    "m2",
    "masked",
)
"""Columns of metrics.csv with a meaningful mean."""


def steady_rates(metrics: Columns, starts: Sequence[float], after_s: float) -> dict[str, float]:
    """Return the rates and means that `RecordedRun.steady` describes.

    Args:
        metrics: the columns of metrics.csv.
        starts: seconds of training at the start of each session.
        after_s: seconds of each session that are left out.
    """
    times = metrics["time_s"]
    # 1. Find the rows of each session after its start.
    ends = [*starts[1:], math.inf]
    parts = [
        np.flatnonzero((times >= start + after_s) & (times <= end))
        for start, end in zip(starts, ends, strict=True)
    ]
    parts = [rows for rows in parts if len(rows) > 1]
    # 2. Count what happened between the first and the last row of each part.
    counted = ("time_s", "agent_steps", "updates")
    if parts:
        seconds, steps, updates = (
            sum(metrics[name][rows[-1]] - metrics[name][rows[0]] for rows in parts) for name in counted
        )
        # A row describes the time since the row before it, so a part's first row only marks its beginning.
        inside = np.concatenate([rows[1:] for rows in parts])
    else:
        seconds, steps, updates = (metrics[name][-1] for name in counted)
        inside = np.arange(len(times))
    # 3. Average the columns over these rows.
    means = {name: _mean(metrics[name][inside]) for name in AVERAGED}
    return {
        "seconds": float(seconds),
        "pps": float(steps / seconds),
        "tps": float(updates / seconds),
        **means,
    }


def _mean(values: np.ndarray) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")

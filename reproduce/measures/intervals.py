"""Confidence intervals of a mean."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import t as t_dist

from ga3c_tf.runs.stats import bootstrap_interval

FEW = 10
"""With fewer values a bootstrap interval is too narrow: for three values it is from the lowest to the highest."""


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Return an interval of the mean: Student's t for fewer than `FEW` values, else the percentile bootstrap.

    A single value has no interval: both ends are not-a-number.
    """
    if len(values) >= FEW:
        return bootstrap_interval(values, confidence)
    return student_interval(values, confidence)


def student_interval(values: Sequence[float] | np.ndarray, confidence: float = 0.95) -> tuple[float, float]:
    """Return Student's t interval of the mean; for a single value both ends are not-a-number."""
    if len(values) < 2:
        return math.nan, math.nan
    mean = float(np.mean(values))
    quantile = t_dist.ppf(0.5 + confidence / 2, len(values) - 1)
    reach = float(quantile * np.std(values, ddof=1) / math.sqrt(len(values)))
    return mean - reach, mean + reach

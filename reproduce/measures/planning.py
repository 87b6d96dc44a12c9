"""How many more runs would decide what is undecided."""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.stats import nct
from scipy.stats import t as t_dist

from ga3c_tf.reproduce.measures.verdicts import CHANCE

POWER = 0.8
MOST = 100.0
"""An estimate of more times the runs is not made."""


def times_the_runs(distance: float, error: float, freedom: float, findings: int) -> float:
    """Return how many times as many runs would decide a finding in `POWER` of repetitions, were the mean the true one.

    It is the power of the two-sided t test at a level of `CHANCE` divided by the number of findings, as in the first
    step of Holm's method. The degrees of freedom grow with the runs.

    Args:
        distance: from the mean to the limit that it is tested against.
        error: the standard error of the mean.
        freedom: the degrees of freedom of the test.
        findings: how many p values are corrected together.

    Returns:
        A number from 1 on; infinity for more than `MOST`, and where nothing varies.
    """
    if not (freedom > 0 and error > 0):
        return math.inf

    def power(times: float) -> float:
        more_freedom = (freedom + 1) * times - 1
        critical = t_dist.ppf(1 - CHANCE / findings / 2, more_freedom)
        return float(nct.sf(critical, more_freedom, abs(distance) / error * math.sqrt(times)))

    if power(MOST) < POWER:
        return math.inf
    return float(brentq(lambda times: power(times) - POWER, 1.0, MOST)) if power(1.0) < POWER else 1.0

"""Estimates how many runs would decide an undecided finding."""

from __future__ import annotations

import math
from typing import NamedTuple

from scipy.optimize import brentq
from scipy.stats import nct
from scipy.stats import t as t_dist

POWER = 0.8
MOST = 100.0
"""Largest multiple of the runs that is estimated."""


class OpenTest(NamedTuple):
    """A two-sided t test that has found no significant difference.

    Attributes:
        distance: mean minus the limit that it is tested against.
        error: standard error of the mean.
        freedom: degrees of freedom.
        level: p value below which the difference would be significant in a new experiment.
        seeds: number of seeds, if they include added ones; otherwise 0.
    """

    distance: float
    error: float
    freedom: float
    level: float
    seeds: int = 0

    def times_the_runs(self) -> float:
        """Return the multiple of the runs at which the test has a power of `POWER`, if the mean is the true
        one.

        The degrees of freedom are assumed to grow as in a paired test. They grow faster in other tests, which
        need slightly fewer runs.

        Returns:
            A number of at least 1; infinity if it would be more than `MOST`, or if the test has not-a-number.
        """
        if not self._power(MOST) >= POWER:
            return math.inf
        if self._power(1.0) >= POWER:
            return 1.0
        return float(brentq(lambda times: self._power(times) - POWER, 1.0, MOST))

    def _power(self, times: float) -> float:
        """Return the test's power with `times` as many runs: the share of repetitions with a difference."""
        freedom = (self.freedom + 1) * times - 1
        critical = t_dist.ppf(1 - self.level / 2, freedom)
        return float(nct.sf(critical, freedom, abs(self.distance) / self.error * math.sqrt(times)))

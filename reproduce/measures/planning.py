"""How many more runs would decide what is undecided."""

from __future__ import annotations

import math
from typing import NamedTuple

from scipy.optimize import brentq
from scipy.stats import nct
from scipy.stats import t as t_dist

POWER = 0.8
MOST = 100.0
"""An estimate of more times the runs is not made."""


class OpenTest(NamedTuple):
    """A two-sided t test that has found no significant difference.

    Attributes:
        distance: from the mean to the limit that it is tested against.
        error: the standard error of the mean.
        freedom: the degrees of freedom.
        level: the p value below which the difference would be significant.
    """

    distance: float
    error: float
    freedom: float
    level: float

    def times_the_runs(self) -> float:
        """Return how many times as many runs find a difference in `POWER` of repetitions, if the mean is the true one.

        The degrees of freedom are taken to grow as those of pairs, which is too slow for other tests: those need
        slightly fewer runs.

        Returns:
            A number from 1 on; infinity for more than `MOST`.
        """
        if self._power(MOST) < POWER:
            return math.inf
        if self._power(1.0) >= POWER:
            return 1.0
        return float(brentq(lambda times: self._power(times) - POWER, 1.0, MOST))

    def _power(self, times: float) -> float:
        """Return in how many repetitions a difference is found with so many times the runs."""
        freedom = (self.freedom + 1) * times - 1
        critical = t_dist.ppf(1 - self.level / 2, freedom)
        return float(nct.sf(critical, freedom, abs(self.distance) / self.error * math.sqrt(times)))

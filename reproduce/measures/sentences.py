"""Numbers of verdicts in words."""

from __future__ import annotations

import math

from ga3c_tf.reproduce.measures.estimates import LEAST_SEEDS, Effect
from ga3c_tf.trained.publishing.markdown import number

NOTHING_TO_COMPARE = "nothing to compare yet"


def described(estimate: Effect, p: float) -> str:
    """Describe an estimate, such as 'TPS: 2.4 times [2, 2.9], limit 0.95, p = 0.01 (3 seeds)'.

    Args:
        estimate: the estimate.
        p: its corrected p value; not-a-number if an interval decides.
    """
    if not estimate.n:
        return estimate.note or NOTHING_TO_COMPARE
    what = f"{estimate.what}: " if estimate.what else ""
    note = f"; {estimate.note}" if estimate.note else ""
    return f"{what}{effect_of(estimate)}{_tested(estimate, p)} {_counted(estimate)}{note}"


def effect_of(estimate: Effect) -> str:
    """Describe the effect and its interval, such as '+3.2 [1.1, 5.3]' or '2.4 times [2, 2.9]'."""
    effect, low, high, _ = estimate.shown
    text = f"{number(effect)} times" if estimate.ratio else f"{effect:+.3g}"
    if estimate.n < LEAST_SEEDS or not low <= high:
        return text
    return f"{text} [{number(low)}, {number(high)}]"


def _tested(estimate: Effect, p: float) -> str:
    if estimate.n < LEAST_SEEDS:
        return ""
    limit = f", limit {number(estimate.shown[3])}" if estimate.limit else ""
    return limit if math.isnan(p) else f"{limit}, p = {p:.2g}"


def _counted(estimate: Effect) -> str:
    return f"({estimate.n} {estimate.of}{'s' if estimate.n > 1 else ''})"

"""Differences between groups of runs in words, as findings show them."""

from __future__ import annotations

import math

from ga3c_tf.reproduce.measures.effects import Effect
from ga3c_tf.reproduce.measures.text import number
from ga3c_tf.reproduce.measures.verdicts import LEAST_SEEDS

NOTHING_TO_COMPARE = "nothing to compare yet"


def described(effect: Effect, corrected: float) -> str:
    """Describe an effect, such as '+3.2 [1.1, 5.3], p = 0.01 (5 seeds)'.

    A limit other than 0 comes before the p value: '+3.2 [1.1, 5.3], limit -10, p = 0.01 (5 seeds)'.

    Args:
        effect: the effect.
        corrected: its p value, corrected by `holm`.
    """
    if not effect.seeds:
        return NOTHING_TO_COMPARE
    values = f"{effect.mean:+.3g}", number(effect.low), number(effect.high)
    limit = f"{effect.limit:+.3g}" if effect.limit else ""
    return _in_words(*values, limit, corrected, effect.seeds, "seed")


def described_ratio(effect: Effect, corrected: float, of: str = "seed") -> str:
    """Describe an effect from `paired_ratio`, such as '2.4 times [2, 2.9], p = 0.01 (3 seeds)'; see
    `described`.

    Args:
        effect: effect on logarithms.
        corrected: its p value, corrected by `holm`.
        of: what one pair is, such as 'seed' or 'setting'.
    """
    if not effect.seeds:
        return NOTHING_TO_COMPARE
    mean, low, high = (number(math.exp(value)) for value in (effect.mean, effect.low, effect.high))
    limit = number(math.exp(effect.limit)) if effect.limit else ""
    return _in_words(f"{mean} times", low, high, limit, corrected, effect.seeds, of)


def _in_words(mean: str, low: str, high: str, limit: str, chance: float, count: int, of: str) -> str:
    counted = f"({count} {of}{'s' if count > 1 else ''})"
    if count < LEAST_SEEDS:
        return f"{mean} {counted}"
    tested = f", limit {limit}" if limit else ""
    return f"{mean} [{low}, {high}]{tested}, p = {chance:.2g} {counted}"

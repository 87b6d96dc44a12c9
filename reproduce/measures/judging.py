"""Verdicts on differences between groups of runs, with p values corrected for the number of findings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from ga3c_tf.reproduce.measures.effects import Effect
from ga3c_tf.reproduce.measures.planning import OpenTest
from ga3c_tf.reproduce.measures.verdicts import (
    CHANCE,
    FAILS,
    FEW_SEEDS,
    HOLDS,
    LEAST_SEEDS,
    NO_DIFFERENCE,
    RUNS_MISSING,
    Finding,
    holds_if,
)
from ga3c_tf.reproduce.measures.wording import NOTHING_TO_COMPARE, described, described_ratio

Key = TypeVar("Key")


def holm(chances: Sequence[float]) -> list[float]:
    """Correct p values for multiple comparisons by Holm's method; not-a-number stays not-a-number.

    The probability that any true null hypothesis is rejected is then at most the significance level. Unknown
    p values count as comparisons too, so that a verdict does not change because other runs are added.
    """
    tested = [place for place, chance in enumerate(chances) if not math.isnan(chance)]
    corrected = [math.nan] * len(chances)
    largest = 0.0
    for rank, place in enumerate(sorted(tested, key=lambda place: chances[place])):
        largest = max(largest, min(1.0, chances[place] * (len(chances) - rank)))
        corrected[place] = largest
    return corrected


def effect_verdict(effect: Effect, corrected: float) -> str:
    """Judge whether an effect is above its limit, which is 0 unless a margin is allowed.

    Args:
        effect: from `paired_effect`, `paired_ratio`, `welch_effect`, `pooled_effect` or `growth`.
        corrected: its p value, corrected by `holm`.
    """
    if effect.seeds < LEAST_SEEDS:
        return FEW_SEEDS
    return holds_if(effect.mean > effect.limit) if corrected < CHANCE else NO_DIFFERENCE


def judged(
    effects: Mapping[Key, Effect], describe: Callable[[Effect, float], str] = described
) -> dict[Key, Finding]:
    """Judge whether each effect is above its limit, with p values corrected by `holm`.

    Args:
        effects: effects by comparison.
        describe: `described`, or `described_ratio` for effects on logarithms.
    """
    corrected = holm([effect.chance for effect in effects.values()])
    findings = {}
    for (key, effect), chance in zip(effects.items(), corrected, strict=True):
        finding = finding_of(effect, chance, open_level(corrected), describe(effect, chance))
        findings[key] = finding if effect.seeds else Finding(RUNS_MISSING, finding.because)
    return findings


def judged_together(
    effects: Mapping[str, Effect], corrected: Mapping[str, float], level: float, of: str = "seed"
) -> Finding:
    """Judge whether the ratios of all comparisons are above their limits.

    The least favorable comparison decides, and the finding has its numbers.

    Args:
        effects: effects from `paired_ratio`, by name of the comparison.
        corrected: p values of the effects, corrected by `holm`, by the same names.
        level: significance level from `open_level`.
        of: what one pair is, such as 'seed' or 'setting'.
    """
    if not effects:
        return Finding(RUNS_MISSING, NOTHING_TO_COMPARE)
    verdicts = {name: effect_verdict(effect, corrected[name]) for name, effect in effects.items()}
    verdict = next(
        verdict for verdict in (FAILS, FEW_SEEDS, NO_DIFFERENCE, HOLDS) if verdict in verdicts.values()
    )
    deciding = [name for name in effects if verdicts[name] == verdict]
    least = min(deciding, key=lambda name: effects[name].mean)
    because = f"{least}: {described_ratio(effects[least], corrected[least], of)}"
    if verdict != NO_DIFFERENCE:
        return Finding(verdict, because)
    return Finding(verdict, because, _slowest([_open_test(effects[name], level) for name in deciding]))


def finding_of(effect: Effect, corrected: float, level: float, because: str) -> Finding:
    """Judge whether an effect is above its limit; a finding without a significant difference keeps its test.

    Args:
        effect: the effect, as in `effect_verdict`.
        corrected: its p value, corrected by `holm`.
        level: significance level from `open_level`.
        because: numbers of the finding, in words.
    """
    verdict = effect_verdict(effect, corrected)
    return Finding(verdict, because, _open_test(effect, level) if verdict == NO_DIFFERENCE else None)


def open_level(corrected: Sequence[float]) -> float:
    """Return the significance level that Holm's method leaves for the findings that are not significant yet.

    Args:
        corrected: p values of all findings, corrected by `holm`.
    """
    return CHANCE / max(1, sum(not chance < CHANCE for chance in corrected))


def _open_test(effect: Effect, level: float) -> OpenTest | None:
    """Return the t test of an effect; None if there is none, because the values do not vary."""
    if math.isnan(effect.freedom):
        return None
    seeds = effect.seeds if effect.looks > 1 else 0
    return OpenTest(effect.mean - effect.limit, effect.error, effect.freedom, level, seeds)


def _slowest(tests: Sequence[OpenTest | None]) -> OpenTest | None:
    """Return the test that determines how many runs decide several comparisons together.

    One comparison below its limit is enough to decide, so the surest of those counts. Without one, all
    comparisons have to be above their limits, so the least sure counts.
    """
    open_tests = [test for test in tests if test is not None]
    below = [test for test in open_tests if test.distance < 0]
    surest = max(below, default=None, key=lambda test: -test.distance / test.error)
    return surest or min(open_tests, default=None, key=lambda test: test.distance / test.error)

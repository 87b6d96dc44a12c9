"""How large a difference between two groups of runs is, and how sure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.stats import t as t_dist
from scipy.stats import ttest_1samp

from ga3c_tf.reproduce.measures.intervals import mean_interval
from ga3c_tf.reproduce.measures.text import number
from ga3c_tf.reproduce.measures.verdicts import CHANCE, FEW_SEEDS, LEAST_SEEDS, NO_DIFFERENCE, Finding, holds_if

BySeed = Mapping[int, float]
Key = TypeVar("Key")
RESAMPLES = 4000
ROUNDING = 1e-9


class Effect(NamedTuple):
    """The difference between the means of two groups."""

    mean: float
    low: float  # of the 95 % interval
    high: float
    chance: float  # p of the t test, two-sided; not-a-number below three seeds
    seeds: int  # of the smaller group, or of both if it is paired
    limit: float = 0.0  # the difference that it is tested against


NOTHING = Effect(math.nan, math.nan, math.nan, math.nan, 0)


def paired_effect(ours: BySeed, others: BySeed) -> Effect:
    """Compare two groups seed by seed.

    Runs of one seed that follow one another on one machine share its speed, which cancels then.

    Args:
        ours: a value of each seed.
        others: the same of what they are compared with.

    Returns:
        The mean of `ours` minus `others`, over the seeds of both.
    """
    differences = [ours[seed] - others[seed] for seed in ours if seed in others]
    if not differences:
        return NOTHING
    low, high = mean_interval(differences)
    chance = math.nan
    if len(differences) >= LEAST_SEEDS:
        chance = (
            float(ttest_1samp(differences, 0).pvalue) if np.ptp(differences) > ROUNDING else _sign_test(differences)
        )
    return Effect(float(np.mean(differences)), low, high, chance, len(differences))


def welch_effect(ours: Sequence[float], others: Sequence[float]) -> Effect:
    """Compare two groups by Welch's t test, for what does not depend on the machine.

    Args:
        ours: a value of each seed.
        others: the same of what they are compared with.
    """
    return pooled_effect([(ours, others)])


def pooled_effect(pairs: Sequence[tuple[Sequence[float], Sequence[float]]], limit: float = 0.0) -> Effect:
    """Compare two groups under several conditions, by the mean of their differences.

    It is Welch's t test with the variance of each group under each condition, and Satterthwaite's degrees of freedom.

    Args:
        pairs: of each condition, a value of each seed of ours and of the others.
        limit: the difference that is tested against; below 0 the question is whether ours are no worse by so much.
    """
    if not pairs or any(not len(group) for pair in pairs for group in pair):
        return NOTHING
    seeds = min(len(group) for pair in pairs for group in pair)
    difference = float(np.mean([np.mean(ours) - np.mean(others) for ours, others in pairs]))
    if seeds < LEAST_SEEDS:
        return Effect(difference, math.nan, math.nan, math.nan, seeds, limit)
    groups = [group for pair in pairs for group in pair]
    variances = np.array([np.var(group, ddof=1) / len(group) for group in groups]) / len(pairs) ** 2
    total = float(variances.sum())
    if total == 0:  # nothing varies
        return Effect(difference, difference, difference, float(difference == limit), seeds, limit)
    freedom = 1 / float(((variances / total) ** 2 / [len(group) - 1 for group in groups]).sum())
    error = math.sqrt(total)
    reach = float(t_dist.ppf(0.975, freedom)) * error
    chance = 2 * float(t_dist.sf(abs(difference - limit) / error, freedom))
    return Effect(difference, difference - reach, difference + reach, chance, seeds, limit)


def greater(ours: Sequence[float], others: Sequence[float]) -> str:
    """Judge whether the mean of `ours` is above that of `others`, where that is the only question."""
    effect = welch_effect(ours, others)
    return effect_verdict(effect, effect.chance)


def judged(effects: Mapping[Key, Effect]) -> dict[Key, Finding]:
    """Judge whether each effect is above its limit, with p values corrected for their number."""
    corrected = holm([effect.chance for effect in effects.values()])
    return {
        key: Finding(effect_verdict(effect, chance), described(effect, chance))
        for (key, effect), chance in zip(effects.items(), corrected, strict=True)
    }


def described(effect: Effect, corrected: float) -> str:
    """Such as '+3.2 [1.1, 5.3], p = 0.01 (5 seeds)'."""
    if not effect.seeds:
        return "no seed has both"
    seeds = f"({effect.seeds} seed{'s' if effect.seeds > 1 else ''})"
    if effect.seeds < LEAST_SEEDS:
        return f"{effect.mean:+.3g} {seeds}"
    return f"{effect.mean:+.3g} [{number(effect.low)}, {number(effect.high)}], p = {corrected:.2g} {seeds}"


def left_random(scores: Sequence[float], random: float | None) -> bool:
    """Whether scores are above the random policy's by more than chance; of fewer than three or an unknown one: True."""
    if random is None or len(scores) < LEAST_SEEDS:
        return True
    return mean_interval(scores)[0] > random


def _sign_test(differences: Sequence[float]) -> float:
    """Return the p value where all differences are the same, of which Student's t would be too sure."""
    return 1.0 if abs(differences[0]) <= ROUNDING else 0.5 ** (len(differences) - 1)


def holm(chances: Sequence[float]) -> list[float]:
    """Correct p values for their number, by Holm's method; not-a-number stays so.

    The chance that any of the true null hypotheses is rejected is then at most the level. What is not known yet counts
    too, so that a verdict does not turn because other runs are added.
    """
    known = [place for place, chance in enumerate(chances) if not math.isnan(chance)]
    corrected = [math.nan] * len(chances)
    largest = 0.0
    for rank, place in enumerate(sorted(known, key=lambda place: chances[place])):
        largest = max(largest, min(1.0, chances[place] * (len(chances) - rank)))
        corrected[place] = largest
    return corrected


def effect_verdict(effect: Effect, corrected: float) -> str:
    """Judge whether an effect is above its limit, which is 0 unless a margin is allowed.

    Args:
        effect: of `paired_effect`, `welch_effect` or `pooled_effect`.
        corrected: its p value, as `holm` gives it.
    """
    if effect.seeds < LEAST_SEEDS:
        return FEW_SEEDS
    return NO_DIFFERENCE if corrected >= CHANCE else holds_if(effect.mean > effect.limit)


def interquartile_mean(values: Sequence[float] | np.ndarray) -> float:
    """Return the mean of the middle half; values at the quartiles count in part."""
    return float(_interquartile_means(np.asarray(values, float)[None])[0])


def stratified_interquartile_mean(strata: Sequence[Sequence[float]], confidence: float = 0.95) -> tuple[float, ...]:
    """Return the mean over conditions of their interquartile means, and its interval by a bootstrap within each.

    The interquartile mean of all values together would leave out a condition in which all runs fail.

    Args:
        strata: the values of each condition; each has one at least.
        confidence: of the interval.

    Returns:
        Mean, lower end and upper end.
    """
    means = [_interquartile_means(_resampled(values, seed)) for seed, values in enumerate(strata)]
    point = float(np.mean([interquartile_mean(values) for values in strata]))
    return point, *_percentiles(np.mean(means, axis=0), confidence)


def probability_of_improvement(
    ours: Sequence[Sequence[float]], others: Sequence[Sequence[float]], confidence: float = 0.95
) -> tuple[float, ...]:
    """Return the probability that a run of ours scores more than one of the others, a tie counting half.

    It is the mean over conditions, as in Agarwal et al. 2021 (arXiv 2108.13264), with the interval of a bootstrap
    within each condition.

    Args:
        ours: the scores of each condition.
        others: the same, in the same order.
        confidence: of the interval.

    Returns:
        Probability, lower end and upper end.
    """
    found = []
    for seed, (mine, theirs) in enumerate(zip(ours, others, strict=True)):
        resampled = _resampled(mine, 2 * seed)[:, :, None], _resampled(theirs, 2 * seed + 1)[:, None, :]
        found.append((_shares(np.asarray(mine)[None, :, None], np.asarray(theirs)[None, None]), _shares(*resampled)))
    point = float(np.mean([shares[0] for shares, _ in found]))
    return point, *_percentiles(np.mean([shares for _, shares in found], axis=0), confidence)


def _resampled(values: Sequence[float], seed: int) -> np.ndarray:
    """Return [RESAMPLES, n] draws with replacement."""
    places = np.random.default_rng(seed).integers(len(values), size=(RESAMPLES, len(values)))
    return np.asarray(values, float)[places]


def _interquartile_means(samples: np.ndarray) -> np.ndarray:
    """Return the interquartile mean of each row of [m, n]."""
    ordered = np.sort(samples, axis=1)
    count = ordered.shape[1]
    edges = np.arange(count + 1)
    weights = np.clip(np.minimum(edges[1:], 0.75 * count) - np.maximum(edges[:-1], 0.25 * count), 0, None)
    return ordered @ (weights / weights.sum())


def _shares(ours: np.ndarray, others: np.ndarray) -> np.ndarray:
    return ((ours > others) + 0.5 * (ours == others)).mean(axis=(1, 2))


def _percentiles(values: np.ndarray, confidence: float) -> tuple[float, float]:
    low, high = np.percentile(values, [50 * (1 - confidence), 50 * (1 + confidence)])
    return float(low), float(high)

"""The rules by which the results page judges; pages/templates/rules.md states each of them there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.stats import t as t_dist
from scipy.stats import ttest_ind_from_stats

HOLDS = "holds"
FAILS = "does not hold"
LEAST_SEEDS = 3
INCONCLUSIVE = "inconclusive"
"""The verdict where the runs cannot tell; what follows it says why."""
FEW_SEEDS = f"{INCONCLUSIVE}: fewer than {LEAST_SEEDS} seeds"
NO_DIFFERENCE = f"{INCONCLUSIVE}: no significant difference"
WITHIN_NOISE = f"{INCONCLUSIVE}: within noise"
RUNS_MISSING = f"{INCONCLUSIVE}: runs missing"
SEVERAL_MACHINES = f"{INCONCLUSIVE}: several machines"
NEEDS_GPU = f"{INCONCLUSIVE}: needs a GPU"
NOT_TRIED = f"{INCONCLUSIVE}: not tried"
TOO_SHORT = f"{INCONCLUSIVE}: too short to learn"
COLLAPSED = 0.5
CHANCE = 0.05
CHANCE_RISE = 9
"""Standard errors that a rolling score may rise by chance."""
LEAST_WINDOWS = 10
"""How many scores it takes to estimate the standard error."""
TIE = 0.05
"""Speeds, and ratios of speeds, are not told apart within this part. It is a choice, and a small one: the two
halves of a run of `tps` differ by 9 % (D29), so two such runs differ by about 6 % by chance."""


class Finding(NamedTuple):
    """Whether what the paper found is so here, and the numbers that decided. Claim and rule are in the templates."""

    verdict: str
    because: str

    def __str__(self) -> str:
        return f"**{self.verdict}** - {self.because}"


def holds_if(condition: bool) -> str:
    """Return the verdict on a condition that the runs can decide."""
    return HOLDS if condition else FAILS


def score_verdict(seeds: Sequence[float], paper: float | None, random: float | None) -> str:
    """Return the verdict on a score.

    Args:
        seeds: the score of each seed.
        paper: the paper's, None where it could not be read.
        random: of the random policy.
    """
    if not seeds:
        return "not run"
    if paper is None:
        return "nothing to compare with"
    if len(seeds) < LEAST_SEEDS:
        return FEW_SEEDS
    mean = float(np.mean(seeds))
    standard_error = np.std(seeds, ddof=1) / math.sqrt(len(seeds))
    if mean >= paper:
        return "reproduced"
    if mean + t_dist.ppf(0.975, len(seeds) - 1) * standard_error >= paper:
        return NO_DIFFERENCE
    if random is None or random >= paper:
        return "short, random policy unknown"
    return f"short by {100 * (paper - mean) / (paper - random):.0f} %"


def greater(ours: Sequence[float], others: Sequence[float]) -> str:
    """Judge whether the mean of `ours` is above that of `others`, by the rule 'greater'."""
    if min(len(ours), len(others)) < LEAST_SEEDS:
        return FEW_SEEDS
    groups = [(np.mean(values), np.std(values, ddof=1), len(values)) for values in (ours, others)]
    chance = ttest_ind_from_stats(*groups[0], *groups[1], equal_var=False).pvalue
    if chance >= CHANCE:  # 0 where nothing varies but the means differ; not-a-number where they are the same too
        return NO_DIFFERENCE
    difference = groups[0][0] - groups[1][0]
    if difference == 0:
        return NO_DIFFERENCE
    return holds_if(bool(difference > 0))


def grows(values: Sequence[float | None]) -> str:
    """Judge whether the values rise from each to the next, a fall of up to 5 % being a tie, and by more in all.

    Every value must be there: one that is missing may be the one that falls.
    """
    known = [value for value in values if value is not None]
    if len(known) < max(3, len(values)):
        return RUNS_MISSING
    steps_rise = all(after >= (1 - TIE) * before for before, after in pairwise(known))
    return holds_if(steps_rise and known[-1] > (1 + TIE) * known[0])


def falls(values: Sequence[float | None]) -> str:
    """Judge as `grows`, the other way round, for positive values."""
    return grows([1 / value if value else None for value in values])


def chance_rise(scores: Sequence[float], episodes: Sequence[float], window: int) -> float:
    """Return how far rolling scores may rise above the first by chance; 0 for a run too short to tell.

    It is nine standard errors; the standard error is the one of DER_SNR (Stoehr et al. 2008), the scaled median of
    second differences: what is learnt meanwhile, steadily, does not count as scatter.

    Args:
        scores: rolling scores.
        episodes: how many had ended at each of them.
        window: how many each is the mean of.
    """
    # 1. Choose scores that share no episode.
    apart = [0] if len(scores) else []
    for place in range(1, len(scores)):
        if episodes[place] - episodes[apart[-1]] >= window:
            apart.append(place)
    if len(apart) < LEAST_WINDOWS:
        return 0.0
    # 2. Estimate the standard error from their second differences.
    scatter = np.abs(np.diff(np.asarray(scores, float)[apart], 2))
    spread = 1.482602 * np.median(scatter) or np.sqrt(np.mean(scatter**2))  # where most are 0
    return float(CHANCE_RISE * spread / math.sqrt(6))


def share_lost(scores: Sequence[float], steps: Sequence[float], chance: float = 0.0) -> float:
    """Return the share of a run during which more than half of what it had gained was lost.

    The gain is the way from the first score to the best so far.

    Args:
        scores: rolling scores.
        steps: agent steps at each of them.
        chance: what counts once the gain is larger than this, as `chance_rise` says: of a gain by chance any dip is
            a multiple.

    Returns:
        The share of the agent steps; not-a-number for a run that never improved by more than `chance`.
    """
    places, drops = _drops(scores, chance)
    if not len(drops):
        return float("nan")
    lengths = np.diff(np.asarray(steps, float), prepend=steps[0])
    return float(lengths[places][drops > COLLAPSED].sum() / lengths.sum())


def collapsed(scores: Sequence[float], chance: float = 0.0) -> float:
    """Return 1.0 if the last score is more than half of that way down, else 0.0; not-a-number without a rise."""
    _, drops = _drops(scores, chance)
    return float(drops[-1] > COLLAPSED) if len(drops) else float("nan")


def _drops(scores: Sequence[float], chance: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the drops below the best so far as shares of the gain, and their places: from where a gain counts."""
    values = np.asarray(scores, float)
    if not len(values):
        return np.empty(0, int), np.empty(0)
    best = np.maximum.accumulate(values)
    places = np.flatnonzero(best - values[0] > chance)
    return places, (best - values)[places] / (best - values[0])[places]

"""The rules by which the results page judges; each is stated there in the words given here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.stats import t as t_dist
from scipy.stats import ttest_ind_from_stats

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "not enough data"
LEAST_SEEDS = 3
COLLAPSED = 0.5
CHANCE = 0.05
CHANCE_RISE, LEAST_WINDOWS = 9, 10
"""Standard errors that a rolling score may rise by chance, and how many scores it takes to estimate them."""
TIE = 0.05
"""Speeds, and ratios of speeds, are not told apart within this part. It is a choice, and a small one: the two
halves of a run of `tps` differ by 9 % (D29), so two such runs differ by about 6 % by chance."""

RULES = {
    "scores": "The verdict on a score: 'not run' without a finished run; 'fewer than 3 seeds' below that; 'reproduced' "
    "where the mean over seeds reaches the paper's value; 'undecided' where only the upper end of its 95 % t interval "
    "does; else 'short by x %', x being the share of the way from random play (ours, the paper's where ours was not "
    "measured) to the paper's value that our mean lacks. Until November 2026 the upper end of a bootstrap interval was "
    "enough for 'reproduced', which is all but the best seed; no score had three seeds then.",
    "throughput": "Speeds are compared as ratios of runs on the same hardware only, never across hardware: a speed of "
    "the paper's machines stands beside ours for orientation, without a verdict.",
    "findings": "A finding 'holds' or 'does not hold' by the rule in brackets behind it, computed from the recorded "
    "runs; 'not enough data' where runs it needs are missing, failed, or cannot tell.",
    "greater": "'Greater' of two groups of runs means: their means differ by Welch's t test (two-sided, at 5 %), with "
    "at least 3 seeds in each, and the first is the greater; it does not hold where the second is. Figures with fewer "
    "seeds by default are judged with `--seeds 3`. Where there is no difference, up to one of twenty such "
    "comparisons finds one by chance.",
    "instability": "Instability of a run: the worst drop of its rolling score below the best it had until then, as a "
    "share of the way from its first rolling score to that best. A run has collapsed if it ends more than half of that "
    "way down. Both count from where that way is longer than nine standard errors of a rolling score, and runs that "
    "never get there, which never improved, have neither, and count as 1 where drops are compared; the standard error "
    "is estimated from how much rolling scores that share no episode scatter around their neighbours. Of simulated "
    "runs that learn nothing 0 to 7 % count as improved; with six standard errors, as before November 2026, it was up "
    "to 44 % where nearly all episodes score the same. The error is of the whole run, so drops early in a run that "
    "scatters more later may be missed. In a run with fewer than ten such scores any rise counts.",
}


class Finding(NamedTuple):
    """What the paper found, whether it is so here, by what rule, and the numbers that decided."""

    claim: str
    verdict: str
    rule: str
    because: str

    def line(self) -> str:
        """As an item of a list."""
        return f"- {self.claim}: **{self.verdict}** - {self.because} ({self.rule})"


def score_verdict(seeds: Sequence[float], paper: float | None, random: float | None) -> str:
    """The verdict on a score.

    Args:
        seeds: the score of each seed.
        paper: the paper's, None where it could not be read.
        random: of random play.
    """
    if not seeds:
        return "not run"
    if paper is None:
        return "nothing to compare with"
    if len(seeds) < LEAST_SEEDS:
        return f"fewer than {LEAST_SEEDS} seeds"
    mean = float(np.mean(seeds))
    if mean >= paper:
        return "reproduced"
    if mean + t_dist.ppf(0.975, len(seeds) - 1) * np.std(seeds, ddof=1) / math.sqrt(len(seeds)) >= paper:
        return "undecided"
    if random is None or random >= paper:
        return "short, random play unknown"
    return f"short by {100 * (paper - mean) / (paper - random):.0f} %"


def greater(ours: Sequence[float], others: Sequence[float]) -> str:
    """Whether the mean of `ours` is above that of `others`, by the rule 'greater'."""
    if min(len(ours), len(others)) < LEAST_SEEDS:
        return UNKNOWN
    groups = [(np.mean(values), np.std(values, ddof=1), len(values)) for values in (ours, others)]
    chance = ttest_ind_from_stats(*groups[0], *groups[1], equal_var=False).pvalue
    if chance >= CHANCE:  # 0 where nothing varies but the means differ; not-a-number where they are the same too
        return UNKNOWN
    difference = groups[0][0] - groups[1][0]
    return HOLDS if difference > 0 else FAILS if difference < 0 else UNKNOWN


def grows(values: Sequence[float | None]) -> str:
    """Whether the values rise from each to the next, a fall of up to 5 % being a tie, and in all by more than that.

    Every value must be there: one that is missing may be the one that falls.
    """
    known = [value for value in values if value is not None]
    if len(known) < max(3, len(values)):
        return UNKNOWN
    steps_rise = all(after >= (1 - TIE) * before for before, after in pairwise(known))
    return HOLDS if steps_rise and known[-1] > (1 + TIE) * known[0] else FAILS


def falls(values: Sequence[float | None]) -> str:
    """As `grows`, the other way round, for positive values."""
    return grows([1 / value if value else None for value in values])


def chance_rise(scores: Sequence[float], episodes: Sequence[float], window: int) -> float:
    """How far rolling scores may rise above the first by chance; 0 for a run too short to tell.

    It is six standard errors; the standard error is the one of DER_SNR (Stoehr et al. 2008), the scaled median of
    second differences: what is learnt meanwhile, steadily, does not count as scatter.

    Args:
        scores: rolling scores.
        episodes: how many had ended at each of them.
        window: how many each is the mean of.
    """
    apart = [0] if len(scores) else []
    for place in range(1, len(scores)):
        if episodes[place] - episodes[apart[-1]] >= window:
            apart.append(place)
    if len(apart) < LEAST_WINDOWS:
        return 0.0
    scatter = np.abs(np.diff(np.asarray(scores, float)[apart], 2))
    spread = 1.482602 * np.median(scatter) or np.sqrt(np.mean(scatter**2))  # where most are 0
    return float(CHANCE_RISE * spread / math.sqrt(6))


def worst_drop(scores: Sequence[float], chance: float = 0.0) -> float:
    """Worst drop from the running best, as a share of the way from the first score to it.

    Args:
        scores: rolling scores.
        chance: what counts once that way is longer than this, as `chance_rise` says: of a way that is there by chance
            any dip is a multiple.

    Returns:
        The share; not-a-number for a run that never improved by more than `chance`.
    """
    return _drops(scores, chance)[0]


def collapsed(scores: Sequence[float], chance: float = 0.0) -> float:
    """1.0 if the last score is more than half of that way down, else 0.0; not-a-number where it never improved."""
    final = _drops(scores, chance)[1]
    return final if math.isnan(final) else float(final > COLLAPSED)


def _drops(scores: Sequence[float], chance: float) -> tuple[float, float]:
    values = np.asarray(scores, float)
    if not len(values) or values.max() - values[0] <= chance:
        return float("nan"), float("nan")
    best = np.maximum.accumulate(values)
    improved = best - values[0] > chance
    drops = (best - values)[improved] / (best - values[0])[improved]
    return float(drops.max()), float(drops[-1])

"""The rules by which the results page judges; pages/templates/rules.md states each of them there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ga3c_tf.reproduce.measures.intervals import mean_interval
from ga3c_tf.reproduce.measures.planning import OpenTest

HOLDS = "supported"
FAILS = "not supported"
LEAST_SEEDS = 3
INCONCLUSIVE = "undecided"
"""The verdict where the runs cannot tell; what follows it says why."""
FEW_SEEDS = f"{INCONCLUSIVE}: fewer than {LEAST_SEEDS} seeds"
NO_DIFFERENCE = f"{INCONCLUSIVE}: no significant difference"
RUNS_MISSING = f"{INCONCLUSIVE}: runs missing"
SEVERAL_MACHINES = f"{INCONCLUSIVE}: several machines"
NEEDS_GPU = f"{INCONCLUSIVE}: needs a GPU"
NOT_TRIED = f"{INCONCLUSIVE}: not tried"
TOO_SHORT = f"{INCONCLUSIVE}: too short to learn"
COLLAPSED = 0.5
CHANCE = 0.05
SCORE_MARGIN = 0.05
"""A score may be so much of the way from the random policy to the paper's below it."""
TIE = 0.05
"""Speeds are not told apart within this part. It is a choice."""


Scores = Sequence[float] | np.ndarray


class Finding(NamedTuple):
    """Whether a claim is so here, and the numbers that decided.

    Attributes:
        verdict: with the reason if it is undecided.
        because: the numbers, in words.
        test: the t test that found no significant difference; None if another rule decides, or more seeds would not
            make the test surer.
    """

    verdict: str
    because: str
    test: OpenTest | None = None

    def __str__(self) -> str:
        return f"**{self.verdict}** - {self.because}"

    @property
    def word(self) -> str:
        """The verdict without a reason."""
        return self.verdict.partition(": ")[0]

    @property
    def reason(self) -> str:
        """Why it is undecided; empty where it is not."""
        return self.verdict.partition(": ")[2]


class Claim(NamedTuple):
    """What the runs of a figure are to decide, and what they found.

    Attributes:
        text: what is claimed, as the pages state it.
        finding: what was found.
        rule: how it is judged, in a few words; empty where the text says enough.
        own: it is a question of ours in a figure of the paper.
        game: the only game that it is about; empty if it is about all of the figure's.
    """

    text: str
    finding: Finding
    rule: str = ""
    own: bool = False
    game: str = ""

    @property
    def stated(self) -> str:
        """The text, saying where the claim is not the paper's."""
        return f"{self.text} (not a claim of the paper)" if self.own else self.text


def holds_if(condition: bool) -> str:
    """Return the verdict on a condition that the runs can decide."""
    return HOLDS if condition else FAILS


def interval_verdict(low: float, high: float, limit: float) -> str:
    """Return whether an interval lies above a limit, below it, or has it inside."""
    if low > limit:
        return HOLDS
    return FAILS if high < limit else NO_DIFFERENCE


def score_verdict(seeds: Sequence[float], paper: float | None, random: float | None) -> str:
    """Return the verdict on a score: whether it is the paper's, within `SCORE_MARGIN` below it.

    Args:
        seeds: the score of each seed.
        paper: the paper's, None where it could not be read.
        random: of the random policy; None where it is unknown, and no margin is allowed.
    """
    if not seeds:
        return "not run"
    if paper is None:
        return "nothing to compare with"
    mean = float(np.mean(seeds))
    way = 0.0 if random is None else max(0.0, paper - random)
    limit = paper - SCORE_MARGIN * way
    short = f"short by {100 * (paper - mean) / way:.0f} %" if way else "short, random policy unknown"
    if len(seeds) < LEAST_SEEDS:
        return f"{'reached' if mean >= limit else short}, n = {len(seeds)}"
    low, high = mean_interval(seeds)
    if low >= limit:
        return "reproduced"
    return short if high < limit else NO_DIFFERENCE


def share_lost(scores: Scores, steps: Scores, gain: float) -> float:
    """Return the share of a run during which more than half of what it had gained was lost.

    What was gained is the way from the first score to the best so far.

    Args:
        scores: rolling scores.
        steps: agent steps at each of them.
        gain: a run has learned once it is so far above its first score; of less than that any dip would be a multiple.

    Returns:
        The share of the agent steps; not-a-number for a run that never learned.
    """
    places, drops = _drops(scores, gain)
    if not len(drops):
        return float("nan")
    lengths = np.diff(np.asarray(steps, float), prepend=steps[0])
    return float(lengths[places][drops > COLLAPSED].sum() / lengths.sum())


def collapsed(scores: Scores, gain: float) -> float:
    """Return 1.0 if more than half of what was gained is lost at the end, else 0.0; not-a-number without a gain."""
    _, drops = _drops(scores, gain)
    return float(drops[-1] > COLLAPSED) if len(drops) else float("nan")


def _drops(scores: Scores, gain: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the drops below the best so far as shares of what was gained, and their places: once a run has learned."""
    values = np.asarray(scores, float)
    if not len(values):
        return np.empty(0, int), np.empty(0)
    best = np.maximum.accumulate(values)
    places = np.flatnonzero(best - values[0] > gain)
    return places, (best - values)[places] / (best - values[0])[places]

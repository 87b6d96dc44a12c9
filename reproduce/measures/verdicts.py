"""The rules for the verdicts on the results page; pages/templates/rules.md states each for readers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ga3c_tf.reproduce.measures.planning import OpenTest
from ga3c_tf.trained.intervals import mean_interval

HOLDS = "supported"
FAILS = "not supported"
LEAST_SEEDS = 3
MARGIN = 0.05
"""Relative difference of speeds up to which they count as equal. The value is a choice."""
WIDE_MARGIN = 0.1
"""The same for scores, and how the effects of more workers differ between games. The value is a choice."""
EQUAL = f"no difference larger than {MARGIN:.0%}"
EQUAL_WIDE = f"no difference larger than {WIDE_MARGIN:.0%}"
INCONCLUSIVE = "undecided"
"""Verdict if the runs cannot decide; a colon and the reason follow."""
FEW_SEEDS = f"{INCONCLUSIVE}: fewer than {LEAST_SEEDS} seeds"
NO_DIFFERENCE = f"{INCONCLUSIVE}: no significant difference"
RUNS_MISSING = f"{INCONCLUSIVE}: runs missing"
SEVERAL_MACHINES = f"{INCONCLUSIVE}: several machines"
NEEDS_GPU = f"{INCONCLUSIVE}: needs a GPU"
FEW_AGENTS = f"{INCONCLUSIVE}: A3C has fewer agents than cores"
BUSY_MACHINE = f"{INCONCLUSIVE}: other processes used the machine"
SPEED_CHANGED = f"{INCONCLUSIVE}: calibrations differ"
FEW_PERIODS = f"{INCONCLUSIVE}: too short for the search"
NOT_TRIED = f"{INCONCLUSIVE}: not tried"
TOO_SHORT = f"{INCONCLUSIVE}: too short to learn"
COLLAPSED = 0.5
CHANCE = 0.05
SCORE_MARGIN = 0.05
"""Share of the distance from the random policy's score to the paper's by which a score may be below that."""

Scores = Sequence[float] | np.ndarray


class Finding(NamedTuple):
    """The verdict on a claim, and the numbers that it is based on.

    Attributes:
        verdict: the verdict, with the reason if it is undecided.
        because: the numbers, in words.
        test: the t test that found no significant difference; None if another rule decides, or if more seeds
            would not make the test surer.
    """

    verdict: str
    because: str
    test: OpenTest | None = None

    def __str__(self) -> str:
        return f"**{self.verdict}** - {self.because}"

    @property
    def word(self) -> str:
        """The verdict without its reason."""
        return self.verdict.partition(": ")[0]

    @property
    def reason(self) -> str:
        """Reason why the finding is undecided; empty if it is decided."""
        return self.verdict.partition(": ")[2]


class Claim(NamedTuple):
    """A claim that the runs of a figure are to decide, and the finding about it.

    Attributes:
        text: the claim, as the pages state it.
        finding: what the runs found.
        rule: how the claim is judged, in a few words; empty if the text says enough.
        is_question: whether the claim is a question of our own in a figure of the paper.
        game: the only game that the claim is about; empty if it is about all games of the figure.
    """

    text: str
    finding: Finding
    rule: str = ""
    is_question: bool = False
    game: str = ""

    @property
    def stated(self) -> str:
        """The text, with a note if the claim is not the paper's."""
        return f"{self.text} (not a claim of the paper)" if self.is_question else self.text


def holds_if(condition: bool) -> str:
    """Return the verdict on a condition that the runs can decide."""
    return HOLDS if condition else FAILS


def interval_verdict(low: float, high: float, limit: float) -> str:
    """Return an interval's verdict: supported above `limit`, not supported below it, undecided around it."""
    if low > limit:
        return HOLDS
    if high < limit:
        return FAILS
    return NO_DIFFERENCE


def score_verdict(
    seeds: Sequence[float], paper: float | None, random: float | None, confidence: float = 1 - CHANCE
) -> str:
    """Return the verdict on a score: whether it reaches the paper's score, less a margin of `SCORE_MARGIN`.

    Args:
        seeds: score of each seed.
        paper: the paper's score; None if it could not be read.
        random: score of the random policy; None if it is unknown, and then there is no margin.
        confidence: confidence level of the interval of the mean.
    """
    if not seeds:
        return "not run"
    mean = float(np.mean(seeds))
    if paper is None or np.isnan(mean):
        return "nothing to compare with"
    way = 0.0 if random is None else max(0.0, paper - random)
    limit = paper - SCORE_MARGIN * way
    if random is None or not way:
        short = "short, random policy unknown"
    elif mean < random:
        short = "short, below the random policy"
    else:
        short = f"short by {100 * (paper - mean) / way:.0f} %"
    if len(seeds) < LEAST_SEEDS:
        return f"{'reached' if mean >= limit else short}, n = {len(seeds)}"
    low, high = mean_interval(seeds, confidence)
    if low >= limit:
        return "reproduced"
    if high < limit:
        return short
    return NO_DIFFERENCE


def share_lost(scores: Scores, steps: Scores, gain: float) -> float:
    """Return the share of a run during which it had lost more than half of its gain.

    The gain is the best score so far minus the first score.

    Args:
        scores: rolling scores.
        steps: agent steps at each score.
        gain: gain above which a run counts as having learned; any dip would be a multiple of a smaller gain.

    Returns:
        The share of the agent steps; not-a-number for a run that never learned or has a score that is.
    """
    places, drops = _drops(scores, gain)
    if not len(drops):
        return float("nan")
    lengths = np.diff(np.asarray(steps, float), prepend=steps[0])
    return float(lengths[places][drops > COLLAPSED].sum() / lengths.sum())


def collapsed(scores: Scores, gain: float) -> float:
    """Return 1.0 if a run has lost more than half of its gain at the end, else 0.0.

    The gain is defined as for `share_lost`, and so is what is not-a-number.
    """
    _, drops = _drops(scores, gain)
    return float(drops[-1] > COLLAPSED) if len(drops) else float("nan")


def _drops(scores: Scores, gain: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the drawdowns after a run has learned: their places, and sizes as shares of the gain so far."""
    values = np.asarray(scores, float)
    if not len(values) or np.isnan(values).any():
        return np.empty(0, int), np.empty(0)
    best = np.maximum.accumulate(values)
    places = np.flatnonzero(best - values[0] > gain)
    return places, (best - values)[places] / (best - values[0])[places]

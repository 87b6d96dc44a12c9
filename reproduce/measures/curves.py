"""Numbers of a learning curve: when it reaches a score, and its mean scores.

A curve has the columns of curve.csv: the rolling score against time, agent steps and episodes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

Curve = Mapping[str, np.ndarray]
COLLAPSED = 0.5
"""Share of its gain that a run must lose to count as collapsed."""


def first_reaching(curve: Curve, score: float, against: str, window: int) -> float:
    """Return the agent steps or seconds at which the rolling score first reaches `score`.

    Args:
        curve: curve of one run.
        score: score to reach.
        against: 'agent_steps' or 'time_s'.
        window: number of episodes in the rolling score; points before so many episodes have ended do not
            count.

    Returns:
        Agent steps or seconds; not-a-number if the score is never reached.
    """
    reached = (curve["rolling_score"] >= score) & (curve["episodes"] >= window)
    return float(curve[against][reached.argmax()]) if reached.any() else math.nan


def score_by(curve: Curve, place: float, against: str) -> float:
    """Return the rolling score at the first point from `place` on; not-a-number if the curve ends before.

    Args:
        curve: curve of one run.
        place: agent steps or seconds.
        against: 'agent_steps' or 'time_s'.
    """
    places = curve[against]
    if not len(places) or not places[-1] >= place:  # the place may be not-a-number
        return math.nan
    return float(curve["rolling_score"][np.searchsorted(places, place)])


def mean_score(
    curve: Curve, against: str = "agent_steps", low: float = -math.inf, high: float = math.inf
) -> float:
    """Return the mean score between two places: the area under the curve, divided by its length there.

    Args:
        curve: curve of one run.
        against: 'agent_steps' or 'time_s'.
        low, high: the two places, in agent steps or seconds; they may lie beyond the ends of the curve.

    Returns:
        The mean score; not-a-number if the curve has no point between the places.
    """
    inside = (curve[against] >= low) & (curve[against] <= high)
    places = curve[against][inside]
    scores = curve["rolling_score"][inside]
    if not len(places):
        return math.nan
    if places[-1] == places[0]:
        return float(scores[0])
    return float(np.trapezoid(scores, places) / (places[-1] - places[0]))


def score_at_end(curve: Curve) -> float:
    """Return the mean rolling score over the last tenth of agent steps; not-a-number if no episode ended."""
    steps = curve["agent_steps"]
    late = curve["rolling_score"][steps >= 0.9 * steps.max(initial=0)]
    return float(late.mean()) if len(late) else math.nan


def score_at_start(curve: Curve, window: int) -> float:
    """Return the first rolling score over a full window of episodes; not-a-number if fewer have ended."""
    whole = curve["episodes"] >= window
    return float(curve["rolling_score"][whole][0]) if whole.any() else math.nan


def share_lost(curve: Curve, gain: float) -> float:
    """Return the share of the agent steps in which a run had lost more than half of its gain.

    The gain is the best score so far minus the first score.

    Args:
        curve: curve of one run.
        gain: gain above which a run counts as having learned; any dip would be a multiple of a smaller gain.

    Returns:
        The share; not-a-number for a run that never learned.
    """
    places, drops = _drops(curve["rolling_score"], gain)
    if not len(drops):
        return math.nan
    lengths = np.diff(curve["agent_steps"].astype(float), prepend=curve["agent_steps"][0])
    return float(lengths[places][drops > COLLAPSED].sum() / lengths.sum())


def collapsed(curve: Curve, gain: float) -> float:
    """Return 1.0 if a run has lost more than half of its gain at the end, else 0.0; see `share_lost`."""
    _, drops = _drops(curve["rolling_score"], gain)
    return float(drops[-1] > COLLAPSED) if len(drops) else math.nan


def _drops(scores: np.ndarray, gain: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the drawdowns after a run has learned: their places, and sizes as shares of the gain so far."""
    if not len(scores) or np.isnan(scores).any():
        return np.empty(0, int), np.empty(0)
    best = np.maximum.accumulate(scores)
    places = np.flatnonzero(best - scores[0] > gain)
    return places, (best - scores)[places] / (best - scores[0])[places]

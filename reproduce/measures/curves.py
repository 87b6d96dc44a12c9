"""What a learning curve says: how soon a score is reached, and how much is scored meanwhile.

A curve has the columns of curve.csv: the rolling score against time and agent steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

Curve = Mapping[str, np.ndarray]


def first_reaching(curve: Curve, score: float, against: str, window: int) -> float:
    """Return where the rolling score first reaches a score.

    Args:
        curve: of one run.
        score: to reach.
        against: 'agent_steps' or 'time_s'.
        window: episodes of the rolling score; before so many have ended it is of fewer, and does not count.

    Returns:
        Agent steps or seconds; not-a-number where it is never reached.
    """
    reached = (curve["rolling_score"] >= score) & (curve["episodes"] >= window)
    return float(curve[against][reached.argmax()]) if reached.any() else math.nan


def score_by(curve: Curve, place: float, against: str) -> float:
    """Return the rolling score at so many agent steps or seconds, not-a-number where the run ended before."""
    places = curve[against]
    if not len(places) or places[-1] < place:
        return math.nan
    return float(curve["rolling_score"][np.searchsorted(places, place)])


def mean_score(curve: Curve, against: str = "agent_steps", low: float = -math.inf, high: float = math.inf) -> float:
    """Return the area under the curve between two places, divided by its length there.

    Args:
        curve: of one run.
        against: 'agent_steps' or 'time_s'.
        low, high: the places; beyond the curve where it begins later or ends sooner.

    Returns:
        The mean score; not-a-number without an episode there.
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
    """Return the mean rolling score over the last tenth of the agent steps; not-a-number without an episode."""
    steps = curve["agent_steps"]
    late = curve["rolling_score"][steps >= 0.9 * steps.max(initial=0)]
    return float(late.mean()) if len(late) else math.nan


def score_at_start(curve: Curve, window: int) -> float:
    """Return the first rolling score of a whole window of episodes; not-a-number where fewer have ended."""
    whole = curve["episodes"] >= window
    return float(curve["rolling_score"][whole][0]) if whole.any() else math.nan

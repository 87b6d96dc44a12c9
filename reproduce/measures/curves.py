"""Numbers of a learning curve, which has the columns of curve.csv.

The rolling score is in points. A place is a number of agent steps or seconds, and `against` its column:
'agent_steps' or 'time_s'. What a curve does not have is not-a-number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

Curve = Mapping[str, np.ndarray]
COLLAPSED = 0.5
"""Share of its gain that a run must lose to count as collapsed."""


def first_reaching(curve: Curve, score: float, against: str, window: int) -> float:
    """Return the first place with a rolling score over `window` whole episodes of at least `score`."""
    reached = (curve["rolling_score"] >= score) & (curve["episodes"] >= window)
    return float(curve[against][reached.argmax()]) if reached.any() else math.nan


def score_by(curve: Curve, place: float, against: str) -> float:
    """Return the rolling score at the first point from a place on."""
    places = curve[against]
    if not len(places) or not places[-1] >= place:  # the place may be not-a-number
        return math.nan
    return float(curve["rolling_score"][np.searchsorted(places, place)])


def mean_score(
    curve: Curve, against: str = "agent_steps", low: float = -math.inf, high: float = math.inf
) -> float:
    """Return the mean score between two places: the area under the curve, divided by its length there."""
    inside = (curve[against] >= low) & (curve[against] <= high)
    places, scores = (curve[name][inside] for name in (against, "rolling_score"))
    if not len(places):
        return math.nan
    if places[-1] == places[0]:
        return float(scores[0])
    return float(np.trapezoid(scores, places) / (places[-1] - places[0]))


def score_at_end(curve: Curve) -> float:
    """Return the mean rolling score over the last tenth of agent steps."""
    steps = curve["agent_steps"]
    late = curve["rolling_score"][steps >= 0.9 * steps.max(initial=0)]
    return float(late.mean()) if len(late) else math.nan


def score_at_start(curve: Curve, window: int) -> float:
    """Return the first rolling score over a full window of episodes."""
    whole = curve["episodes"] >= window
    return float(curve["rolling_score"][whole][0]) if whole.any() else math.nan


def share_lost(curve: Curve, gain: float) -> float:
    """Return the share of the agent steps in which a run had lost more than half of its gain.

    The gain is the best score so far minus the first score. A run has learned if it gained more than `gain`;
    any dip would be a multiple of a smaller gain.
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

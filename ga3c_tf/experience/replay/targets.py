"""The n-step returns of sampled steps, without the value from which they bootstrap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

GOES_ON = 0
TERMINATED = 1
TRUNCATED = 2
"""How an episode stands after a step: the next step follows, it ended, or its next steps are not known."""


class NStepReturns(NamedTuple):
    """The return of each step is `rewards + discounts * Q(state after `spans` steps)`.

    Attributes:
        rewards: float32 [B], discounted sum of the rewards of up to n steps.
        discounts: float32 [B], discount of what follows; 0 if the episode ended.
        spans: int64 [B], number of steps that were summed.
    """

    rewards: np.ndarray
    discounts: np.ndarray
    spans: np.ndarray


def nstep_returns(rewards: np.ndarray, ends: np.ndarray, gamma: float) -> NStepReturns:
    """Return the n-step returns of B steps, each cut where its episode is.

    Args:
        rewards: float32 [B, n], rewards of a step and of those after it.
        ends: uint8 [B, n], how the episode stands after each of these steps.
        gamma: discount factor of one step.
    """
    steps = rewards.shape[1]
    counts = np.ones(rewards.shape, bool)  # whether a step belongs to the episode
    counts[:, 1:] = np.logical_and.accumulate(ends[:, :-1] == GOES_ON, axis=1)
    spans = counts.sum(axis=1)
    last = ends[np.arange(len(ends)), spans - 1]
    total = (rewards * counts) @ gamma ** np.arange(steps, dtype=np.float64)
    discounts = np.where(last == TERMINATED, 0.0, gamma**spans)
    return NStepReturns(total.astype(np.float32), discounts.astype(np.float32), spans)

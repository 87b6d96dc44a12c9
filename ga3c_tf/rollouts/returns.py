"""The n-step discounted returns of one segment. Agent processes call it, so it is NumPy only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def nstep_returns(rewards: Sequence[float] | np.ndarray, bootstrap: float, gamma: float) -> np.ndarray:
    """R[i] = rewards[i] + gamma * R[i + 1], where R[n] is the bootstrap (section 2 of the paper).

    A loop over Python floats: for the five steps of a segment it beats any vectorised form.

    Args:
        rewards: [n], in the order they came; n may be zero.
        bootstrap: V of the state after the last reward, or 0 where the episode ended there.
        gamma: Discount factor of one step.

    Returns:
        [n] float32, computed in double precision.
    """
    total = float(bootstrap)
    returns = [float(reward) for reward in rewards]
    for i in range(len(returns) - 1, -1, -1):
        total = returns[i] = returns[i] + gamma * total
    return np.array(returns, np.float32)

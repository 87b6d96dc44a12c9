"""The discounted returns of a segment: n-step returns and lambda-returns. NumPy only, for agent processes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def nstep_returns(rewards: Sequence[float] | np.ndarray, bootstrap: float, gamma: float) -> np.ndarray:
    """Return the n-step returns of a segment (section 2 of the paper).

    R[i] = rewards[i] + gamma * R[i + 1], where R[n] is the bootstrap.

    The loop is over Python floats: for the five steps of a segment it is faster than any vectorised form.

    Args:
        rewards: [n], in order of time; n may be zero.
        bootstrap: V of the state after the last reward, or 0 if the episode ended there.
        gamma: Discount factor of one step.

    Returns:
        [n] float32, computed in double precision.
    """
    total = float(bootstrap)
    returns = [float(reward) for reward in rewards]
    for i in range(len(returns) - 1, -1, -1):
        total = returns[i] = returns[i] + gamma * total
    return np.array(returns, np.float32)


def lambda_returns(
    rewards: Sequence[float] | np.ndarray,
    values: Sequence[float] | np.ndarray,
    bootstrap: float,
    gamma: float,
    gae_lambda: float,
) -> np.ndarray:
    """Return the lambda-returns of a segment.

    R[i] = rewards[i] + gamma * ((1 - lambda) * V[i + 1] + lambda * R[i + 1]), where R[n] and V[n] are the
    bootstrap.

    R[i] - V[i] is the generalized advantage estimate, the sum of the discounted one-step errors (Schulman et
    al. 2016, arXiv 1506.02438, equation 16). With lambda 1 these are the n-step returns.

    Args:
        rewards: [n], in order of time; n may be zero.
        values: [n], V of the state before each reward.
        bootstrap: V of the state after the last reward, or 0 if the episode ended there.
        gamma: Discount factor of one step.
        gae_lambda: Weight of longer returns against shorter ones, 0 to 1.

    Returns:
        [n] float32, computed in double precision.
    """
    total = next_value = float(bootstrap)
    returns = [float(reward) for reward in rewards]
    for i in range(len(returns) - 1, -1, -1):
        total = returns[i] = returns[i] + gamma * ((1 - gae_lambda) * next_value + gae_lambda * total)
        next_value = float(values[i])
    return np.array(returns, np.float32)

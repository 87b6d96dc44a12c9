"""CartPole without velocities: a task that a policy without memory cannot solve."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.envs.classic_control import CartPoleEnv

POSITIONS = [0, 2]
"""Places of the cart's position and the pole's angle in CartPole's observations."""


class CartPoleMemory(CartPoleEnv):
    """CartPole whose observations are the position of the cart and the angle of the pole, float32 [2].

    The velocities, on which good actions depend, must be inferred from earlier observations.
    """

    def __init__(self, **options: Any):
        super().__init__(**options)
        seen: Any = self.observation_space
        self.observation_space = spaces.Box(seen.low[POSITIONS], seen.high[POSITIONS])

    def reset(self, **options: Any) -> tuple[np.ndarray, dict[str, Any]]:
        observation, info = super().reset(**options)
        return observation[POSITIONS], info

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        observation, *outcome = super().step(action)
        return observation[POSITIONS], *outcome

"""A segment of experience in the making: an agent's steps, which are trained on together."""

from __future__ import annotations

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.rollouts.columns import SegmentEnd, Step
from ga3c_tf.rollouts.queues import RolloutBuffers
from ga3c_tf.rollouts.returns import lambda_returns, nstep_returns


class Segment:
    """Up to t_max steps of one agent, written straight into its slot of the shared memory."""

    def __init__(self, memory: RolloutBuffers, slot: int, state: np.ndarray):
        self.slot = slot
        self.length = 0
        self._memory = memory
        self._rewards: list[float] = []
        memory.states[slot, 0] = state

    @property
    def newest(self) -> int:
        """Index, as the prediction queue carries it, of the state after the last step."""
        return self._memory.state_index(self.slot, self.length)

    @property
    def full(self) -> bool:
        """Whether it has t_max steps."""
        return self.length == self._memory.t_max

    def append(self, step: Step, next_state: np.ndarray) -> None:
        """Add one step and the state that it led to."""
        place = self.slot, self.length
        for column, value in zip(self._memory.of_step, step, strict=True):
            column[place] = value
        self._rewards.append(step.rewards)
        self.length += 1
        self._memory.states[self.slot, self.length] = next_state

    def close(self, end: SegmentEnd, config: Config) -> None:
        """Write how it ends, and the returns, which bootstrap from the value of the newest state."""
        memory = self._memory
        slot = self.slot
        if config.advantage == "gae":
            values = memory.mu_values[slot, : self.length].tolist()
            returns = lambda_returns(self._rewards, values, end.bootstrap_values, config.gamma, config.gae_lambda)
        else:
            returns = nstep_returns(self._rewards, end.bootstrap_values, config.gamma)
        memory.returns[slot, : self.length] = returns
        memory.lengths[slot] = self.length
        for column, value in zip(memory.of_end, end, strict=True):
            column[slot] = value

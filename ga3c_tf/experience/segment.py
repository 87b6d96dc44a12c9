"""A segment while an agent collects it: consecutive steps, which are trained on together."""

from __future__ import annotations

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.columns import SegmentEnd, Step
from ga3c_tf.experience.returns import lambda_returns, nstep_returns


class Segment:
    """Up to t_max consecutive steps of one agent, written directly into a slot of the shared memory.

    Args:
        memory: buffers shared with the server.
        slot: segment slot to fill.
        state: state before the first step.

    Attributes:
        slot: segment slot that is filled.
        length: number of steps so far.
    """

    def __init__(self, memory: RolloutBuffers, slot: int, state: np.ndarray):
        self.slot = slot
        self.length = 0
        self._memory = memory
        self._rewards: list[float] = []
        self._agent = slot // memory.slots_per_agent
        memory.states[slot, 0] = state
        if memory.has_carry:
            memory.segment_columns["carries"][slot] = memory.carry[self._agent]
            memory.segment_columns["carry_versions"][slot] = memory.carry_version[self._agent]

    @property
    def newest(self) -> int:
        """Index of the state after the last step, as used in the prediction queue."""
        return self._memory.state_index(self.slot, self.length)

    @property
    def full(self) -> bool:
        """Whether the segment has t_max steps."""
        return self.length == self._memory.t_max

    def append(self, step: Step, next_state: np.ndarray) -> None:
        """Add one step and the state that follows it."""
        place = self.slot, self.length
        for column, value in zip(self._memory.of_step, step, strict=True):
            column[place] = value
        self._rewards.append(step.rewards)
        self.length += 1
        self._memory.states[self.slot, self.length] = next_state
        if self._memory.has_carry:
            self._memory.advance(self._agent)

    def close(self, end: SegmentEnd, config: Config) -> None:
        """Write how the segment ends, and its returns, which bootstrap from the value in `end`."""
        memory = self._memory
        slot = self.slot
        if config.return_lambda is None:
            returns = nstep_returns(self._rewards, end.bootstrap_values, config.gamma)
        else:
            values = memory.mu_values[slot, : self.length].tolist()
            returns = lambda_returns(
                self._rewards, values, end.bootstrap_values, config.gamma, config.return_lambda
            )
        memory.returns[slot, : self.length] = returns
        memory.lengths[slot] = self.length
        for column, value in zip(memory.of_end, end, strict=True):
            column[slot] = value

"""Merges segments into training batches."""

from __future__ import annotations

import numpy as np

from ga3c_tf.rollouts.buffers import RolloutBuffers
from ga3c_tf.rollouts.columns import SEGMENT_COLUMNS, Batch


class BatchBuilder:
    """Merges segments until the batch exceeds the minimum (section 5.4, the authors' ThreadTrainer).

    Each segment is copied out of its slot, so that the slot can be filled again while the batch still grows. For one
    thread at a time.

    Args:
        memory: buffers shared with the agents.
        minimum: number of states that a batch must exceed.

    Attributes:
        states: number of states gathered so far, in all batches.
    """

    def __init__(self, memory: RolloutBuffers, minimum: int):
        self.states = 0
        self._memory = memory
        self._minimum = minimum
        self._most = minimum + memory.t_max
        self._of_steps = {"states": memory.states, **memory.step_columns}
        self._begin()

    def copy(self, slot: int) -> int:
        """Copy the segment in `slot` behind the batch, and return its length. It counts once it is added."""
        start = self._size
        length = int(self._memory.lengths[slot])
        end = start + length
        for name, source in self._of_steps.items():
            self._steps[name][start:end] = source[slot, :length]
        self._steps["agents"][start:end] = slot // self._memory.slots_per_agent
        return length

    def add(self, slot: int, length: int) -> Batch | None:
        """Add the segment that was copied last; return the batch if it now exceeds the minimum, else None."""
        self._size += length
        self.states += length
        for name, source in self._memory.segment_columns.items():
            self._segments[name].append(source[slot])
        if self._size <= self._minimum:
            return None
        steps = {name: column[: self._size] for name, column in self._steps.items()}
        segments: dict[str, np.ndarray] = {
            name: np.array(values, SEGMENT_COLUMNS[name]) for name, values in self._segments.items()
        }
        self._begin()
        return Batch(**steps, **segments)

    def _begin(self) -> None:
        self._size = 0
        self._steps = {
            name: np.empty((self._most, *source.shape[2:]), source.dtype) for name, source in self._of_steps.items()
        }
        self._steps["agents"] = np.empty(self._most, np.int64)
        self._segments: dict[str, list] = {name: [] for name in SEGMENT_COLUMNS}

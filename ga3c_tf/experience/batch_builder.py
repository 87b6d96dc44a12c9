"""Merges segments into training batches."""

from __future__ import annotations

import numpy as np

from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.columns import Batch


class BatchBuilder:
    """Merges segments until the batch exceeds the minimum (section 5.4, the authors' ThreadTrainer).

    A `BatchSource`. Each segment is copied out of its slot, so that the slot can be filled again while the
    batch still grows.

    Args:
        memory: buffers shared with the agents.
        minimum: number of states that a batch must exceed.

    Attributes:
        states: number of states taken in so far, in all batches.
    """

    def __init__(self, memory: RolloutBuffers, minimum: int):
        self.states = 0
        self._memory = memory
        self._minimum = minimum
        self._of_steps = {"states": memory.states, **memory.step_columns}
        most = minimum + memory.t_max  # steps, and so segments: each has a step
        self._layout = {
            name: ((most, *source.shape[2:]), source.dtype) for name, source in self._of_steps.items()
        }
        self._layout["agents"] = ((most,), np.dtype(np.int64))
        self._segment_layout = {
            name: ((most, *source.shape[1:]), source.dtype) for name, source in memory.segment_columns.items()
        }
        self._complete: Batch | None = None
        self._begin()

    def copy(self, slot: int, generation: int = 0) -> None:
        """Copy the segment in `slot` behind the batch. It counts once it is added."""
        start = self._size
        length = int(self._memory.lengths[slot])
        end = start + length
        steps = self._steps
        for name, source in self._of_steps.items():
            steps[name][start:end] = source[slot, :length]
        steps["agents"][start:end] = slot // self._memory.slots_per_agent
        for name, source in self._memory.segment_columns.items():
            self._segments[name][self._count] = source[slot]
        self._copied = length

    def add(self) -> None:
        """Add the segment that was copied last."""
        self._size += self._copied
        self._count += 1
        self.states += self._copied
        if self._size > self._minimum:
            self._complete = self._end()

    def due(self) -> Batch | None:
        """Return the batch if it exceeds the minimum, else None."""
        batch = self._complete
        self._complete = None
        return batch

    def _end(self) -> Batch:
        """Return the batch as it is, and begin the next one."""
        columns = {name: column[: self._size] for name, column in self._steps.items()}
        columns |= {name: column[: self._count] for name, column in self._segments.items()}
        self._begin()
        return Batch(**columns)

    def _begin(self) -> None:
        self._size = self._count = 0  # steps and segments in the batch so far
        self._steps: dict[str, np.ndarray] = {
            name: np.empty(shape, dtype) for name, (shape, dtype) in self._layout.items()
        }
        self._segments: dict[str, np.ndarray] = {
            name: np.empty(shape, dtype) for name, (shape, dtype) in self._segment_layout.items()
        }

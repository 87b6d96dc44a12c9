"""A limit of GA3C's policy lag: segments that are too old are dropped instead of trained on."""

from __future__ import annotations

from collections.abc import Callable

from ga3c_tf.experience.buffers import RolloutBuffers


class LagLimit:
    """Decides which segments are dropped: those whose oldest step is more than `most` updates behind the
    model.

    A segment is checked when a trainer takes it. Updates between this check and the training on the segment
    add to its lag: updates by other trainers, and those on the batches and minibatches before its own.

    Args:
        most: largest policy lag that is allowed, in updates; None for no limit.
        memory: buffers shared with the agents.
        version: returns the number of updates done.

    Attributes:
        dropped_steps: number of steps in the segments that were dropped.
    """

    def __init__(self, most: int | None, memory: RolloutBuffers, version: Callable[[], int]):
        self._most = most
        self._memory = memory
        self._version = version
        self.dropped_steps = 0

    def drops(self, slot: int) -> bool:
        """Return whether `slot`'s segment is too old, and count its steps if so. For one thread at a time."""
        if self._most is None:
            return False
        length = int(self._memory.lengths[slot])
        oldest = int(self._memory.step_columns["versions"][slot, :length].min())
        too_old = self._version() - oldest > self._most
        self.dropped_steps += length * too_old
        return too_old

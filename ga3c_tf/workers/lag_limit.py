"""Segments that are too old to be trained on: GA3C's policy lag with a bound."""

from __future__ import annotations

from ga3c_tf.rollouts.queues import RolloutBuffers


class LagLimit:
    """Tells which segments are to be dropped: those whose oldest step is more than so many updates behind the model.

    A segment is looked at when a trainer takes it. Updates that are made before it is trained on add to its lag: those
    of other trainers, and of the batches and minibatches before its own.

    Args:
        most: updates; None for no limit.
        memory: shared with the agents.
        model: its `version` is the number of updates done.

    Attributes:
        dropped_steps: steps of the segments that were dropped.
    """

    def __init__(self, most: int | None, memory: RolloutBuffers, model):
        self._most = most
        self._memory = memory
        self._model = model
        self.dropped_steps = 0

    def drops(self, slot: int) -> bool:
        """Whether the segment in `slot` is too old; it is counted then. Called by one thread at a time."""
        if self._most is None:
            return False
        length = int(self._memory.lengths[slot])
        oldest = int(self._memory.step_columns["versions"][slot, :length].min())
        too_old = int(self._model.version.numpy()) - oldest > self._most
        self.dropped_steps += length * too_old
        return too_old

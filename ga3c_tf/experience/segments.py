"""From the training queue to batches: takes a segment, hands it to the batches, and its slot back."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.contracts import BatchSource
from ga3c_tf.experience.lag_limit import LagLimit
from ga3c_tf.experience.queues import IndexQueue


class SlotOwners(Protocol):
    """Who fills the segment slots: agent processes, behind `ReplyPipes`, or agents of this process."""

    def is_valid(self, slot: int, generation: int) -> bool:
        """Return whether the slot's owner is still the one that sent a message of this generation."""

    def released(self, slot: int, generation: int) -> None:
        """Hand a slot back to the agent that fills it, if its process is still of this generation."""


class FreeSlots:
    """The segment slots of a run whose agents are in this process, or each alone in its own, and never
    replaced.

    Args:
        memory: the buffers with the slots.

    Attributes:
        of_agent: by agent, the slots that it may fill.
    """

    def __init__(self, memory: RolloutBuffers):
        self.of_agent = [deque(memory.slots_of(agent)) for agent in range(memory.num_agents)]
        self._slots_per_agent = memory.slots_per_agent

    def is_valid(self, slot: int, generation: int) -> bool:
        return True

    def released(self, slot: int, generation: int = 0) -> None:
        self.of_agent[slot // self._slots_per_agent].append(slot)


class Segments:
    """The segments that wait for training, and the batches that come from them. For one thread at a time.

    Args:
        messages: the training queue, whose messages are slots with finished segments.
        owners: owners of the slots.
        source: takes the segments in and gives the batches.
        limit: decides which segments are too old; None for no limit.

    Attributes:
        messages: the training queue.
    """

    def __init__(
        self,
        messages: IndexQueue,
        owners: SlotOwners,
        source: BatchSource,
        limit: LagLimit | None = None,
    ):
        self.messages = messages
        self._owners = owners
        self._source = source
        self._limit = limit

    @property
    def gathered(self) -> int:
        """Number of states taken in so far."""
        return self._source.states

    def waiting(self) -> Iterator[Batch]:
        """Yield the batches that the waiting segments make due, without waiting for others."""
        while (batch := self.due()) is not None or len(self.messages):
            if batch is not None:
                yield batch
            else:
                self.add(self.messages.get(1))

    def due(self) -> Batch | None:
        """Return a batch, or None if there is none without another segment."""
        return self._source.due()

    def add(self, message: np.ndarray) -> None:
        """Take in the segment of a message.

        Left out are a segment that is too old, and one whose agent process has been replaced since it was
        sent.

        Args:
            message: MESSAGE [1], slot of the segment and generation of the process that sent it.
        """
        [(slot, generation)] = message.tolist()
        if not self._owners.is_valid(slot, generation):
            return
        if self._limit is None or not self._limit.drops(slot):
            self._source.copy(slot, generation)
            if not self._owners.is_valid(slot, generation):  # the successor may have written into the copy
                return
            self._source.add()
        self._owners.released(slot, generation)

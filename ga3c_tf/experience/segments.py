"""From the training queue to batches: takes a segment, copies it, and hands its slot back."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from ga3c_tf.experience.batch_builder import BatchBuilder
from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.columns import Batch
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
    """The segments that wait for training, and the batch that grows from them. For one thread at a time.

    Args:
        memory: buffers shared with the agents.
        messages: the training queue, whose messages are slots with finished segments.
        owners: owners of the slots.
        minimum: number of states that a batch must exceed.
        limit: decides which segments are too old; None for no limit.

    Attributes:
        messages: the training queue.
    """

    def __init__(
        self,
        memory: RolloutBuffers,
        messages: IndexQueue,
        owners: SlotOwners,
        minimum: int,
        limit: LagLimit | None = None,
    ):
        self.messages = messages
        self._owners = owners
        self._limit = limit
        self._builder = BatchBuilder(memory, minimum)

    @property
    def gathered(self) -> int:
        """Number of states put into batches so far, including the batch that still grows."""
        return self._builder.states

    def waiting(self) -> Iterator[Batch]:
        """Yield the batches that the waiting segments complete, without waiting for others."""
        while len(self.messages):
            batch = self.add(self.messages.get(1))
            if batch is not None:
                yield batch

    def add(self, message: np.ndarray) -> Batch | None:
        """Add the segment of a message, and return the batch if it is now complete.

        Left out are a segment that is too old, and one whose agent process has been replaced since it was
        sent.

        Args:
            message: MESSAGE [1], slot of the segment and generation of the process that sent it.
        """
        [(slot, generation)] = message.tolist()
        if not self._owners.is_valid(slot, generation):
            return None
        batch = None
        if self._limit is None or not self._limit.drops(slot):
            length = self._builder.copy(slot)
            if not self._owners.is_valid(slot, generation):  # the successor may have written into the copy
                return None
            batch = self._builder.add(length)
        self._owners.released(slot, generation)
        return batch

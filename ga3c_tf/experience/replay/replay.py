"""Training batches from a replay memory, as many as the training intensity asks for."""

from __future__ import annotations

import threading

import numpy as np

from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.replay.intensity import TrainingIntensity
from ga3c_tf.experience.replay.memory import CollectedSegment, ReplayMemory


class Replay:
    """Takes segments into a replay memory, and samples the batches that are due. A `BatchSource`.

    Segments and batches are for one thread at a time; `feedback` is for any.

    Args:
        buffers: buffers shared with the agents.
        memory: the replay memory.
        intensity: decides when a batch is due.
        batch_size: number of steps in a batch.
    """

    def __init__(
        self, buffers: RolloutBuffers, memory: ReplayMemory, intensity: TrainingIntensity, batch_size: int
    ):
        self._buffers = buffers
        self._memory = memory
        self._intensity = intensity
        self._batch_size = batch_size
        self._lock = threading.Lock()

    @property
    def states(self) -> int:
        """Number of states taken in so far."""
        return self._intensity.collected

    def copy(self, slot: int, generation: int) -> None:
        """Copy the segment in `slot`, which a process of this generation has sent."""
        buffers = self._buffers
        store = self._memory.store
        length = int(buffers.lengths[slot])
        columns = {
            name: buffers.columns[name][slot, :length].copy() for name in ("actions", "rewards", "versions")
        }
        states = buffers.states[slot, : length + 1]
        self._copied = CollectedSegment(
            agent=slot // buffers.slots_per_agent,
            generation=generation,
            older=store.older(states[0]).copy(),
            frames=store.newest(states).copy(),
            terminated=bool(buffers.columns["terminated"][slot]),
            truncated=bool(buffers.columns["truncated"][slot]),
            **columns,
        )

    def add(self) -> None:
        """Take in the segment that was copied last."""
        with self._lock:
            self._memory.add(self._copied)
        self._intensity.collected += len(self._copied.actions)

    def due(self) -> Batch | None:
        """Return a batch if one is due, else None."""
        if not (self._memory.can_sample and self._intensity.is_due(self._batch_size)):
            return None
        self._intensity.trained += self._batch_size
        with self._lock:
            return self._memory.sample(self._batch_size)

    def feedback(self, batch: Batch, errors: np.ndarray) -> None:
        """Give the steps of a batch priorities by their errors, float32 [B]."""
        with self._lock:
            self._memory.set_errors(batch, errors)

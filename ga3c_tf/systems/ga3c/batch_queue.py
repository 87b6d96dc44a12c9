"""Batches for GA3C's trainers, from the training queue, and the permission to train on them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ga3c_tf.config import Config
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.segments import Segments
from ga3c_tf.workers.thread import WorkerErrors


class BatchQueue:
    """Gives batches to all trainers, and owns the order, the number and the end of their updates.

    Trainers take turns to gather a batch, so that a batch stays whole even if a trainer is removed meanwhile.
    They train simultaneously, as far as `permits` allows. Nobody trains while the queue is `paused`.

    Args:
        config: settings of the run; those for the size of the queue are used.
        segments: segments that wait for training.
        permits: number of simultaneous updates allowed at first.
        errors: is told of an update that fails.

    Attributes:
        permits: number of simultaneous updates allowed now.
        num_agents: number of agents that send segments, from which `is_behind` knows the size of the queue.
    """

    def __init__(self, config: Config, segments: Segments, permits: int, errors: WorkerErrors):
        self.permits = permits
        self.num_agents = config.num_agents
        self._config = config
        self._segments = segments
        self._errors = errors
        self._gathering = threading.Lock()
        self._changed = threading.Condition()
        self._gathered = self._begun = 0  # numbers of the newest batch gathered, and of the newest trained on
        self._running = self._pauses = 0
        self._closed = False

    @contextmanager
    def next(self) -> Iterator[Batch | None]:
        """Wait for a batch and for the permission to train on it, which lasts as long as the block.

        The batch is None if this trainer should end.
        """
        with self._gathering:
            batch = self._gather()
            number = self._gathered
        if batch is None or not self._begin(number):
            yield None
            return
        try:
            yield batch
        except BaseException as error:
            self._errors.add(error)  # before the update ends: no periodic checkpoint is written until then
            raise
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def close(self) -> None:
        """End all trainers. They finish the updates that they have begun.

        Of the other batches only those older than a batch already trained on are still trained on, so that no
        batch is left out between two that are.
        """
        self._closed = True
        self._segments.messages.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Wait for the running updates, and let no other begin during the block."""
        with self._changed:
            self._pauses += 1
        try:
            with self._changed:
                self._changed.wait_for(lambda: not self._running)
            yield
        finally:
            with self._changed:
                self._pauses -= 1
                self._changed.notify_all()

    def permit_one_more(self) -> None:
        """Allow one more simultaneous update from now on."""
        with self._changed:
            self.permits += 1
            self._changed.notify_all()

    def __len__(self) -> int:
        """Return the number of segments that wait."""
        return len(self._segments.messages)

    @property
    def gathered_states(self) -> int:
        """Number of states taken in so far."""
        return self._segments.gathered

    @property
    def is_behind(self) -> bool:
        """Whether the queue is more than half full."""
        room = self.num_agents * self._config.segments_per_agent
        return 2 * len(self) > min(room, self._config.waiting_segments or room)

    @property
    def is_full(self) -> bool:
        """Whether as many segments wait as may, so that agents should get no more predictions."""
        most = self._config.waiting_segments
        return most is not None and len(self) >= most and not self._closed

    def _gather(self) -> Batch | None:
        """Return the next batch, or None if the trainer that calls should end."""
        while (batch := self._segments.due()) is None:
            message = self._segments.messages.get(1)
            if not len(message):
                return None
            if not self._closed:  # else it only reads up to the end: nobody could write it to a full queue
                self._segments.add(message)
        self._gathered += 1
        return batch

    def _begin(self, number: int) -> bool:
        """Wait until an update on the batch of this number may begin; False if it may not, after the end."""
        with self._changed:
            self._changed.wait_for(lambda: not self._pauses and self._running < self.permits)
            if self._closed and number > self._begun:
                return False
            self._begun = max(self._begun, number)
            self._running += 1
            return True

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

    Trainers take turns to gather batches, so that a batch stays whole even if a trainer is removed meanwhile.
    They train simultaneously, as far as `permits` allows. Nobody trains while the queue is `paused`.

    Args:
        config: settings of the run; those for the size of the queue are used.
        segments: segments that wait for training.
        permits: number of simultaneous updates allowed at first.
        errors: is told of an update that fails.
        most: number of batches that a trainer gets at most.

    Attributes:
        permits: number of simultaneous updates allowed now.
        num_agents: number of agents that send segments, from which `is_behind` knows the size of the queue.
    """

    def __init__(self, config: Config, segments: Segments, permits: int, errors: WorkerErrors, most: int = 1):
        self.permits = permits
        self.num_agents = config.num_agents
        self._config = config
        self._segments = segments
        self._errors = errors
        self._most = most
        self._gathering = threading.Lock()
        self._changed = threading.Condition()
        self._gathered = self._begun = 0  # numbers of the newest batch gathered, and of the newest trained on
        self._running = self._pauses = 0
        self._closed = False

    @contextmanager
    def next(self) -> Iterator[list[Batch]]:
        """Wait for a batch and for the permission to train on it, which lasts as long as the block.

        With it come those that already wait, in order, up to the number that one call of the model takes.
        There is none if this trainer should end.
        """
        with self._gathering:
            batches = self._gather()
            number = self._gathered
        if not batches or not self._begin(number):
            yield []
            return
        try:
            yield batches
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
    def is_behind(self) -> bool:
        """Whether the queue is more than half full."""
        room = self.num_agents * self._config.segments_per_agent
        return 2 * len(self) > min(room, self._config.waiting_segments or room)

    @property
    def is_full(self) -> bool:
        """Whether as many segments wait as may, so that agents should get no more predictions."""
        most = self._config.waiting_segments
        return most is not None and len(self) >= most and not self._closed

    def _gather(self) -> list[Batch]:
        """Return the next batches; none if the trainer that calls should end. It waits for the first only."""
        batches: list[Batch] = []
        messages = self._segments.messages
        while len(batches) < self._most:
            batch = self._segments.due()
            if batch is not None:
                batches.append(batch)
            elif batches and not len(messages):
                break
            elif not len(message := messages.get(1)):
                if batches:
                    messages.end_later()
                break
            elif not self._closed:  # else it only reads up to the end: nobody could write it to a full queue
                self._segments.add(message)
        self._gathered += len(batches)
        return batches

    def _begin(self, number: int) -> bool:
        """Wait until updates on batches up to this number may begin; False if they may not, after the end."""
        with self._changed:
            self._changed.wait_for(lambda: not self._pauses and self._running < self.permits)
            if self._closed and number > self._begun:
                return False
            self._begun = max(self._begun, number)
            self._running += 1
            return True

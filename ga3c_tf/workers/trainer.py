"""The trainer thread: merges segments of the training queue into batches and updates the model with them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from ga3c_tf.errors import Diverged
from ga3c_tf.rollouts.buffers import RolloutBuffers
from ga3c_tf.rollouts.columns import Batch
from ga3c_tf.rollouts.divergence import NO_SEGMENTS, UNKNOWN, segment_lag
from ga3c_tf.rollouts.queues import ENDED, IndexQueue
from ga3c_tf.rollouts.reply_pipes import ReplyPipes
from ga3c_tf.runs.stats import Stats
from ga3c_tf.workers.failures import FailureBudget
from ga3c_tf.workers.minibatches import Minibatches
from ga3c_tf.workers.thread import Worker


class BatchBuilder:
    """Merges segments until the batch exceeds the minimum (section 5.4, the authors' ThreadTrainer).

    All trainers share one builder and take turns, so that a batch stays whole even if a trainer is removed meanwhile.
    Each segment is copied out of its slot at once, so that the slot can be filled again while the batch still grows.

    Args:
        memory: buffers shared with the agents.
        minimum: number of states that a batch must exceed.
        drops: returns whether the segment in a slot is left out.

    Attributes:
        turn: lock held by the trainer that gathers segments.
        states: number of states gathered so far.
        closed: set when the run ends; segments that still wait are then not trained on.
    """

    def __init__(self, memory: RolloutBuffers, minimum: int, drops: Callable[[int], bool] = lambda slot: False):
        self.turn = threading.Lock()
        self.closed = False
        self.states = 0
        self._gathered = self._begun = 0
        self._beginning = threading.Lock()
        self._memory = memory
        self._minimum = minimum
        self._drops = drops
        self._of_steps = {"states": memory.states, **memory.step_columns}
        most = minimum + memory.t_max  # steps, and so segments: each has a step
        self._layout = {name: ((most, *source.shape[2:]), source.dtype) for name, source in self._of_steps.items()}
        self._layout["agents"] = ((most,), np.dtype(np.int64))
        self._segment_layout = {
            name: ((most, *source.shape[1:]), source.dtype) for name, source in memory.segment_columns.items()
        }
        self._begin()

    def add(self, slot: int) -> Batch | None:
        """Add the segment in `slot`; return the batch if it now exceeds the minimum, else None."""
        if self._drops(slot):
            return None
        start = self._size
        length = int(self._memory.lengths[slot])
        self._size += length
        end = self._size
        self.states += length
        steps, segments = self._steps, self._segments
        for name, source in self._of_steps.items():
            steps[name][start:end] = source[slot, :length]
        steps["agents"][start:end] = slot // self._memory.slots_per_agent
        count = self._count
        for name, source in self._memory.segment_columns.items():
            segments[name][count] = source[slot]
        self._count += 1
        if end <= self._minimum:
            return None
        columns = {name: column[:end] for name, column in steps.items()}
        columns |= {name: column[: self._count] for name, column in segments.items()}
        self._begin()
        return Batch(self._memory.schema, **columns)

    def next_number(self) -> int:
        """Count the batch that `add` has just returned, and return its number. The caller must hold `turn`."""
        self._gathered += 1
        return self._gathered

    def may_start(self, number: int) -> bool:
        """Return whether an update on this batch may start.

        After the end of the run, only a batch that is older than one already started may be trained on. No batch is
        thus left out between two that are trained on.
        """
        with self._beginning:
            if self.closed and number > self._begun:
                return False
            self._begun = max(self._begun, number)
            return True

    def _begin(self) -> None:
        self._size = self._count = 0  # steps and segments in the batch so far
        self._steps: dict[str, np.ndarray] = {
            name: np.empty(shape, dtype) for name, (shape, dtype) in self._layout.items()
        }
        self._segments: dict[str, np.ndarray] = {
            name: np.empty(shape, dtype) for name, (shape, dtype) in self._segment_layout.items()
        }


def train(batch: Batch, model, stats: Stats, skipped: FailureBudget, learning_rate: float, beta: float) -> None:
    """Update the model once, and record the policy lag: the updates between choosing each action and training on it.

    An update whose losses or gradients are infinite or not-a-number is skipped: the model does not change, and
    `skipped` counts the update.

    Raises:
        Diverged: too many updates have been skipped.
    """
    result = model.train(batch, learning_rate, beta)
    if not result.applied:
        skipped.add(
            Diverged(
                f"skipped update {result.version + 1}: policy loss {result.policy_loss}, value loss "
                f"{result.value_loss}, {len(batch.states)} states, returns {batch.returns.min()} to "
                f"{batch.returns.max()}; a lower --learning-rate or --grad-clip-norm may help"
            )
        )
        return
    before = result.version - 1
    measured = result.divergence is not UNKNOWN and hasattr(batch, "lengths")
    within = segment_lag(batch, before) if measured else NO_SEGMENTS
    losses = (result.policy_loss, result.value_loss, result.entropy)
    stats.trained(before - batch.versions, *losses, batch.agents, result.divergence, within)


class UpdateGate:
    """Limits the number of simultaneous updates; none starts while the gate is closed.

    Args:
        permits: number of simultaneous updates allowed at first.

    Attributes:
        permits: number of simultaneous updates allowed now.
    """

    def __init__(self, permits: int):
        self.permits = permits
        self._running = self._closers = 0
        self._changed = threading.Condition()

    def permit_one_more(self) -> None:
        """Allow one more simultaneous update from now on."""
        with self._changed:
            self.permits += 1
            self._changed.notify_all()

    @contextmanager
    def update(self) -> Iterator[None]:
        """Wait for a permit and for an open gate, and hold the permit during the block."""
        with self._changed:
            self._changed.wait_for(lambda: not self._closers and self._running < self.permits)
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Close the gate during the block: wait for the running updates, and let no other begin."""
        with self._changed:
            self._closers += 1
        try:
            with self._changed:
                self._changed.wait_for(lambda: not self._running)
            yield
        finally:
            with self._changed:
                self._closers -= 1
                self._changed.notify_all()


class Trainer(Worker):
    """One of N_T trainer threads (section 4.1).

    Args:
        builder: merges segments; shared by all trainers.
        rates: returns the current learning rate and beta.
        gate: limits the number of simultaneous updates; shared by all trainers.
        skipped: counts the skipped updates.
        minibatches: splits each batch into minibatches; shared by all trainers.
        drained: called with the number of an agent process that has died, after all of its segments have been taken.
    """

    def __init__(
        self,
        builder: BatchBuilder,
        model,
        training_queue: IndexQueue,
        answers: ReplyPipes,
        stats: Stats,
        rates: Callable[[], tuple[float, float]],
        gate: UpdateGate,
        skipped: FailureBudget,
        minibatches: Minibatches,
        drained: Callable[[int], None],
        on_error: Callable[[], None],
    ):
        super().__init__("trainer", on_error)
        self._builder = builder
        self._model = model
        self._stats = stats
        self._rates = rates
        self._training_queue = training_queue
        self._answers = answers
        self._gate = gate
        self._skipped = skipped
        self._minibatches = minibatches
        self._drained = drained

    def work(self) -> None:
        while (gathered := self._gather()) is not None:
            number, batch = gathered
            with self._gate.update():
                if not self._builder.may_start(number):
                    return
                try:
                    for part in self._minibatches.of(batch):
                        train(part, self._model, self._stats, self._skipped, *self._rates())
                except Diverged as error:
                    self.error = error  # set while the gate is held, so before anyone can save these weights
                    raise

    def _gather(self) -> tuple[int, Batch] | None:
        """Return the number of the next batch and the batch, or None if this trainer should end."""
        with self._builder.turn:
            while len(slots := self._training_queue.get(1)) and not self._builder.closed:
                slot = int(slots[0])
                if slot & ENDED:
                    self._drained(slot & ~ENDED)
                    continue
                batch = self._builder.add(slot)
                self._answers.released(slot)
                if batch is not None:
                    return self._builder.next_number(), batch
            return None

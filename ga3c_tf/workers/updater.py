"""Makes the updates on a training batch: one, or those of several epochs and minibatches."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

import numpy as np

from ga3c_tf.config.rates import Rates
from ga3c_tf.errors import Diverged
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.contracts import Learner, Observer, UpdateRecord, UpdateResult
from ga3c_tf.experience.divergence import NO_SEGMENTS, UNKNOWN, segment_lag
from ga3c_tf.workers.minibatches import Minibatches


class Updater:
    """Trains a learner on batches, and tells the observer of the policy lag and the results. Thread-safe.

    An update whose losses or gradients are infinite or not-a-number is skipped: the learner does not change.

    Args:
        learner: learner that is trained.
        observer: is told of each update.
        minibatches: splits each batch into the minibatches of its updates.
        rates: returns the current rates.
        feedback: is told of the errors, float32 [B], that an update found on its batch.
    """

    def __init__(
        self,
        learner: Learner,
        observer: Observer,
        minibatches: Minibatches,
        rates: Callable[[], Rates],
        feedback: Callable[[Batch, np.ndarray], None] | None = None,
    ):
        self._learner = learner
        self._observer = observer
        self._minibatches = minibatches
        self._rates = rates
        self._feedback = feedback

    def train_on(self, batches: Iterable[Batch]) -> None:
        """Make all updates on these batches, with as few calls of the learner as it allows.

        Raises:
            Diverged: too many updates have been skipped.
        """
        whole_segments = self._learner.needs_segments
        parts = itertools.chain.from_iterable(
            self._minibatches.of(batch, whole_segments) for batch in batches
        )
        while call := list(itertools.islice(parts, self._learner.updates_per_call)):
            results = self._learner.train(call, self._rates())
            for part, result in zip(call, results, strict=True):
                self._tell(part, result)

    def _tell(self, batch: Batch, result: UpdateResult) -> None:
        if result.applied:
            self._observer.updated(_record(batch, result))
            if self._feedback and result.errors is not None:
                self._feedback(batch, result.errors)
        else:
            self._observer.skipped(_skipped(batch, result))


def _record(batch: Batch, result: UpdateResult) -> UpdateRecord:
    """Return the record of an update, with the policy lag of its states."""
    before = result.version - 1
    within = NO_SEGMENTS
    if result.divergence is not UNKNOWN and hasattr(batch, "lengths"):
        within = segment_lag(batch, before)
    return UpdateRecord(before - batch.versions, batch.agents, result, within)


def _skipped(batch: Batch, result: UpdateResult) -> Diverged:
    """Return the error that ends a run in which too many updates are skipped."""
    metrics = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in result.metrics.items())
    return Diverged(
        f"skipped update {result.version + 1}: {metrics}, {len(batch.states)} states, returns "
        f"{batch.returns.min()} to {batch.returns.max()}; a lower --learning-rate or --grad-clip-global may "
        "help"
    )

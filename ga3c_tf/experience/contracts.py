"""What the workers agree on: who predicts, who learns, where batches come from, and who is told. NumPy only.

A system is a composition of these parts. GA3C, its serial version and A2C have one model as policy and
learner; in A3C each agent process has one of its own. Parts with several implementations have the same tests
for each of them, tests/workers/test_contracts.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.divergence import Divergence, SegmentLag

NO_CARRY = np.zeros(0, np.float32)
"""Initial carry of a network without memory."""


class Prediction(NamedTuple):
    """What a policy says of a batch of states.

    Attributes:
        policy: float32 [B, A], probabilities from which agents sample their actions.
        value: float32 [B], values of the states.
        version: number of updates that the weights contain at least.
        carry: float32 [B, H], carry of a recurrent network after these states; None without memory.
    """

    policy: np.ndarray
    value: np.ndarray
    version: int
    carry: np.ndarray | None = None

    def of(self, rows: np.ndarray) -> Prediction:
        """Return the prediction for some of the states, bool [B]."""
        carry = self.carry
        if carry is not None:
            carry = carry[rows]
        return Prediction(self.policy[rows], self.value[rows], self.version, carry)

    def exploring(self, epsilons: np.ndarray) -> Prediction:
        """Return it with a random action in place of the policy's with these probabilities, float32 [B]."""
        rates = epsilons[:, None]
        return self._replace(policy=(1 - rates) * self.policy + rates / self.policy.shape[1])


class UpdateResult(NamedTuple):
    """Results of one update.

    Attributes:
        metrics: what the algorithm measures, such as its losses, by the names in `Learner.metrics`: sums over
            the states of the batch, before the update.
        divergence: divergence of the policy that is updated from the policies that chose the actions.
        version: updates done so far, this one included if it was applied.
        applied: whether the model changed. An update is skipped if a loss or gradient is not finite.
        errors: float32 [B], difference between the value of each state and its target, from which a replay
            memory has its priorities; None where the learner has none.
    """

    metrics: Mapping[str, float]
    divergence: Divergence
    version: int
    applied: bool
    errors: np.ndarray | None = None


class UpdateRecord(NamedTuple):
    """An update that was made, as observers are told of it.

    Attributes:
        lags: int64 [B], policy lag of each state: updates between choosing its action and training on it, not
            counting the update that trains on it.
        agents: int64 [B], agent of each state; empty where it is not known.
        result: results of the update.
        within: lag within the segments of the batch.
    """

    lags: np.ndarray
    agents: np.ndarray
    result: UpdateResult
    within: SegmentLag


class Policy(Protocol):
    """Predicts: the model, or an A3C agent's replica of it."""

    def predict(self, states: np.ndarray, carry: np.ndarray = NO_CARRY) -> Prediction:
        """Return the prediction for states [B, *state_shape].

        With memory, `carry` is that of the network before each of them, float32 [B, H].
        """


class Learner(Protocol):
    """Learns from batches: the model, or an A3C agent's replica of it.

    Attributes:
        metrics: names of the metrics of its updates.
        updates_per_call: number of batches that one call should have at most.
        needs_segments: whether an update reads columns of segments, so that minibatches must have whole ones.
    """

    @property
    def metrics(self) -> tuple[str, ...]: ...

    @property
    def updates_per_call(self) -> int: ...

    @property
    def needs_segments(self) -> bool: ...

    def train(self, batches: Sequence[Batch], rates: Rates) -> list[UpdateResult]:
        """Make one update on each batch, in this order.

        Args:
            batches: the batches; see `columns.Batch`.
            rates: learning rate and coefficients of these updates.
        """


class BatchSource(Protocol):
    """Takes segments in, one by one, and gives batches: of these segments, or sampled from a replay memory.

    For one thread at a time.
    """

    @property
    def states(self) -> int:
        """Number of states taken in so far."""

    def copy(self, slot: int, generation: int) -> None:
        """Copy the segment in a slot, which a process of this generation has sent."""

    def add(self) -> None:
        """Take in the segment that was copied last."""

    def due(self) -> Batch | None:
        """Return the next batch, or None if it needs another segment first."""


class Observer(Protocol):
    """Is told of predictions and updates: a run's statistics, or the way to them from another process."""

    def predicted(self, states: int) -> None:
        """Count one prediction for a batch of so many states."""

    def updated(self, update: UpdateRecord) -> None:
        """Count one update that was applied."""

    def skipped(self, error: Exception) -> None:
        """Count one update that was skipped, and raise `error` if there have been too many of them."""

"""Surrogate objectives, whose ratio of probabilities is kept near 1: PPO's and those derived from it.

B is the number of states in a batch.
"""

from __future__ import annotations

from dataclasses import dataclass

from ga3c_tf.algorithms.actor_critic.advantages import Advantages
from ga3c_tf.algorithms.actor_critic.correction import Correction, Estimate
from ga3c_tf.algorithms.actor_critic.probabilities import log_policy, log_taken
from ga3c_tf.algorithms.actor_critic.reductions import total
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.divergence import Bounds
from ga3c_tf.model.tensorflow import tf

SECOND_MOMENT = 0.04
"""M2PO's bound of the mean squared logarithm of the ratios of harmful steps (Infini-AI-Lab/M2PO)."""
M2PO_RANGE = 0.7, 1.5
"""The range in which M2PO clips no ratio."""


@dataclass(frozen=True)
class ClippedSurrogate(Correction):
    """PPO's clipped surrogate objective (Schulman et al. 2017).

    A batch may be trained on several times. Its advantages stay the same in every epoch if their baseline is
    the value from the time when the action was chosen.

    Args:
        advantages: advantages with that baseline.
        clip_ratio: half the width of the clip range around 1.
        min_policy: as in `probabilities.policy`.
        floor: as in `Correction`; it holds for the entropy only.
    """

    advantages: Advantages
    clip_ratio: float
    min_policy: float = 0.0
    floor: float | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.advantages.columns, "mu_log_probabilities")

    @property
    def bounds(self) -> Bounds:
        return Bounds(lowest_ratio=1 - self.clip_ratio, highest_ratio=1 + self.clip_ratio)

    def estimate(self, batch: Batch, logarithms: tf.Tensor) -> Estimate:
        objectives = clipped_objectives(
            self.log_taken(batch),
            batch.mu_log_probabilities,
            self.advantages.of(batch),
            1 - self.clip_ratio,
            1 + self.clip_ratio,
        )
        return Estimate(objectives, batch.returns)

    def log_taken(self, batch: Batch) -> tf.Tensor:
        """Return log pi(action) [B] without the floor.

        The floor would make the ratio of a rare action wrong and stop its gradient.
        """
        return log_taken(log_policy(batch.logits, self.min_policy, None), batch.actions)


@dataclass(frozen=True)
class Decoupled(ClippedSurrogate):
    """Decoupled PPO (Hilton et al. 2021, arXiv 2110.00641): the clipped ratio is to a newer policy than mu.

    The newer policy is the proximal one, of one update ago. Its logarithms lie between those of mu and pi, in
    proportion to the updates (AReaL's log-linear approximation), which needs no second network. The steps
    are weighted by proximal / mu.

    Args:
        most: upper bound of proximal / mu.
    """

    most: float = 5.0
    reads_version: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        return (*super().columns, "versions")

    @property
    def bounds(self) -> Bounds:
        return Bounds()  # what it clips is not pi / mu

    def estimate(self, batch: Batch, logarithms: tf.Tensor) -> Estimate:
        log_pi = self.log_taken(batch)
        log_mu = batch.mu_log_probabilities
        updates = tf.cast(batch.version - batch.versions, tf.float32)
        share = tf.maximum(updates - 1.0, 0.0) / tf.maximum(updates, 1.0)
        log_ratio = share * (tf.stop_gradient(log_pi) - log_mu)
        weights = tf.minimum(tf.exp(log_ratio), self.most)
        objectives = clipped_objectives(
            log_pi, log_mu + log_ratio, self.advantages.of(batch), 1 - self.clip_ratio, 1 + self.clip_ratio
        )
        return Estimate(weights * objectives, batch.returns)


@dataclass(frozen=True)
class SecondMoment(ClippedSurrogate):
    """M2PO: the clip range is as wide as the second moment of the harmful steps' log-ratios allows.

    Harmful are steps that have become likelier and whose advantage is positive, or less likely and negative:
    another update would move them further from mu.
    """

    @property
    def bounds(self) -> Bounds:
        return Bounds()  # it has none that are the same for all batches

    def estimate(self, batch: Batch, logarithms: tf.Tensor) -> Estimate:
        log_pi = self.log_taken(batch)
        advantages = self.advantages.of(batch)
        log_ratio = tf.stop_gradient(log_pi) - batch.mu_log_probabilities
        harmful = tf.cast(advantages * log_ratio > 0, tf.float32)
        most = SECOND_MOMENT * total(batch, harmful)
        squares = harmful * tf.square(log_ratio)
        if "mask" in vars(batch):
            squares = tf.where(batch.mask, squares, 0.0)
        log_bound = tf.sqrt(largest_bound(squares, most))
        lowest = tf.minimum(tf.exp(-log_bound), M2PO_RANGE[0])
        highest = tf.maximum(tf.exp(log_bound), M2PO_RANGE[1])
        objectives = clipped_objectives(log_pi, batch.mu_log_probabilities, advantages, lowest, highest)
        return Estimate(objectives, batch.returns)


def largest_bound(values: tf.Tensor, most: tf.Tensor) -> tf.Tensor:
    """Return the largest bound x with sum(min(values, x)) <= most; infinity if sum(values) <= most.

    Args:
        values: [B] float32, at least 0.
        most: scalar float32, at least 0.

    Returns:
        Scalar float32.
    """
    ordered = tf.sort(values)
    smaller = tf.cumsum(ordered, exclusive=True)  # sum of those before
    others = tf.cast(tf.size(values) - tf.range(tf.size(values)), tf.float32)  # it and those after
    unbounded = tf.cast(smaller + others * ordered <= most, tf.int32)  # first ones, then zeros
    place = tf.minimum(tf.reduce_sum(unbounded), tf.size(values) - 1)
    bound = (most - tf.gather(smaller, place)) / tf.gather(others, place)
    return tf.where(tf.reduce_sum(values) <= most, float("inf"), bound)


def clipped_objectives(
    log_pi: tf.Tensor,
    log_mu: tf.Tensor,
    advantages: tf.Tensor,
    lowest: float | tf.Tensor,
    highest: float | tf.Tensor,
) -> tf.Tensor:
    """Compute PPO's objective of each action (Schulman et al. 2017, arXiv 1707.06347, equation 7).

    It is the smaller of ratio * advantage and clipped ratio * advantage. The ratio is
    pi(action) / mu(action). A policy change beyond the clip range therefore does not increase the objective.

    Args:
        log_pi: [B] float32, log-probability of the action taken under the current policy.
        log_mu: [B] float32, log-probability of the action taken under the policy that chose it.
        advantages: [B] float32.
        lowest: lower end of the clip range.
        highest: upper end.

    Returns:
        [B] float32, to be maximized in sum.
    """
    ratio = tf.exp(log_pi - log_mu)
    clipped = tf.clip_by_value(ratio, lowest, highest)
    return tf.minimum(ratio * advantages, clipped * advantages)

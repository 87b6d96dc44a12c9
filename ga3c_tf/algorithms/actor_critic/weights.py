"""Weights of the advantages: the first axis of a correction of policy lag.

A ratio is that of the probabilities of the action taken: under the current policy, or the proximal one of a
trust region, over that under the policy mu that chose it.

B is the number of states in a batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

from ga3c_tf.algorithms.actor_critic.advantages import Advantages, normalized
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.divergence import Bounds
from ga3c_tf.model.tensorflow import tf


class Weighted(NamedTuple):
    """Advantages of a batch and their weights. No gradient flows into them."""

    advantages: tf.Tensor  # [B] float32
    weights: tf.Tensor | float  # [B] float32
    targets: tf.Tensor  # [B] float32, targets of the values


class Weight(ABC):
    """How much the advantage of an action counts."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Columns of the trajectory that `of` reads."""

    @property
    def bounds(self) -> Bounds:
        """What is clipped of the ratios."""
        return Bounds()

    @abstractmethod
    def of(self, batch: Batch, log_pi: tf.Tensor) -> Weighted:
        """Return advantages, weights and targets of a batch.

        Args:
            batch: training batch.
            log_pi: [B] float32, log-probability of the action taken, in the numerator of the ratio.
        """


@dataclass(frozen=True)
class Unweighted(Weight):
    """The paper's advantages R - V."""

    advantages: Advantages

    @property
    def columns(self) -> tuple[str, ...]:
        return self.advantages.columns

    def of(self, batch: Batch, log_pi: tf.Tensor) -> Weighted:
        return Weighted(self.advantages.of(batch), 1.0, batch.returns)


@dataclass(frozen=True)
class ImportanceRatio(Weight):
    """Advantages R - V, weighted by importance ratios of at most `most`."""

    advantages: Advantages
    most: float

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.advantages.columns, "mu_log_probabilities")

    @property
    def bounds(self) -> Bounds:
        return Bounds() if self.most == float("inf") else Bounds.of_ratio(self.most)

    def of(self, batch: Batch, log_pi: tf.Tensor) -> Weighted:
        weights = importance_ratios(log_pi, batch.mu_log_probabilities, self.most)
        return Weighted(self.advantages.of(batch), weights, batch.returns)


@dataclass(frozen=True)
class VTrace(Weight):
    """V-trace (Espeholt et al. 2018), with advantages and value targets of its own. It needs whole segments.

    Args:
        gamma: discount factor of one step.
        rho_bar: upper bound of the ratios that weight the one-step errors.
        c_bar: upper bound of the ratios in the trace coefficients.
        t_max: maximum number of steps in a segment.
        normalize: whether advantages are normalized before the ratios weight them.
    """

    gamma: float
    rho_bar: float
    c_bar: float
    t_max: int
    normalize: bool = False
    columns = ("rewards", "mu_log_probabilities", "lengths", "bootstrap_values")

    @property
    def bounds(self) -> Bounds:
        return Bounds.of_ratio(self.rho_bar)

    def of(self, batch: Batch, log_pi: tf.Tensor) -> Weighted:
        ratios = importance_ratios(log_pi, batch.mu_log_probabilities, float("inf"))
        returns = v_trace(batch, ratios, self.gamma, self.rho_bar, self.c_bar, self.t_max)
        advantages = normalized(returns.advantages, batch) if self.normalize else returns.advantages
        return Weighted(advantages, tf.minimum(ratios, self.rho_bar), returns.targets)


def importance_ratios(log_pi: tf.Tensor, log_mu: tf.Tensor, most: float) -> tf.Tensor:
    """Return the importance ratios pi / mu of the actions taken, at most `most`. No gradient flows into them.

    As a weight of advantages, this is tensorpack's clipped importance sampling. With rho-bar for `most`, it
    is IMPALA's one-step importance sampling (Espeholt et al. 2018, arXiv 1802.01561, table 2).

    Args:
        log_pi: [B] float32, log-probability of the action taken under the current policy.
        log_mu: [B] float32, log-probability of the action taken under the policy that chose it.
        most: upper bound of a ratio, above 0.

    Returns:
        [B] float32.
    """
    return tf.minimum(tf.exp(tf.stop_gradient(log_pi) - log_mu), most)


class VTraceReturns(NamedTuple):
    """V-trace's estimates. No gradient flows into them."""

    targets: tf.Tensor  # [B] float32, targets of the values
    advantages: tf.Tensor  # [B] float32, r + gamma * next target - V, not yet weighted by min(rho_bar, ratio)


def v_trace(
    batch: Batch, ratios: tf.Tensor, gamma: float, rho_bar: float, c_bar: float, t_max: int
) -> VTraceReturns:
    """Return V-trace targets and advantages (equation 1 and section 4.2).

    The values are those of the current network. The bootstrap value of a segment is the one that its agent
    received, because a batch does not hold the state after a segment.

    Args:
        batch: training batch; its `values`, `rewards`, `lengths` and `bootstrap_values` are used.
        ratios: [B] float32, importance ratios pi / mu, not yet clipped.
        gamma: discount factor.
        rho_bar: upper bound of a ratio in a one-step error. It determines the policy whose values are
            learned.
        c_bar: upper bound of a ratio in the trace coefficients. It determines how fast the values are
            learned.
        t_max: maximum number of steps in a segment.
    """
    values = tf.stop_gradient(batch.values)
    last = tf.cumsum(batch.lengths) - 1  # the last step of each segment
    ones = tf.ones_like(batch.bootstrap_values)
    is_last = tf.tensor_scatter_nd_update(tf.zeros_like(values), last[:, None], ones)

    def following(of_steps, after_segments):
        """Return for each step the value of the next; for a segment's last step, the value given after it."""
        return tf.tensor_scatter_nd_update(tf.roll(of_steps, -1, 0), last[:, None], after_segments)

    errors = tf.minimum(ratios, rho_bar) * (
        batch.rewards + gamma * following(values, batch.bootstrap_values) - values
    )
    reach = gamma * tf.minimum(ratios, c_bar) * (1.0 - is_last)
    targets = values + backward_sums(errors, reach, t_max)
    return VTraceReturns(targets, batch.rewards + gamma * following(targets, batch.bootstrap_values) - values)


def backward_sums(terms: tf.Tensor, factors: tf.Tensor, most: int) -> tf.Tensor:
    """Return x [B] with x[i] = terms[i] + factors[i] * x[i + 1].

    This is computed by doubling, in log2(`most`) rounds over all steps at once: after n rounds, x[i] includes
    the terms of 2^n steps.

    Args:
        terms: [B] float32.
        factors: [B] float32, 0 at the last step of each segment.
        most: number of steps in the longest segment.
    """
    shift = 1
    while shift < most:
        terms += factors * _shifted(terms, shift)
        factors *= _shifted(factors, shift)
        shift *= 2
    return terms


def _shifted(values: tf.Tensor, places: int) -> tf.Tensor:
    """Return for each element the value `places` positions later, and 0 where there is none."""
    return tf.pad(values[places:], [[0, tf.minimum(places, tf.size(values))]])

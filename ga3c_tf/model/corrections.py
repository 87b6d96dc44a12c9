"""What is done about policy lag: corrections of advantages and value targets by importance ratios, as pure functions.

An importance ratio is pi(action) / mu(action): the probability of the action now, over that under the policy which
chose it. Where both are the same every ratio is 1, and each correction whose bounds are at least 1 gives exactly the
uncorrected gradient.

B is the number of states in a batch, S the number of its segments.
"""

from __future__ import annotations

from typing import NamedTuple

from ga3c_tf.model.tensorflow import tf
from ga3c_tf.rollouts.columns import Batch


class VTrace(NamedTuple):
    """V-trace's estimates; constants to the gradient."""

    targets: tf.Tensor  # [B] float32, what the values learn
    advantages: tf.Tensor  # [B] float32, r + gamma * next target - V, before their weight min(rho_bar, ratio)


def importance_ratios(log_pi: tf.Tensor, log_mu: tf.Tensor, most: float) -> tf.Tensor:
    """Return pi / mu of the actions taken, at most `most`; constants to the gradient.

    As a weight of advantages this is tensorpack's clipped importance sampling and, with `most` as rho-bar, IMPALA's
    one-step importance sampling (Espeholt et al. 2018, arXiv 1802.01561, table 2).

    Args:
        log_pi: [B] float32, log-probability of the action taken, now.
        log_mu: [B] float32, that under the policy that chose it.
        most: above 0.
    """
    return tf.minimum(tf.exp(tf.stop_gradient(log_pi) - log_mu), most)


def v_trace(batch: Batch, ratios: tf.Tensor, gamma: float, rho_bar: float, c_bar: float, t_max: int) -> VTrace:
    """Return V-trace targets and advantages (Espeholt et al. 2018, arXiv 1802.01561, equation 1 and section 4.2).

    The values are those of now; the value that a segment bootstraps from is the one that its agent was given, since a
    batch does not hold the state after a segment.

    Args:
        batch: its `values`, `rewards`, `lengths` and `bootstrap_values` are used.
        ratios: [B] float32, pi / mu.
        gamma: discount factor.
        rho_bar: most that a ratio counts in a one-step error: it decides which policy's values are learned.
        c_bar: most that a ratio counts in how far errors reach back: it decides how fast they are learned.
        t_max: most steps in a segment.
    """
    values = tf.stop_gradient(batch.values)
    last = tf.cumsum(batch.lengths) - 1  # the last step of each segment
    is_last = tf.scatter_nd(last[:, None], tf.ones_like(last, tf.float32), tf.shape(values))

    def following(of_steps, after_segments):
        """For each step, what is of the next one; after a segment's last, what is given for the segment."""
        return tf.tensor_scatter_nd_update(tf.roll(of_steps, -1, 0), last[:, None], after_segments)

    errors = tf.minimum(ratios, rho_bar) * (batch.rewards + gamma * following(values, batch.bootstrap_values) - values)
    reach = gamma * tf.minimum(ratios, c_bar) * (1.0 - is_last)
    targets = values + backward_sums(errors, reach, t_max)
    return VTrace(targets, batch.rewards + gamma * following(targets, batch.bootstrap_values) - values)


def backward_sums(terms: tf.Tensor, factors: tf.Tensor, most: int) -> tf.Tensor:
    """Return x with x[i] = terms[i] + factors[i] * x[i + 1].

    By doubling, in log2(`most`) rounds over all steps at once: after n rounds x[i] has the terms of 2^n steps.

    Args:
        terms: [B] float32.
        factors: [B] float32, 0 at the last step of each segment.
        most: steps in the longest segment.
    """
    shift = 1
    while shift < most:
        terms += factors * _shifted(terms, shift)
        factors *= _shifted(factors, shift)
        shift *= 2
    return terms


def _shifted(values: tf.Tensor, places: int) -> tf.Tensor:
    """Return the values that are so many places later, 0 where there are none."""
    return tf.pad(values[places:], [[0, tf.minimum(places, tf.size(values))]])

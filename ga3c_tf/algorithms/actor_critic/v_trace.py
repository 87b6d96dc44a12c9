"""V-trace (Espeholt et al. 2018, arXiv 1802.01561): estimates from segments that an older policy chose.

B is the number of states in a batch, S the number of its segments.
"""

from __future__ import annotations

from typing import NamedTuple

from ga3c_tf.experience.columns import Batch
from ga3c_tf.model.tensorflow import tf


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

"""RMSProp and Adam on a vector of all weights: the steps of `ga3c_tf/model/optimizers.py`.

P is the number of weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.model.optimizers import BETA_1, BETA_2
from ga3c_tf.model.tensorflow import tf

Step = Callable[..., Sequence[tf.Tensor]]
"""From the statistics, [P] each, a gradient [P], the learning rate, the number of the update, from 1, and a
choice of new or old values, to what is subtracted from the weights [P], and the statistics after the step. A
choice that is made at once leaves one kernel for each statistic.
"""


def step_of(config: Config) -> Step:
    """Return the step of the optimizer that the settings choose."""
    return adam(config) if config.optimizer == "adam" else rmsprop(config)


def rmsprop(config: Config) -> Step:
    """Return RMSProp's step. The statistics are the mean square, the momentum and, if it is centred, the mean
    gradient.
    """
    rest = _rest(config.rmsprop_decay)

    def step(statistics, gradient, learning_rate, number, where):
        square, moved, *means = statistics
        square = where(square + rest * (tf.square(gradient) - square), square)
        means = [where(mean + rest * (gradient - mean), mean) for mean in means]
        spread = square - sum(map(tf.square, means)) if means else square
        scaled = learning_rate * gradient * tf.math.rsqrt(spread + config.rmsprop_epsilon)
        moved = where(config.rmsprop_momentum * moved + scaled, moved)
        return moved, square, moved, *means

    return step


def adam(config: Config) -> Step:
    """Return Adam's step. The statistics are the first and the second moment."""

    def step(statistics, gradient, learning_rate, number, where):
        first, second = statistics
        first = where(first + _rest(BETA_1) * (gradient - first), first)
        second = where(second + _rest(BETA_2) * (tf.square(gradient) - second), second)
        count = tf.cast(number, tf.float32)
        rate = learning_rate * tf.sqrt(1 - tf.pow(BETA_2, count)) / (1 - tf.pow(BETA_1, count))
        return rate * first / (tf.sqrt(second) + config.adam_epsilon), first, second

    return step


def _rest(decay: float) -> np.float32:
    """Return 1 - decay as TensorFlow's kernels compute it, which for 0.999 is 0.0013 % less than 0.001."""
    return np.float32(1) - np.float32(decay)

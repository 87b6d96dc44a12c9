"""Adam on weights in shared memory, in place and without a lock, like `shared_weights.rmsprop_step`."""

from __future__ import annotations

import numpy as np

from ga3c_tf.model.optimizers import BETA_1, BETA_2
from ga3c_tf.systems.a3c.shared_weights import BLOCK


def adam_step(
    weight: np.ndarray,
    first_moment: np.ndarray,
    second_moment: np.ndarray,
    gradient: np.ndarray,
    learning_rate: float,
    epsilon: float,
    step: int,
) -> None:
    """Take one step of `ga3c_tf.model.optimizers.Adam` on one variable.

    Args:
        weight, first_moment, second_moment: float32 arrays of the variable's shape, contiguous; changed in
            place.
        gradient: float32 array of the same shape.
        learning_rate, epsilon: as in `Adam`.
        step: number of this update among the updates of all agents, starting from 1.
    """
    rate = np.float32(learning_rate * (1 - BETA_2**step) ** 0.5 / (1 - BETA_1**step))
    flat = [array.reshape(-1) for array in (weight, first_moment, second_moment, gradient)]
    for start in range(0, weight.size, BLOCK):
        w, m, v, g = (array[start : start + BLOCK] for array in flat)
        # The next update notices an overflow and is skipped.
        with np.errstate(over="ignore", invalid="ignore"):
            m += np.float32(1 - BETA_1) * (g - m)
            v += np.float32(1 - BETA_2) * (g * g - v)
            w -= rate * m / (np.sqrt(v) + np.float32(epsilon))

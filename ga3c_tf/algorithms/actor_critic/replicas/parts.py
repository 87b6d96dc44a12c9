"""A batch in parts, one for each device, and what is computed of the parts joined again."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ga3c_tf.algorithms.actor_critic.gradients import Gradients
from ga3c_tf.experience.columns import Batch, even_cuts

SMALLEST_WORK = 2**25
"""Least states of a part times weights of the network. Below it a device gains less than its call costs."""


def is_small(states: int, weights: int) -> bool:
    """Return whether so many states are too few for a call to a device of their own, as `number_of_parts`."""
    return states * weights < SMALLEST_WORK


def number_of_parts(states: int, weights: int, devices: int) -> int:
    """Return how many devices should compute the gradients of a batch.

    Args:
        states: number of states in the batch.
        weights: number of trained weights of the network.
        devices: number of devices.
    """
    return min(devices, max(1, states * weights // SMALLEST_WORK))


def parts_of(batch: Batch, count: int) -> list[Batch]:
    """Cut a batch between segments into parts of nearly equal size. A minibatch without them is cut anywhere.

    Args:
        batch: the batch.
        count: number of parts. A batch with fewer segments has one part for each of them.

    Returns:
        The parts, in the order of their steps.
    """
    if not hasattr(batch, "lengths"):
        return [batch.whole.minibatch(steps) for steps in np.array_split(batch.steps, count) if len(steps)]
    ends = np.concatenate([[0], np.cumsum(batch.lengths)])
    return [
        batch.part(part, slice(ends[part.start], ends[part.stop])) for part in even_cuts(batch.lengths, count)
    ]


def joined(parts: Sequence[Gradients], loss_reduction: str) -> Gradients:
    """Return the gradients of a batch from those of its parts, as arrays.

    Args:
        parts: gradients and metrics of the parts, in their order.
        loss_reduction: whether losses, and so gradients, are the 'sum' or the 'mean' over the steps.
    """
    log_pi = np.concatenate([part.log_pi for part in parts])
    shares = [1.0] * len(parts)
    if loss_reduction == "mean":
        shares = [len(part.log_pi) / len(log_pi) for part in parts]
    by_tensor = zip(*(part.tensors for part in parts), strict=True)
    tensors = [functools.reduce(np.add, map(_scaled, arrays, shares)) for arrays in by_tensor]
    metrics = {name: sum(part.metrics[name] for part in parts) for name in parts[0].metrics}
    return Gradients(tensors, metrics, all(part.finite for part in parts), log_pi)


def _scaled(array: np.ndarray, share: float) -> np.ndarray:
    return array if share == 1 else array * np.float32(share)

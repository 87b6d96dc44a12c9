"""Sums and means over the steps of a batch, some of whose rows may be padding.

A compiled model computes with batches of few sizes. Their last rows repeat a step, and `Batch.mask` leaves
them out of the loss.
"""

from __future__ import annotations

from ga3c_tf.experience.columns import Batch
from ga3c_tf.model.tensorflow import tf


def total(batch: Batch, values: tf.Tensor) -> tf.Tensor:
    """Return the sum of the values [B] or [B, N] of a batch's steps, scalar float32."""
    mask = vars(batch).get("mask")
    if mask is None:
        return tf.reduce_sum(values)
    return tf.reduce_sum(tf.where(mask if values.shape.rank == 1 else mask[:, None], values, 0.0))


def mean(batch: Batch, values: tf.Tensor) -> tf.Tensor:
    """Return the mean of the values [B] of a batch's steps, scalar float32."""
    return total(batch, values) / size(batch, values)


def size(batch: Batch, values: tf.Tensor) -> tf.Tensor:
    """Return the number of steps of a batch, scalar float32; `values` [B] has one for each row."""
    return total(batch, tf.ones_like(values))

"""The gradients of a batch, as a pure function of a network's weights: for a plain and a compiled model.

B is the number of states in a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ga3c_tf.algorithms.actor_critic.losses import Loss
from ga3c_tf.algorithms.actor_critic.probabilities import log_policy, log_taken
from ga3c_tf.algorithms.computation import GraphOutputs
from ga3c_tf.algorithms.reductions import size
from ga3c_tf.config import Config
from ga3c_tf.experience.columns import Batch
from ga3c_tf.model.optimizers import clip_by_average_norm
from ga3c_tf.model.tensorflow import tf

METRICS = ("policy_loss", "value_loss", "entropy", "masked")
"""Sums over the states of a batch: of -(objective + beta * entropy), of 0.5 * (R - V)^2, of the policy's
entropy in nats, and of the states that a mask of the correction leaves out."""


class Gradients(NamedTuple):
    """Gradients and metrics of one batch, before any update."""

    tensors: Sequence[tf.Tensor]  # clipped gradients, in the order of `ActorCritic.gradients_of`
    metrics: dict[str, float]  # see `METRICS`
    finite: bool  # whether losses and gradients are finite numbers
    log_pi: np.ndarray  # [B] float32, log-probability of each action taken

    @classmethod
    def unpacked(cls, tensors: Sequence[tf.Tensor], numbers: np.ndarray) -> Gradients:
        """Return the fields from the gradients and `GraphOutputs.numbers`."""
        finite, *metrics = numbers[: 1 + len(METRICS)].tolist()
        by_name = dict(zip(METRICS, metrics, strict=True))
        return cls(tensors, by_name, bool(finite), numbers[1 + len(METRICS) :])


class Objective:
    """What updates minimize, and its gradients.

    Args:
        config: settings of the run; those for the loss and its gradients are used.
        loss: the loss.
    """

    def __init__(self, config: Config, loss: Loss):
        self._config = config
        self._loss = loss
        self._is_own = ":" in config.network

    def gradients(
        self,
        network: Callable[[], tuple[tf.Tensor, tf.Tensor]],
        weights: Sequence[tf.Variable | tf.Tensor],
        batch: Batch,
    ) -> GraphOutputs:
        """Return the clipped gradients of a batch, and what Python needs of it, in a graph.

        In a built-in network, all gradients are finite where those of logits and values are: they are sums of
        products with them, and checking each would cost a pass over memory.

        Args:
            network: returns logits [B, A] and values [B] for the states of the batch.
            weights: what the gradients are of.
            batch: training batch of tensors with `beta`, `version`, the actions and the columns that the loss
                reads; where some of its rows are padding, with `mask`.
        """
        # 1. The losses of the batch.
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(weights)
            logits, values = network()
            batch = Batch(**vars(batch), logits=logits, values=values)
            losses, masked = self._loss.compute(batch)
            objectives = self._objectives(losses.policy_loss, losses.value_loss, batch)
        # 2. The gradients of each objective, and what shows whether they are finite.
        checked = [losses.policy_loss, losses.value_loss]
        gradients = []
        for objective in objectives:
            *of_outputs, of_weights = tape.gradient(objective, [logits, values, [*weights]])
            # The gradient of an embedding is sparse.
            dense = [None if gradient is None else tf.convert_to_tensor(gradient) for gradient in of_weights]
            norm = None
            if self._config.grad_clip_global or self._is_own:
                norm = tf.linalg.global_norm(dense)
            checked += [tensor for tensor in (*of_outputs, norm) if tensor is not None]
            gradients.append(clipped(self._config, dense, norm))
        # 3. All numbers that Python needs.
        finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(tensor)) for tensor in checked])
        summary = tf.stack([tf.cast(finite, tf.float32), *losses, masked])
        return GraphOutputs(gradients, tf.concat([summary, self._log_taken(logits, batch.actions)], 0))

    def _log_taken(self, logits: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        """Return log pi of the actions taken, [B]. Without `min_policy` this is a single operation."""
        if self._config.min_policy:
            return log_taken(log_policy(logits, self._config.min_policy, None), actions)
        return -tf.nn.sparse_softmax_cross_entropy_with_logits(actions, logits)

    def _objectives(self, policy_loss: tf.Tensor, value_loss: tf.Tensor, batch: Batch) -> list[tf.Tensor]:
        """Return what to minimize: the sum of the weighted, reduced losses, or each with `dual_rmsprop`."""
        config = self._config
        parts = [policy_loss, value_loss]
        if config.value_coefficient != 1:
            parts[1] *= config.value_coefficient
        if config.loss_reduction == "mean":
            parts = [part / size(batch, batch.values) for part in parts]
        return parts if config.dual_rmsprop else [parts[0] + parts[1]]


def clipped(
    config: Config, gradients: Sequence[tf.Tensor | None], norm: tf.Tensor | None = None
) -> list[tf.Tensor | None]:
    """Clip the gradients of one objective by their global norm, or each by itself as the authors do, in a
    graph.

    The authors clip by the average norm with one optimizer, and by the norm with two. With a global norm
    there is one objective.

    Args:
        config: settings of the run; those for clipping are used.
        gradients: the gradients; None for a variable without one.
        norm: their global norm, if it is known.
    """
    if config.grad_clip_global:
        return tf.clip_by_global_norm(gradients, config.grad_clip_global, norm)[0]
    if config.grad_clip_norm is None:
        return [*gradients]
    clip = tf.clip_by_norm if config.dual_rmsprop else clip_by_average_norm
    return [None if gradient is None else clip(gradient, config.grad_clip_norm) for gradient in gradients]

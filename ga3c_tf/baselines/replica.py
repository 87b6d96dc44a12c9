"""An agent's own replica of the network: predicts, computes gradients, and applies them to the shared weights."""

from __future__ import annotations

import math

import numpy as np

from ga3c_tf.baselines.shared_weights import SharedWeights, rmsprop_step
from ga3c_tf.config import Config
from ga3c_tf.model import Model, TrainResult
from ga3c_tf.quiet_tensorflow import tf
from ga3c_tf.rmsprop import RMSProp


class Replica(Model):
    """Stands in for the model in an A3C agent's process; used by that agent alone.

    Its weights are a copy of the shared ones, taken after each of its updates (theta' in Mnih et al. 2016, algorithm
    S3), and its version is the number of updates by all agents that the copy has for certain.

    Args:
        config: The settings of the group "model".
        state_shape, state_dtype, num_actions: As for `Model`.
        shared: Weights and statistics of the run.
        agent: Whose updates these are, an index of `shared.updates`.
    """

    def __init__(
        self,
        config: Config,
        state_shape: tuple[int, ...],
        state_dtype: np.dtype | str,
        num_actions: int,
        shared: SharedWeights,
        agent: int,
    ):
        self._shared, self._agent = shared, agent
        super().__init__(config, state_shape, state_dtype, num_actions, seed=0, device="/CPU:0")
        self.synchronise()

    def synchronise(self) -> None:
        """Copies the shared weights into the network."""
        self._copied_version = self._shared.version
        for variable, weight in zip(self._variables, self._shared.groups["weights"], strict=True):
            variable.assign(weight)

    def predict(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        policy, values, _ = super().predict(states)
        return policy, values, self._copied_version

    def train(
        self, states: np.ndarray, actions: np.ndarray, returns: np.ndarray, learning_rate: float, beta: float
    ) -> TrainResult:
        """Computes the gradients of one batch on the replica, applies them to the shared weights, and copies those.

        Nothing is applied when a loss is not finite.
        """
        *gradients, summary = self._train(
            tf.constant(states),
            tf.constant(actions, tf.int32),
            tf.constant(returns, tf.float32),
            tf.constant(learning_rate, tf.float32),
            tf.constant(beta, tf.float32),
        )
        policy_loss, value_loss, entropy = summary.numpy().tolist()
        version = self._shared.version + 1
        if math.isfinite(policy_loss + value_loss):
            self._apply([gradient.numpy() for gradient in gradients], learning_rate)
            self.synchronise()
        return TrainResult(policy_loss, value_loss, entropy, version)

    def _apply(self, gradients: list[np.ndarray], learning_rate: float) -> None:
        config, groups = self._config, self._shared.groups
        for (prefix, number), gradient in zip(self._gradients_of, gradients, strict=True):
            rmsprop_step(
                groups["weights"][number],
                groups[prefix + "mean_square"][number],
                groups[prefix + "momentum"][number],
                gradient,
                learning_rate,
                config.rmsprop_decay,
                config.rmsprop_momentum,
                config.rmsprop_epsilon,
            )
        self._shared.updates[self._agent] += 1

    def _new_optimizers(self) -> list[RMSProp]:
        """None: the statistics are the shared ones."""
        return []

    def _train_graph(
        self, states: tf.Tensor, actions: tf.Tensor, returns: tf.Tensor, learning_rate: tf.Tensor, beta: tf.Tensor
    ) -> tuple[list[tf.Tensor], tf.Tensor]:
        """The gradients there are, then the summary; `_gradients_of` says which variable and optimizer each is for."""
        by_optimizer, summary = self._gradients(states, actions, returns, beta)
        found = {
            (prefix, number): gradient
            for prefix, gradients in zip(("", "value_"), by_optimizer, strict=False)
            for number, gradient in enumerate(gradients)
            if gradient is not None
        }
        self._gradients_of = list(found)
        return list(found.values()), summary

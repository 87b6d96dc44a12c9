"""An agent's own replica of the network: predicts, computes gradients, and applies them to the shared weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.model.model import Model
from ga3c_tf.model.rmsprop import RMSProp
from ga3c_tf.model.tensorflow import tf
from ga3c_tf.systems.a3c.shared_weights import SharedWeights, rmsprop_step


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

    def _prepare_update(self) -> None:
        """Nothing: the update is NumPy's, on the shared weights."""

    def _update(self, gradients: Sequence[tf.Tensor], learning_rate: float) -> int:
        """Applies the gradients to the shared weights, and copies those."""
        config, groups = self._config, self._shared.groups
        version = self._shared.version + 1
        for (optimizer, variable), gradient in zip(self._gradients_of, gradients, strict=True):
            prefix = ("", "value_")[optimizer]
            rmsprop_step(
                groups["weights"][variable],
                groups[prefix + "mean_square"][variable],
                groups[prefix + "momentum"][variable],
                gradient.numpy(),
                learning_rate,
                config.rmsprop_decay,
                config.rmsprop_momentum,
                config.rmsprop_epsilon,
            )
        self._shared.updates[self._agent] += 1
        self.synchronise()
        return version

    def _refuse(self) -> int:
        """Goes on with what the others have made of the weights."""
        self.synchronise()
        return self._shared.version

    def _new_optimizers(self) -> list[RMSProp]:
        """None: the statistics are the shared ones."""
        return []

"""An agent's own replica of the network: predicts, computes gradients, and applies them to the shared weights."""

from __future__ import annotations

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.model.actor_critic import ActorCritic
from ga3c_tf.model.model import TrainResult
from ga3c_tf.model.tensorflow import tf
from ga3c_tf.rollouts.columns import Batch
from ga3c_tf.rollouts.divergence import UNKNOWN, DivergenceSampler
from ga3c_tf.systems.a3c.adam import adam_step
from ga3c_tf.systems.a3c.shared_weights import SharedWeights, rmsprop_step


class Replica:
    """Replaces the model in the process of an A3C agent; only that agent uses it.

    Its weights are a copy of the shared weights, taken at the start and after each of its updates (theta' in Mnih et
    al. 2016, algorithm S3). Its version is the number of updates, by all agents, that the copy contains at least. Each
    replica has its own seed for the noise that a user's network draws during training.

    Args:
        config: Settings of the run.
        state_shape, state_dtype, num_actions: As in `Model`.
        shared: Shared weights and optimizer statistics of the run.
        agent: Number of the agent, an index into `shared.updates`.

    Attributes:
        network: keras.Model, as in `Model`.
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
        self._config = config
        self._shared = shared
        self._agent = agent
        self._version = tf.Variable(0, dtype=tf.int64, trainable=False)
        stream = np.random.SeedSequence(config.seed, spawn_key=(2, agent, int(shared.updates[-1])))
        seed = int(stream.generate_state(1)[0])
        self._actor_critic = ActorCritic(
            config, state_shape, state_dtype, num_actions, seed, self._version, device="/CPU:0"
        )
        self._divergence = DivergenceSampler(self._actor_critic.loss.bounds)
        self.network = self._actor_critic.network
        self.synchronise()

    def synchronise(self) -> None:
        """Copy the shared weights into the network.

        The raw operation takes a quarter of the time of `variable.assign`, which checks shape and type each time.
        """
        self._copied_version = self._shared.version
        for variable, weight in zip(self._actor_critic.variables, self._shared.groups["weights"], strict=True):
            tf.raw_ops.AssignVariableOp(resource=variable.handle, value=tf.constant(weight))

    def predict(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """Return policies, values and the version of the copied weights, like `Model.predict`."""
        policy, values, _ = self._actor_critic.predict(states)
        return policy, values, self._copied_version

    def train(self, batch: Batch, learning_rate: float, beta: float) -> TrainResult:
        """Update the shared weights, like `Model.train`, and then copy them, updates of other agents included.

        Of the divergence only `floored` is known. The replica is the policy that chose the actions; the policy of the
        shared weights, which are updated, is a different one.
        """
        if self._actor_critic.loss.reads_version:
            self._version.assign(self._shared.version)
        found = self._actor_critic.gradients(batch, beta)
        version = self._shared.version + found.finite
        if found.finite:
            self._apply(found.tensors, learning_rate)
        self.synchronise()
        losses = (found.policy_loss, found.value_loss, found.entropy)
        divergence = self._divergence.sample(batch, found.log_pi)
        if divergence is not UNKNOWN:
            divergence = UNKNOWN._replace(floored=divergence.floored)
        return TrainResult(*losses, divergence, version, found.finite)

    def _apply(self, gradients, learning_rate: float) -> None:
        """Apply the gradients to the shared weights."""
        config = self._config
        groups = self._shared.groups
        step = self._shared.version + 1
        for (optimizer, variable), tensor in zip(self._actor_critic.gradients_of, gradients, strict=True):
            weight = groups["weights"][variable]
            gradient = tensor.numpy()
            if config.optimizer == "adam":
                first = groups["first_moment"][variable]
                second = groups["second_moment"][variable]
                adam_step(weight, first, second, gradient, learning_rate, config.adam_epsilon, step)
                continue
            prefix = ("", "value_")[optimizer]
            rmsprop_step(
                weight,
                groups[prefix + "mean_square"][variable],
                groups[prefix + "momentum"][variable],
                gradient,
                learning_rate,
                config.rmsprop_decay,
                config.rmsprop_momentum,
                config.rmsprop_epsilon,
            )
        self._shared.updates[self._agent] += 1

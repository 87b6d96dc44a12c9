"""The single model of a run, used by any number of predictor and trainer threads (section 4 of the paper).

B is the number of states in a batch, A the number of actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.model.actor_critic import ActorCritic
from ga3c_tf.model.adam import Adam
from ga3c_tf.model.graph_call import direct_call, trace
from ga3c_tf.model.rmsprop import RMSProp
from ga3c_tf.model.tensorflow import keras, tf
from ga3c_tf.rollouts.columns import SCHEMA, Batch, Schema
from ga3c_tf.rollouts.divergence import Divergence, DivergenceSampler


class TrainResult(NamedTuple):
    """Result of one update: the losses before the weights changed, and the version after."""

    policy_loss: float  # -(advantage objective + beta * entropy), summed over the batch
    value_loss: float  # 0.5 * (R - V)^2, summed over the batch
    entropy: float  # entropy of the policy in nats, averaged over the batch
    divergence: Divergence  # divergence of the policy from those that chose the batch's actions
    version: int  # number of updates done, including this one if it was applied
    applied: bool  # False for a skipped update, whose loss or gradient was not finite: no weights have changed


class Model:
    """The network and its optimizer.

    Args:
        config: Settings of the run; those for the network, the loss and the optimizer are used.
        state_shape: Shape of one state.
        state_dtype: Type of states, uint8 or float32.
        num_actions: Number of actions, A.
        seed: Seed of the initial weights.
        network: Network to use instead of building `config.network`.
        device: TensorFlow device, as `configure_device` returns it; None leaves the choice to TensorFlow.
        schema: Columns of the trajectory that a batch may have.

    Attributes:
        network: keras.Model from states [B, *state_shape] to (logits [B, A], values [B]).
        dtype_policy: Keras's name of the dtype policy of the hidden layers.
        states: tf.TensorSpec of a batch of states.
        version: Scalar int64 variable, the number of updates done.
        predict: Method of `ActorCritic`: policy [B, A], values [B] and version for a batch of states.

    Raises:
        UserError: The network cannot be built or does not fit the states, or the loss fails.
    """

    def __init__(
        self,
        config: Config,
        state_shape: Sequence[int],
        state_dtype: np.dtype | str,
        num_actions: int,
        seed: int,
        network: keras.Model | None = None,
        device: str | None = None,
        schema: Schema = SCHEMA,
    ):
        self._device = device
        with tf.device("/CPU:0"):  # where the kernel that counts updates (ResourceCountUpTo) runs
            self.version = tf.Variable(0, dtype=tf.int64, trainable=False, name="version")
        self._actor_critic = ActorCritic(
            config, state_shape, state_dtype, num_actions, seed, self.version, network, device, schema
        )
        self._divergence = DivergenceSampler(self._actor_critic.loss.bounds)
        self.network = self._actor_critic.network
        self.dtype_policy = self._actor_critic.dtype_policy
        self.states = self._actor_critic.states
        self.predict = self._actor_critic.predict
        with tf.device(device):
            count = 2 if config.dual_rmsprop else 1  # one optimizer for each loss, or one for their sum
            self._optimizers = [self._new_optimizer(config) for _ in range(count)]
            # The update is a separate call, made only where the gradients are finite. On a CPU (2-core EPYC) this
            # costs 0.05 ms. A `tf.cond` around the update, in one graph with the gradients, costs 0.5 ms, a third of an
            # update of 5 states. Neither was measured on a GPU.
            variables = [self._actor_critic.variables[variable] for _, variable in self._actor_critic.gradients_of]
            gradients = [tf.TensorSpec(variable.shape, variable.dtype) for variable in variables]
            self._apply = direct_call(trace(self._update_graph, [tf.TensorSpec((), tf.float32), *gradients]))

    def train(self, batch: Batch, learning_rate: float, beta: float) -> TrainResult:
        """Update the weights on one batch. Skip the update where its losses or gradients are not finite.

        Args:
            batch: training batch with states of the model's shape and type, and the columns that the loss reads.
            learning_rate: learning rate of this update.
            beta: weight of the entropy in this update.

        Raises:
            ValueError: an error of `ActorCritic.gradients`.
        """
        gradients = self._actor_critic.gradients(batch, beta)
        divergence = self._divergence.sample(batch, gradients.log_pi)
        version = self.version
        if gradients.finite:
            with tf.device(self._device):
                [version] = self._apply(tf.constant(learning_rate, tf.float32), *gradients.tensors)
        losses = (gradients.policy_loss, gradients.value_loss, gradients.entropy)
        return TrainResult(*losses, divergence, int(version.numpy()), gradients.finite)

    def standardize(self, mean: np.ndarray, variance: np.ndarray) -> None:
        """Set the mean and variance by which the network standardizes states.

        Args:
            mean: mean of each element of a state, float32 [*state_shape].
            variance: variance of each element of a state, float32 [*state_shape].

        Raises:
            ValueError: the network was not built with `normalize_observations`.
        """
        self.network.get_layer("standardize").measured(mean, variance)

    def checkpoint_objects(self) -> dict[str, list[tf.Variable]]:
        """Return the content of a checkpoint, for tf.train.Checkpoint(**objects): weights, optimizer slots and version.

        Variables are identified by position. Their names are not stable, because Keras names unnamed layers by what the
        process has built before.
        """
        objects = {"weights": [variable.value for variable in self.network.weights], "version": [self.version]}
        for prefix, optimizer in zip(("", "value_"), self._optimizers, strict=False):
            objects |= {prefix + name: list(slots) for name, slots in optimizer.slots.items()}
        return objects

    def _new_optimizer(self, config: Config) -> RMSProp | Adam:
        variables = self._actor_critic.variables
        if config.optimizer == "adam":
            return Adam(variables, self.version, config.adam_epsilon)
        return RMSProp(variables, config.rmsprop_decay, config.rmsprop_momentum, config.rmsprop_epsilon)

    def _update_graph(self, learning_rate: tf.Tensor, *gradients: tf.Tensor) -> list[tf.Tensor]:
        by_place = dict(zip(self._actor_critic.gradients_of, gradients, strict=True))
        updates = []
        for number, optimizer in enumerate(self._optimizers):
            own = [by_place.get((number, variable)) for variable in range(len(self._actor_critic.variables))]
            updates += optimizer.apply(own, learning_rate)
        with tf.control_dependencies(updates), tf.device(self.version.device):
            # assign_add reads the sum back in a second step, and another trainer's update may come in between.
            return [tf.raw_ops.ResourceCountUpTo(resource=self.version.handle, limit=tf.int64.max, T=tf.int64) + 1]

"""The network and its loss as two traced functions: one for predictions, one for the gradients of a batch.

B is the number of states in a batch, S the number of its segments, A the number of actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ga3c_tf.algorithms.actor_critic import losses
from ga3c_tf.algorithms.actor_critic.gradients import Gradients, Objective
from ga3c_tf.algorithms.actor_critic.probabilities import policy
from ga3c_tf.algorithms.computation import GraphOutputs, Network
from ga3c_tf.algorithms.network_model import check_states, check_steps
from ga3c_tf.config import Config
from ga3c_tf.experience.columns import PROXIMAL, Batch, columns_with
from ga3c_tf.experience.contracts import NO_CARRY, Prediction
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.device import resolve_dtype_policy
from ga3c_tf.model.graph_call import direct_call, trace
from ga3c_tf.model.networks import build_network
from ga3c_tf.model.recurrent import initial_carry, unrolling
from ga3c_tf.model.tensorflow import keras, tf


class ActorCritic:
    """A network with its predictions and gradients, for any number of threads. A `Computation`.

    Args:
        config: settings of the run; those for the network, the loss and its gradients are used.
        spec: shape and type of states, and number of actions, A.
        seed: seed of the initial weights.
        version: scalar int64 variable that counts updates. Predictions return the value that it had when the
            weights were read, and a loss may read it.
        network: network to use instead of building `config.network`.
        device: TensorFlow device; None leaves the choice to TensorFlow.

    Attributes:
        network: keras.Model from states [B, *state_shape] to (logits [B, A], values [B]), or a recurrent one,
            see `ga3c_tf.model.recurrent`.
        initial_carry: float32 [H], carry with which an episode begins; [0] without memory.
        states: tf.TensorSpec of a batch of states.
        dtype_policy: Keras's name of the dtype policy of the hidden layers.
        variables: trainable variables of the network.
        loss: the loss, with the columns that it reads and its bounds.
        columns: columns of the trajectory that an update reads.
        gradients_of: for each gradient, the index of its optimizer (0; with `dual_rmsprop`, 0 or 1) and the
            index of its variable.

    Raises:
        UserError: the network cannot be built or does not fit the states, or the loss fails.
    """

    def __init__(
        self,
        config: Config,
        spec: EnvironmentSpec,
        seed: int,
        version: tf.Variable,
        network: keras.Model | None = None,
        device: str | None = None,
    ):
        self._config = config
        self._device = device
        self._version = version
        with tf.device(device):
            self.loss = losses.find_loss(config, spec.num_actions)
            self._objective = Objective(config, self.loss)
            self.dtype_policy = resolve_dtype_policy(config.dtype_policy, device)
            self.network = network or build_network(config, spec, seed, self.dtype_policy)
            self.initial_carry = initial_carry(self.network)
            self.states = tf.TensorSpec((None, *spec.state_shape), spec.state_dtype)
            inputs = [self.states]
            read = {"actions", *self.loss.columns}
            if self.has_memory:
                self._unrolled = unrolling(self.network)
                inputs.append(tf.TensorSpec((None, len(self.initial_carry)), tf.float32))
                read |= {"lengths", "carries"}
            # Each column passed to the graph costs an update some 0.01 ms, so only those read are passed.
            columns = (*columns_with(len(self.initial_carry)), PROXIMAL)
            self.columns = [column for column in columns if column.name in read]
            self._dtypes = [tf.as_dtype(column.dtype) for column in self.columns]
            self.variables = [variable.value for variable in self.network.trainable_variables]
            self._predict = direct_call(trace(self._prediction_graph, inputs))
            gradients = self.trace_gradients()
            self._compute = direct_call(gradients)
            outputs: GraphOutputs = gradients.structured_outputs
            self.gradients_of = [
                (optimizer, variable)
                for optimizer, by_variable in enumerate(outputs.gradients)
                for variable, gradient in enumerate(by_variable)
                if gradient is not None
            ]

    @property
    def has_memory(self) -> bool:
        """Whether the network is recurrent."""
        return len(self.initial_carry) > 0

    @property
    def needs_segments(self) -> bool:
        """Whether an update reads columns of segments."""
        return any(column.axis == "segment" for column in self.columns)

    def trace_gradients(self) -> Any:
        """Return TensorFlow's ConcreteFunction from states, beta and columns to `GraphOutputs`."""
        columns = [
            tf.TensorSpec((None, *column.shape), dtype)
            for column, dtype in zip(self.columns, self._dtypes, strict=True)
        ]
        return trace(self._gradient_graph, [self.states, tf.TensorSpec((), tf.float32), *columns])

    def predict(self, states: np.ndarray, carry: np.ndarray = NO_CARRY) -> Prediction:
        """Return policy [B, A] float32, values [B] float32 and version for states [B, *state_shape].

        A recurrent network also takes the carry before each state, [B, H], and gives that after it. The
        weights used include every update up to this version. An update still running in another thread may be
        included in some of them.

        Raises:
            ValueError: the states or the carry have another shape or type than those of the network.
        """
        check_states(states, self.states)
        with tf.device(self._device):
            inputs = [tf.constant(states)]
            if self.has_memory:
                shape = (len(states), len(self.initial_carry))
                if carry.shape != shape:
                    raise ValueError(f"the carry has the shape {carry.shape}; the model takes {shape}")
                inputs.append(tf.constant(carry, tf.float32))
            policy, values, version, *after = self._predict(*inputs)
        return Prediction(
            policy.numpy(), values.numpy(), int(version.numpy()), *(carry.numpy() for carry in after)
        )

    def gradients(self, batch: Batch, beta: float) -> Gradients:
        """Compute losses and gradients of one batch.

        Args:
            batch: training batch with states of the network's shape and type, and the columns that the loss
                reads.
            beta: weight of the entropy in this update.

        Raises:
            ValueError: the states have another shape or type, or the columns that the loss reads differ in
                length. Columns of steps must be as long as the states, and columns of segments as long as one
                another.
        """
        self.check(batch)
        with tf.device(self._device):
            columns = [
                tf.constant(getattr(batch, column.name), dtype)
                for column, dtype in zip(self.columns, self._dtypes, strict=True)
            ]
            *tensors, numbers = self._compute(
                tf.constant(batch.states), tf.constant(beta, tf.float32), *columns
            )
        return Gradients.unpacked(tensors, numbers.numpy())

    def check(self, batch: Batch) -> None:
        """Refuse states and columns of a wrong shape: TensorFlow would broadcast or cut them.

        Raises:
            ValueError: as for `gradients`.
        """
        check_states(batch.states, self.states)
        segments: int | None = None
        for column in self.columns:
            if column.axis == "step":
                check_steps(batch, column.name, column.shape)
                continue
            shape = np.shape(getattr(batch, column.name))
            segments = shape[0] if segments is None and shape else segments
            if shape != (segments, *column.shape):
                raise ValueError(
                    f"{column.name} have shape {shape}, and other columns of segments {(segments,)}"
                )

    def answers(self, outputs: Any) -> tuple[tf.Tensor, tf.Tensor]:
        logits, values = outputs
        return policy(logits, self._config.min_policy), values

    def gradients_in_graph(
        self, network: Network, weights: Sequence[tf.Variable | tf.Tensor], batch: Batch
    ) -> GraphOutputs:
        return self._objective.gradients(lambda: network(batch.states, training=True), weights, batch)

    def _prediction_graph(self, states: tf.Tensor, *carry: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Return policy, values and version, and for a recurrent network the carry after the states."""
        version = self._version.read_value()
        # The weights must be read after the version, so that they are at least as new as it says.
        with tf.control_dependencies([version]):
            if self.has_memory:
                (logits, values), *carry = self.network((states, *carry))
            else:
                logits, values = self.network(states)
        return *self.answers((logits, values)), version, *carry

    def _gradient_graph(self, states: tf.Tensor, beta: tf.Tensor, *columns: tf.Tensor) -> GraphOutputs:
        names = [column.name for column in self.columns]
        by_name = dict(zip(names, columns, strict=True))
        batch = Batch(states=states, beta=beta, version=self._version.read_value(), **by_name)

        def network(states: tf.Tensor, training: bool) -> Any:
            if self.has_memory:
                return self._unrolled(states, batch.carries, batch.lengths)
            return self.network(states, training=training)

        return self.gradients_in_graph(network, self.variables, batch)

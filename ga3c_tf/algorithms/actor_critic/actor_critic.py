"""The network and its loss as two traced functions: one for predictions, one for the gradients of a batch.

B is the number of states in a batch, S the number of its segments, A the number of actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ga3c_tf.algorithms.actor_critic import losses
from ga3c_tf.algorithms.actor_critic.probabilities import log_policy, log_taken, policy
from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.experience.columns import SCHEMA, Batch, Column, Schema
from ga3c_tf.experience.contracts import Prediction
from ga3c_tf.model.device import resolve_dtype_policy
from ga3c_tf.model.graph_call import direct_call, trace
from ga3c_tf.model.networks import build_network
from ga3c_tf.model.rmsprop import clip_by_average_norm
from ga3c_tf.model.tensorflow import keras, tf

METRICS = ("policy_loss", "value_loss", "entropy")
"""Sums over the states of a batch: of -(objective + beta * entropy), of 0.5 * (R - V)^2, and of the policy's
entropy in nats."""


class Gradients(NamedTuple):
    """Gradients and metrics of one batch, before any update.

    The graph packs all but the gradients into one tensor, because a copy from a device to Python costs time.
    """

    tensors: Sequence[tf.Tensor]  # clipped gradients, in the order of `ActorCritic.gradients_of`
    metrics: dict[str, float]  # see `METRICS`
    finite: bool  # whether losses and gradients are finite numbers
    log_pi: np.ndarray  # [B] float32, log-probability of each action taken

    @staticmethod
    def packed(metrics: Sequence[tf.Tensor], finite: tf.Tensor, log_pi: tf.Tensor) -> tf.Tensor:
        """Return all fields but the gradients in one float32 tensor [M + 1 + B], for M metrics."""
        return tf.concat([tf.stack([*metrics, tf.cast(finite, tf.float32)]), log_pi], 0)

    @classmethod
    def unpacked(cls, tensors: Sequence[tf.Tensor], numbers: np.ndarray) -> Gradients:
        """Return the fields from the gradients and what `packed` returned."""
        *metrics, finite = numbers[: len(METRICS) + 1].tolist()
        by_name = dict(zip(METRICS, metrics, strict=True))
        return cls(tensors, by_name, bool(finite), numbers[len(METRICS) + 1 :])


class GraphOutputs(NamedTuple):
    """Outputs of the graph that computes gradients."""

    gradients: list[list[tf.Tensor | None]]  # by optimizer and variable; None for a variable without one
    numbers: tf.Tensor  # what `Gradients.packed` returns


class ActorCritic:
    """A network with its predictions and gradients, for any number of threads.

    Args:
        config: settings of the run; those for the network, the loss and its gradients are used.
        state_shape: shape of one state.
        state_dtype: type of states, uint8 or float32.
        num_actions: number of actions, A.
        seed: seed of the initial weights.
        version: scalar int64 variable that counts updates. Predictions return the value that it had when the
            weights were read, and a loss may read it.
        network: network to use instead of building `config.network`.
        device: TensorFlow device; None leaves the choice to TensorFlow.
        schema: columns of the trajectory that a batch may have.

    Attributes:
        network: keras.Model from states [B, *state_shape] to (logits [B, A], values [B]).
        states: tf.TensorSpec of a batch of states.
        dtype_policy: Keras's name of the dtype policy of the hidden layers.
        variables: trainable variables of the network.
        loss: the loss, with the columns that it reads and its bounds.
        gradients_of: for each gradient, the index of its optimizer (0; with `dual_rmsprop`, 0 or 1) and the
            index of its variable.

    Raises:
        UserError: the network cannot be built or does not fit the states; the loss fails, or needs whole
            segments where updates use minibatches.
    """

    def __init__(
        self,
        config: Config,
        state_shape: Sequence[int],
        state_dtype: np.dtype | str,
        num_actions: int,
        seed: int,
        version: tf.Variable,
        network: keras.Model | None = None,
        device: str | None = None,
        schema: Schema = SCHEMA,
    ):
        self._config = config
        self._device = device
        self._version = version
        self._state_shape = tuple(state_shape)
        self._state_dtype = np.dtype(state_dtype)
        with tf.device(device):
            self.loss = losses.find_loss(config, num_actions, schema)
            # Each column passed to the graph costs an update some 0.01 ms, so only those read are passed.
            self._columns = _columns_read(schema, self.loss)
            self._dtypes = [tf.as_dtype(column.dtype) for column in self._columns]
            self._check_minibatches()
            self.dtype_policy = resolve_dtype_policy(config.dtype_policy, device)
            self.network = network or build_network(
                config.network,
                state_shape,
                state_dtype,
                num_actions,
                seed,
                config.initialization,
                config.normalize_images,
                config.normalize_observations,
                self.dtype_policy,
            )
            self.variables = [variable.value for variable in self.network.trainable_variables]
            self.states = tf.TensorSpec((None, *self._state_shape), self._state_dtype)
            self._predict = direct_call(trace(self._prediction_graph, [self.states]))
            gradients = self.trace_gradients()
            self._compute = direct_call(gradients)
            outputs: GraphOutputs = gradients.structured_outputs
            self.gradients_of = [
                (optimizer, variable)
                for optimizer, by_variable in enumerate(outputs.gradients)
                for variable, gradient in enumerate(by_variable)
                if gradient is not None
            ]

    def trace_gradients(self) -> Any:
        """Return TensorFlow's ConcreteFunction from states, beta and columns to `GraphOutputs`."""
        columns = [
            tf.TensorSpec((None, *column.shape), dtype)
            for column, dtype in zip(self._columns, self._dtypes, strict=True)
        ]
        return trace(self._gradient_graph, [self.states, tf.TensorSpec((), tf.float32), *columns])

    def predict(self, states: np.ndarray) -> Prediction:
        """Return policy [B, A] float32, values [B] float32 and version for states [B, *state_shape].

        The weights used include every update up to this version. An update still running in another thread
        may be included in some of them.

        Raises:
            ValueError: the states have another shape or type than those of the network.
        """
        self._check_states(states)
        with tf.device(self._device):
            policy, values, version = self._predict(tf.constant(states))
        return Prediction(policy.numpy(), values.numpy(), int(version.numpy()))

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
        self._check_states(batch.states)
        self._check_columns(batch)
        with tf.device(self._device):
            columns = [
                tf.constant(getattr(batch, column.name), dtype)
                for column, dtype in zip(self._columns, self._dtypes, strict=True)
            ]
            *tensors, numbers = self._compute(
                tf.constant(batch.states), tf.constant(beta, tf.float32), *columns
            )
        return Gradients.unpacked(tensors, numbers.numpy())

    def _check_minibatches(self) -> None:
        """Refuse a loss that reads columns of whole segments where updates use shuffled steps."""
        of_segments = [column.name for column in self._columns if column.axis == "segment"]
        if of_segments and self._config.has_minibatches:
            raise UserError(
                f"loss {self._config.loss!r} reads {of_segments[0]}, of whole segments; it goes with "
                "--epochs 1 and --minibatch-size 0"
            )

    def _check_columns(self, batch: Batch) -> None:
        """Refuse columns of a wrong shape: TensorFlow would broadcast or cut them."""
        steps = len(batch.states)
        segments: int | None = None
        for column in self._columns:
            shape = np.shape(getattr(batch, column.name))
            if column.axis == "step":
                if shape != (steps, *column.shape):
                    raise ValueError(
                        f"{steps} states need as many {column.name}, not {column.name} of shape {shape}"
                    )
                continue
            segments = shape[0] if segments is None and shape else segments
            if shape != (segments, *column.shape):
                raise ValueError(
                    f"{column.name} have shape {shape}, and other columns of segments {(segments,)}"
                )

    def _check_states(self, states: np.ndarray) -> None:
        if states.shape[1:] != self._state_shape or states.dtype != self._state_dtype:
            raise ValueError(
                f"states are {states.dtype} {states.shape}; the model takes {self._state_dtype} "
                f"[B, {', '.join(map(str, self._state_shape))}]"
            )

    def _prediction_graph(self, states: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        version = self._version.read_value()
        # The weights must be read after the version, so that they are at least as new as it says.
        with tf.control_dependencies([version]):
            logits, values = self.network(states)
        return policy(logits, self._config.min_policy), values, version

    def _gradient_graph(self, states: tf.Tensor, beta: tf.Tensor, *columns: tf.Tensor) -> GraphOutputs:
        """Return the clipped gradients and the packed numbers of a batch.

        Losses and gradients are finite where those of logits and values are. All other gradients are sums of
        products with them, and checking each would cost a pass over memory.
        """
        # 1. The losses of the batch.
        with tf.GradientTape(persistent=True) as tape:
            logits, values = self.network(states, training=True)
            outputs = {
                "logits": logits,
                "values": values,
                "beta": beta,
                "version": self._version.read_value(),
            }
            names = [column.name for column in self._columns]
            batch = Batch(**outputs, **dict(zip(names, columns, strict=True)))
            policy_loss, value_loss, entropy = self.loss.compute(batch)
            objectives = self._objectives(policy_loss, value_loss, values)
        # 2. The gradients of each objective. Those of the network's outputs show whether all are finite.
        checked = [policy_loss, value_loss]
        gradients = []
        for objective in objectives:
            *of_outputs, of_weights = tape.gradient(objective, [logits, values, self.variables])
            checked += [gradient for gradient in of_outputs if gradient is not None]
            gradients.append(self._clipped(of_weights))
        # 3. All numbers that Python needs.
        finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(tensor)) for tensor in checked])
        log_pi = self._log_taken(logits, batch.actions)
        metrics = [policy_loss, value_loss, entropy]
        return GraphOutputs(gradients, Gradients.packed(metrics, finite, log_pi))

    def _log_taken(self, logits: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        """Return log pi of the actions taken, [B]. Without `min_policy` this is a single operation."""
        if self._config.min_policy:
            return log_taken(log_policy(logits, self._config.min_policy, None), actions)
        return -tf.nn.sparse_softmax_cross_entropy_with_logits(actions, logits)

    def _objectives(
        self, policy_loss: tf.Tensor, value_loss: tf.Tensor, values: tf.Tensor
    ) -> list[tf.Tensor]:
        """Return what to minimize: the sum of the weighted, reduced losses, or each with `dual_rmsprop`."""
        config = self._config
        parts = [policy_loss, value_loss]
        if config.value_coefficient != 1:
            parts[1] *= config.value_coefficient
        if config.loss_reduction == "mean":
            parts = [part / tf.cast(tf.size(values), tf.float32) for part in parts]
        return parts if config.dual_rmsprop else [parts[0] + parts[1]]

    def _clipped(self, gradients: list[Any]) -> list[tf.Tensor | None]:
        """Clip the gradients of one objective by their global norm, or each by itself as the authors do.

        The authors clip by the average norm with one optimizer, and by the norm with two. With a global norm
        there is one objective. The gradient of an embedding is sparse.
        """
        config = self._config
        dense = [None if gradient is None else tf.convert_to_tensor(gradient) for gradient in gradients]
        if config.grad_clip_global:
            return tf.clip_by_global_norm(dense, config.grad_clip_global)[0]
        if config.grad_clip_norm is None:
            return dense
        clip = tf.clip_by_norm if config.dual_rmsprop else clip_by_average_norm
        return [None if gradient is None else clip(gradient, config.grad_clip_norm) for gradient in dense]


def _columns_read(schema: Schema, loss: losses.Loss) -> list[Column]:
    """Return the columns that the gradients need: the actions and those that the loss reads."""
    return [column for column in schema.columns if column.name == "actions" or column.name in loss.columns]

"""The network and its loss as two traced functions: one for predictions, one for the gradients of a batch.

B is the number of states in a batch, S the number of its segments, A the number of actions.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.model import losses
from ga3c_tf.model.device import resolve_dtype_policy
from ga3c_tf.model.graph_call import direct_call, inputs_read, trace
from ga3c_tf.model.networks import build_network
from ga3c_tf.model.rmsprop import clip_by_average_norm
from ga3c_tf.model.tensorflow import keras, tf
from ga3c_tf.rollouts.columns import SCHEMA, Batch
from ga3c_tf.rollouts.divergence import UNKNOWN, Divergence, divergence

COLUMNS = {column.name: column.dtype for column in SCHEMA.columns}
STEP_COLUMNS = {column.name for column in SCHEMA.along("step")}
SEGMENT_COLUMNS = {column.name for column in SCHEMA.along("segment")}


MEASURED_EVERY = 11
"""The divergence is measured for one in this many batches.

Measured for all batches, it cost GA3C on MinAtar 8 % of its speed, and for one in seven up to 2 %.
The number is prime, so that with epochs of 4 or 8 minibatches it is not always the same minibatch.
"""


class Gradients(NamedTuple):
    """Gradients and losses of one batch, before any update."""

    tensors: Sequence[tf.Tensor]  # clipped gradients, in the order of `ActorCritic.gradients_of`
    policy_loss: float  # -(advantage objective + beta * entropy), summed over the batch
    value_loss: float  # 0.5 * (R - V)^2, summed over the batch
    entropy: float  # entropy of the policy in nats, averaged over the batch
    divergence: Divergence  # measured for one in `MEASURED_EVERY` batches; for the others `UNKNOWN`
    finite: bool  # whether losses and gradients are finite numbers


class ActorCritic:
    """A network with its predictions and gradients, for any number of threads.

    Args:
        config: settings of the run; those for the network, the loss and its gradients are used.
        state_shape: shape of one state.
        state_dtype: type of states, uint8 or float32.
        num_actions: number of actions, A.
        seed: seed of the initial weights.
        version: scalar int64 variable that counts updates. Predictions return the value that it had when the weights
            were read, and a loss may read it.
        network: network to use instead of building `config.network`.
        device: TensorFlow device; None leaves the choice to TensorFlow.

    Attributes:
        network: keras.Model from states [B, *state_shape] to (logits [B, A], values [B]).
        states: tf.TensorSpec of a batch of states.
        dtype_policy: Keras's name of the dtype policy of the hidden layers.
        variables: trainable variables of the network.
        gradients_of: for each gradient, the index of its optimizer (0; with `dual_rmsprop`, 0 or 1) and the index of
            its variable.
        reads_version: whether the loss reads `version`.

    Raises:
        UserError: the network cannot be built or does not fit the states; the loss fails, or needs whole segments where
            updates use minibatches.
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
    ):
        self._config = config
        self._device = device
        self._version = version
        self._state_shape = tuple(state_shape)
        self._state_dtype = np.dtype(state_dtype)
        self._batches = itertools.count()
        self.gradients_of: list[tuple[int, int]] = []  # set when the gradients are traced
        self.reads_version = False  # set when the gradients are traced
        with tf.device(device):
            self._loss = losses.find_loss(config, num_actions)
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
            states = self.states = tf.TensorSpec((None, *self._state_shape), self._state_dtype)
            self._predict = direct_call(trace(self._prediction_graph, [states]))
            columns = [tf.TensorSpec((None,), tf.as_dtype(dtype)) for dtype in COLUMNS.values()]
            gradients = trace(self._gradient_graph, [states, tf.TensorSpec((), tf.float32), *columns])
            self._compute = direct_call(gradients)
            # Each column passed to the graph costs an update some 0.01 ms, so only columns that the loss reads are.
            _, _, *read = inputs_read(gradients, 2 + len(COLUMNS))
            self._places = {name: place for place, name in enumerate(COLUMNS) if read[place]}
            self._read = list(self._places)
            self._check_minibatches()
            self._empty_columns = [tf.zeros((0,), column.dtype) for column in columns]

    def predict(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """Return policy [B, A] float32, values [B] float32 and version for states [B, *state_shape].

        The weights used include every update up to this version. An update still running in another thread may be
        included in some of them.

        Raises:
            ValueError: the states have another shape or type than those of the network.
        """
        self._check_states(states)
        with tf.device(self._device):
            policy, values, version = self._predict(tf.constant(states))
        return policy.numpy(), values.numpy(), int(version.numpy())

    def gradients(self, batch: Batch, beta: float) -> Gradients:
        """Compute losses and gradients of one batch.

        Args:
            batch: training batch with states of the network's shape and type, and the columns that the loss reads.
            beta: weight of the entropy in this update.

        Raises:
            ValueError: the states have another shape or type, or the columns that the loss reads differ in length.
                Columns of steps must be as long as the states, and columns of segments as long as one another.
        """
        self._check_states(batch.states)
        self._check_columns(batch)
        with tf.device(self._device):
            columns = self._empty_columns.copy()
            for name, place in self._places.items():
                columns[place] = tf.constant(getattr(batch, name), columns[place].dtype)
            inputs = (tf.constant(batch.states), tf.constant(beta, tf.float32), *columns)
            *tensors, summary = self._compute(*inputs)
        numbers = summary.numpy()
        policy_loss, value_loss, entropy, finite = numbers[:4].tolist()
        moved = UNKNOWN
        if next(self._batches) % MEASURED_EVERY == 0 and hasattr(batch, "mu_log_probabilities"):
            moved = divergence(numbers[4:], batch.mu_log_probabilities, self._config)
        return Gradients(tensors, policy_loss, value_loss, entropy, moved, bool(finite))

    def _check_minibatches(self) -> None:
        """Refuse a loss that reads columns of whole segments where updates use shuffled steps."""
        of_segments = [name for name in self._read if name in SEGMENT_COLUMNS]
        if of_segments and self._config.has_minibatches:
            raise UserError(
                f"loss {self._config.loss!r} reads {of_segments[0]}, of whole segments; it goes with --epochs 1 and "
                "--minibatch-size 0"
            )

    def _check_columns(self, batch: Batch) -> None:
        """Refuse columns of a wrong length among those that the loss reads: TensorFlow would broadcast or cut them."""
        shapes = {name: np.shape(getattr(batch, name)) for name in self._read}
        steps = len(batch.states)
        of_segments = [shape for name, shape in shapes.items() if name in SEGMENT_COLUMNS]
        for name, shape in shapes.items():
            if name in STEP_COLUMNS and shape != (steps,):
                raise ValueError(f"{steps} states need as many {name}, not {name} of shape {shape}")
            if name in SEGMENT_COLUMNS and (shape != of_segments[0] or len(shape) != 1):
                raise ValueError(f"{name} have shape {shape}, and other columns of segments {of_segments[0]}")

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
        return losses.policy(logits, self._config.min_policy), values, version

    def _gradient_graph(self, states: tf.Tensor, beta: tf.Tensor, *columns: tf.Tensor) -> list[tf.Tensor]:
        """Return the clipped gradients, without those that are None, and last the summary [4 + B].

        The summary is [policy loss, value loss, mean entropy, finite] followed by log pi of each action taken.
        `finite` is 1 where losses and gradients are finite, else 0. Only the gradients of logits and values are checked
        for this. All others are sums of products with them, and checking each would cost a pass over memory.
        """
        # 1. The losses of the batch.
        with tf.GradientTape(persistent=True) as tape:
            logits, values = self.network(states, training=True)
            version = self._version.read_value()
            given = {"logits": logits, "values": values, "beta": beta, "version": version}
            batch = Batch(**given, **dict(zip(COLUMNS, columns, strict=True)))
            policy_loss, value_loss, entropy = self._loss(batch, self._config)
            objectives = self._objectives(policy_loss, value_loss, values)
        self.reads_version = bool(version.consumers())
        # 2. The gradients of each objective. Those of the network's outputs show whether all are finite.
        looked_at = [policy_loss, value_loss]
        found: dict[tuple[int, int], tf.Tensor] = {}
        for number, objective in enumerate(objectives):
            *of_heads, of_weights = tape.gradient(objective, [logits, values, self.variables])
            looked_at += [gradient for gradient in of_heads if gradient is not None]
            found |= {
                (number, variable): tf.convert_to_tensor(gradient)  # the gradient of an embedding is sparse
                for variable, gradient in enumerate(of_weights)
                if gradient is not None
            }
        self.gradients_of = list(found)
        # 3. All numbers that Python needs, in one tensor: the summary.
        finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(each)) for each in looked_at])
        mean_entropy = entropy / tf.cast(tf.size(values), tf.float32)
        summary = tf.stack([policy_loss, value_loss, mean_entropy, tf.cast(finite, tf.float32)])
        log_pi = self._log_taken(logits, batch.actions)
        return [*self._clipped(list(found.values())), tf.concat([summary, log_pi], 0)]

    def _log_taken(self, logits: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        """Return log pi of the actions taken, [B]. Without `min_policy` this is a single operation."""
        if self._config.min_policy:
            return losses.log_taken(losses.log_policy(logits, self._config.min_policy, None), actions)
        return -tf.nn.sparse_softmax_cross_entropy_with_logits(actions, logits)

    def _objectives(self, policy_loss: tf.Tensor, value_loss: tf.Tensor, values: tf.Tensor) -> list[tf.Tensor]:
        """Return the objectives to minimize: the sum of the weighted, reduced losses, or each with `dual_rmsprop`."""
        config = self._config
        parts = [policy_loss, value_loss]
        if config.value_coefficient != 1:
            parts[1] *= config.value_coefficient
        if config.loss_reduction == "mean":
            parts = [part / tf.cast(tf.size(values), tf.float32) for part in parts]
        return parts if config.dual_rmsprop else [parts[0] + parts[1]]

    def _clipped(self, gradients: list[tf.Tensor]) -> list[tf.Tensor]:
        """Clip the gradients by their global norm, or each by itself as the authors do.

        The authors clip by the average norm with one optimizer, and by the norm with two.
        """
        config = self._config
        if config.grad_clip_global:
            return tf.clip_by_global_norm(gradients, config.grad_clip_global)[0]
        if config.grad_clip_norm is None:
            return gradients
        clip = tf.clip_by_norm if config.dual_rmsprop else clip_by_average_norm
        return [clip(gradient, config.grad_clip_norm) for gradient in gradients]

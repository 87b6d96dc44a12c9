"""What PQN and DQN share: a Q network that acts greedily, and its updates on temporal-difference errors.

B is the number of states in a batch, A the number of actions.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from ga3c_tf.algorithms.network_model import NetworkModel, check_states, check_steps
from ga3c_tf.algorithms.q_learning.network import q_network
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.contracts import NO_CARRY, Prediction, UpdateResult
from ga3c_tf.experience.divergence import UNKNOWN
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.device import resolve_dtype_policy
from ga3c_tf.model.device_weights import DeviceWeights
from ga3c_tf.model.graph_call import direct_call, trace
from ga3c_tf.model.tensorflow import tf
from ga3c_tf.model.weight_store import Trainable, WeightStore

METRICS = ("q_loss", "q_value")
"""Sums over the states of a batch: of the losses, and of Q of the actions taken."""


class QLoss(NamedTuple):
    """The loss of each step of a batch, before it is summed or averaged."""

    losses: tf.Tensor  # float32 [B]
    q_values: tf.Tensor  # float32 [B], Q of the actions taken
    errors: tf.Tensor  # float32 [B], targets minus Q


class QModel(NetworkModel):
    """A Q network, whose policy is greedy. Exploration is added where actions are asked for.

    A subclass says which columns of a batch it reads, and computes the loss from them.

    Args:
        config, spec, seed, device, store: as for the actor-critic's `Model`; the network gives Q [B, A].

    Attributes:
        config: settings of the run.
        device: TensorFlow device; None leaves the choice to TensorFlow.
        new_network: makes another network, which has the same initial weights where it is built-in.
    """

    metrics: tuple[str, ...] = METRICS
    layer_norm: ClassVar[bool]
    columns: ClassVar[Mapping[str, tf.DType]]
    """Types of the columns with one number for each step that the loss reads."""

    def __init__(
        self,
        config: Config,
        spec: EnvironmentSpec,
        seed: int,
        device: str | None = None,
        store: Callable[[Trainable, tf.Variable], WeightStore] | None = None,
    ):
        super().__init__()
        self.config = config
        self.device = device
        with tf.device(device):
            self.dtype_policy = resolve_dtype_policy(config.dtype_policy, device)
            self.new_network = functools.partial(
                q_network, config, spec, seed, self.dtype_policy, self.layer_norm
            )
            self.network = self.new_network()
            self.prepare()
            self.variables = [variable.value for variable in self.network.trainable_variables]
            self.states = tf.TensorSpec((None, *spec.state_shape), spec.state_dtype)
            self._predict = direct_call(trace(self._prediction_graph, [self.states]))
            self._inputs = self.inputs()
            gradients = trace(self._gradient_graph, list(self._inputs.values()))
            self._compute = direct_call(gradients)
            self.gradients_of = [
                (0, number)
                for number, gradient in enumerate(gradients.structured_outputs[0])
                if gradient is not None
            ]
        if store is None:
            self._store = DeviceWeights(config, self, self.version, device)
        else:
            self._store = store(self, self.version)

    def prepare(self) -> None:
        """Make what the loss needs besides the network, before its graph is traced."""

    def inputs(self) -> dict[str, tf.TensorSpec]:
        """Return the columns of a batch that an update reads, the states among them."""
        return {"states": self.states} | {
            name: tf.TensorSpec((None,), dtype) for name, dtype in self.columns.items()
        }

    @abstractmethod
    def loss(self, batch: Batch) -> QLoss:
        """Return the loss of a batch of tensors, in a graph."""

    def predict(self, states: np.ndarray, carry: np.ndarray = NO_CARRY) -> Prediction:
        """Return the greedy policy float32 [B, A], the highest Q float32 [B] and the version.

        The weights used include every update up to this version. An update still running in another thread
        may be included in some of them.

        Raises:
            ValueError: the states have another shape or type than those of the network.
        """
        check_states(states, self.states)
        with tf.device(self.device):
            policy, values, version = self._predict(tf.constant(states))
        return Prediction(policy.numpy(), values.numpy(), int(version.numpy()))

    def train(self, batches: Sequence[Batch], rates: Rates) -> list[UpdateResult]:
        return [self._update(batch, rates) for batch in batches]

    def _update(self, batch: Batch, rates: Rates) -> UpdateResult:
        self._check(batch)
        with tf.device(self.device):
            columns = [tf.constant(getattr(batch, name), spec.dtype) for name, spec in self._inputs.items()]
            *gradients, numbers = self._compute(*columns)
        numbers = numbers.numpy()
        *metrics, finite = numbers[: len(METRICS) + 1].tolist()
        version = self._store.push(gradients, rates.learning_rate) if finite else self._store.version()
        self._store.pull()
        by_name = dict(zip(METRICS, metrics, strict=True))
        return UpdateResult(by_name, UNKNOWN, version, bool(finite), errors=numbers[len(METRICS) + 1 :])

    def _check(self, batch: Batch) -> None:
        """Refuse states and columns of a wrong shape: TensorFlow would broadcast them."""
        check_states(batch.states, self.states)
        for name, spec in self._inputs.items():
            check_steps(batch, name, spec.shape[1:])

    def _prediction_graph(self, states: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        version = self.version.read_value()
        # The weights must be read after the version, so that they are at least as new as it says.
        with tf.control_dependencies([version]):
            q_values = self.network(states)
        greedy = tf.one_hot(tf.argmax(q_values, axis=1), q_values.shape[1])
        return greedy, tf.reduce_max(q_values, axis=1), version

    def _gradient_graph(self, *columns: tf.Tensor) -> tuple[list[tf.Tensor | None], tf.Tensor]:
        """Return the clipped gradients, and metrics, finiteness and errors in one float32 tensor."""
        batch = Batch(**dict(zip(self._inputs, columns, strict=True)))
        with tf.GradientTape() as tape:
            loss = self.loss(batch)
            total = tf.reduce_sum(loss.losses)
            count = tf.cast(tf.size(loss.losses), tf.float32)
            objective = total / count if self.config.loss_reduction == "mean" else total
        # The gradient of an embedding is sparse.
        gradients = [
            None if gradient is None else tf.convert_to_tensor(gradient)
            for gradient in tape.gradient(objective, self.variables)
        ]
        norm = tf.linalg.global_norm(gradients)
        if self.config.grad_clip_global:
            gradients, _ = tf.clip_by_global_norm(gradients, self.config.grad_clip_global, norm)
        finite = tf.math.is_finite(total) & tf.math.is_finite(norm)
        summary = tf.stack([total, tf.reduce_sum(loss.q_values), tf.cast(finite, tf.float32)])
        return gradients, tf.concat([summary, loss.errors], 0)


def taken(q_values: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
    """Return Q of the actions taken, [B], from Q of all actions, [B, A]."""
    return tf.gather(q_values, actions, batch_dims=1)

"""What PQN and DQN share: a Q network that acts greedily, and its updates on temporal-difference errors.

B is the number of states in a batch, A the number of actions.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from ga3c_tf.algorithms.computation import GraphOutputs, Network
from ga3c_tf.algorithms.network_model import check_states, check_steps
from ga3c_tf.algorithms.plain_model import PlainModel
from ga3c_tf.algorithms.q_learning.network import q_network
from ga3c_tf.algorithms.reductions import size, total
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.columns import COLUMNS, Batch, Column
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
ACTIONS_AND_RETURNS = tuple(column for column in COLUMNS if column.name in ("actions", "returns"))


class QLoss(NamedTuple):
    """The loss of each step of a batch, before it is summed or averaged."""

    losses: tf.Tensor  # float32 [B]
    q_values: tf.Tensor  # float32 [B], Q of the actions taken
    errors: tf.Tensor  # float32 [B], targets minus Q


class QModel(PlainModel):
    """A Q network, whose policy is greedy. Exploration is added where actions are asked for.

    A subclass says which columns of a batch it reads, and computes the loss from them. It is its own
    `Computation`.

    Args:
        config, spec, seed, device, store: as for the actor-critic's `Model`; the network gives Q [B, A].

    Attributes:
        config: settings of the run.
        device: TensorFlow device; None leaves the choice to TensorFlow.
        new_network: makes another network, which has the same initial weights where it is built-in.
    """

    metrics: tuple[str, ...] = METRICS
    layer_norm: ClassVar[bool]
    columns: Sequence[Column]

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
            self.variables = [variable.value for variable in self.network.trainable_variables]
            self.states = tf.TensorSpec((None, *spec.state_shape), spec.state_dtype)
            self.columns = self.columns_of(spec)
            self.prepare()
            self._predict = direct_call(trace(self._prediction_graph, [self.states]))
            columns = [tf.TensorSpec((None, *column.shape), column.dtype) for column in self.columns]
            gradients = trace(self._gradient_graph, [self.states, *columns])
            self._compute = direct_call(gradients)
            self.gradients_of = [
                (0, number)
                for number, gradient in enumerate(gradients.structured_outputs.gradients[0])
                if gradient is not None
            ]
        if store is None:
            self._store = DeviceWeights(config, self, self.version, device)
        else:
            self._store = store(self, self.version)

    @property
    def computation(self) -> QModel:
        return self

    def prepare(self) -> None:
        """Make what the loss needs besides the network, before its graph is traced."""

    @abstractmethod
    def columns_of(self, spec: EnvironmentSpec) -> Sequence[Column]:
        """Return the columns of a batch that the loss reads besides the states, which have this shape."""

    @abstractmethod
    def loss(self, network: Network, batch: Batch) -> QLoss:
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
        self.check(batch)
        with tf.device(self.device):
            columns = [tf.constant(getattr(batch, column.name), column.dtype) for column in self.columns]
            *gradients, numbers = self._compute(tf.constant(batch.states), *columns)
        numbers = numbers.numpy()
        version = self._store.push(gradients, rates.learning_rate) if numbers[0] else self._store.version()
        self._store.pull()
        return self.result(batch, numbers, version)

    def result(self, batch: Batch, numbers: np.ndarray, version: int) -> UpdateResult:
        finite, *metrics = numbers[: 1 + len(METRICS)].tolist()
        by_name = dict(zip(METRICS, metrics, strict=True))
        return UpdateResult(by_name, UNKNOWN, version, bool(finite), errors=numbers[1 + len(METRICS) :])

    def check(self, batch: Batch) -> None:
        check_states(batch.states, self.states)
        for column in self.columns:
            check_steps(batch, column.name, column.shape)

    def answers(self, outputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        greedy = tf.one_hot(tf.argmax(outputs, axis=1), outputs.shape[1])
        return greedy, tf.reduce_max(outputs, axis=1)

    def _prediction_graph(self, states: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        version = self.version.read_value()
        # The weights must be read after the version, so that they are at least as new as it says.
        with tf.control_dependencies([version]):
            q_values = self.network(states)
        return *self.answers(q_values), version

    def _gradient_graph(self, states: tf.Tensor, *columns: tf.Tensor) -> GraphOutputs:
        names = [column.name for column in self.columns]
        batch = Batch(states=states, **dict(zip(names, columns, strict=True)))
        return self.gradients_in_graph(self.network, self.variables, batch)

    def gradients_in_graph(
        self, network: Network, weights: Sequence[tf.Variable | tf.Tensor], batch: Batch
    ) -> GraphOutputs:
        with tf.GradientTape() as tape:
            tape.watch(weights)
            loss = self.loss(network, batch)
            objective = summed = total(batch, loss.losses)
            if self.config.loss_reduction == "mean":
                objective /= size(batch, loss.losses)
        # The gradient of an embedding is sparse.
        gradients = [
            None if gradient is None else tf.convert_to_tensor(gradient)
            for gradient in tape.gradient(objective, [*weights])
        ]
        norm = tf.linalg.global_norm(gradients)
        if self.config.grad_clip_global:
            gradients, _ = tf.clip_by_global_norm(gradients, self.config.grad_clip_global, norm)
        finite = tf.math.is_finite(summed) & tf.math.is_finite(norm)
        summary = tf.stack([tf.cast(finite, tf.float32), summed, total(batch, loss.q_values)])
        return GraphOutputs([gradients], tf.concat([summary, loss.errors], 0))


def taken(q_values: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
    """Return Q of the actions taken, [B], from Q of all actions, [B, A]."""
    return tf.gather(q_values, actions, batch_dims=1)

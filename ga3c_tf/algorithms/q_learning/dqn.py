"""Deep Q-networks (Mnih et al. 2015): Q-learning from a replay memory, with a target network.

B is the number of states in a batch, A the number of actions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ga3c_tf.algorithms.computation import Network
from ga3c_tf.algorithms.q_learning.model import ACTIONS_AND_RETURNS, METRICS, QLoss, QModel, taken
from ga3c_tf.errors import UserError
from ga3c_tf.experience.columns import Batch, Column
from ga3c_tf.experience.contracts import UpdateResult
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.compiled.weights import ReadableWeights
from ga3c_tf.model.graph_call import direct_call, trace
from ga3c_tf.model.tensorflow import keras, tf

SAMPLED_COLUMNS = (
    Column("discounts", np.float32, "discount of the value of the state after these rewards"),
    Column("weights", np.float32, "weight of the loss, which corrects for the priorities"),
)


class DQN(QModel):
    """Learns the n-step returns of sampled steps, which bootstrap from the target network.

    The target of a step is the discounted sum of up to n rewards, plus the discounted value of the state
    after them. With double Q-learning (van Hasselt et al. 2016) the network chooses the action whose value
    the target network gives.

    Attributes:
        target: the target network, a copy of the network that is made every `target_period` updates.

    Raises:
        UserError: as for `q_network`, or a user's network has the same weights at each call.
    """

    metrics = (*METRICS, "sample_age")
    layer_norm = False
    target: keras.Model

    def prepare(self) -> None:
        self.target = self.new_network()
        if set(map(id, self.target.weights)) & set(map(id, self.network.weights)):
            raise UserError(
                f"network {self.config.network!r} has the same weights at each call; a target network needs "
                "its own, so make new layers each time"
            )
        self._copy_from(lambda: self.variables)

    def follow(self, weights: ReadableWeights) -> None:
        self._copy_from(lambda: weights.values()[0])

    def columns_of(self, spec: EnvironmentSpec) -> Sequence[Column]:
        dtype = np.dtype(spec.state_dtype).type
        next_states = Column("next_states", dtype, "the state after these rewards", spec.state_shape)
        return (*ACTIONS_AND_RETURNS, *SAMPLED_COLUMNS, next_states)

    def loss(self, network: Network, batch: Batch) -> QLoss:
        of_target = self.target(batch.next_states)
        chosen_by = of_target
        if self.config.double_q:
            chosen_by = network(batch.next_states)
        next_values = taken(of_target, tf.argmax(chosen_by, axis=1))
        # The network has no gradient through its choice, and that of the target network is not asked for.
        targets = batch.returns + batch.discounts * next_values
        q_values = taken(network(batch.states, training=True), batch.actions)
        errors = targets - q_values
        return QLoss(batch.weights * huber(errors), q_values, errors)

    def load(self) -> None:
        if self.updates == 0:  # the network may have begun with weights that are not the target network's
            self._copy_to_target()

    def standardize(self, mean: np.ndarray, variance: np.ndarray) -> None:
        super().standardize(mean, variance)
        self.target.get_layer("standardize").measured(mean, variance)

    def checkpoint_objects(self) -> dict[str, list[tf.Variable]]:
        target = [variable.value for variable in self.target.weights]
        return {**super().checkpoint_objects(), "target": target}

    def result(self, batch: Batch, numbers: np.ndarray, version: int) -> UpdateResult:
        result = super().result(batch, numbers, version)
        if result.applied and version % self.config.target_period == 0:
            self._copy_to_target()
        return result._replace(metrics={**result.metrics, "sample_age": float(batch.ages.sum())})

    def _copy_to_target(self) -> None:
        with tf.device(self.device):
            self._copy()

    def _copy_from(self, trained: Callable[[], Sequence[tf.Variable | tf.Tensor]]) -> None:
        """Make the call that copies the network to the target network.

        Args:
            trained: reads the weights that are trained, in a graph. The others are the network's.
        """

        def copy() -> tf.Tensor:
            targets = [*self.target.trainable_weights, *self.target.non_trainable_weights]
            weights = [*trained(), *(weight.value for weight in self.network.non_trainable_weights)]
            pairs = zip(targets, weights, strict=True)
            copies = [target.value.assign(weight).op for target, weight in pairs]
            with tf.control_dependencies(copies):
                return tf.constant(len(copies))

        self._copy = direct_call(trace(copy, []))


def huber(errors: tf.Tensor) -> tf.Tensor:
    """Return 0.5 * e^2 for each error up to 1, and |e| - 0.5 beyond, of the errors' shape.

    Its gradient is the error clipped to [-1, 1], as in Mnih et al. 2015.
    """
    size = tf.abs(errors)
    quadratic = tf.minimum(size, 1.0)
    return quadratic * (size - 0.5 * quadratic)

"""Deep Q-networks (Mnih et al. 2015): Q-learning from a replay memory, with a target network.

B is the number of states in a batch, A the number of actions.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ga3c_tf.algorithms.q_learning.model import METRICS, QLoss, QModel, taken
from ga3c_tf.config.rates import Rates
from ga3c_tf.errors import UserError
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.contracts import UpdateResult
from ga3c_tf.model.graph_call import direct_call, trace
from ga3c_tf.model.tensorflow import keras, tf


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
    columns: ClassVar = {
        "actions": tf.int32,
        "returns": tf.float32,
        "discounts": tf.float32,
        "weights": tf.float32,
    }
    target: keras.Model

    def prepare(self) -> None:
        self.target = self.new_network()
        if set(map(id, self.target.weights)) & set(map(id, self.network.weights)):
            raise UserError(
                f"network {self.config.network!r} has the same weights at each call; a target network needs "
                "its own, so make new layers each time"
            )
        self._copy = direct_call(trace(self._copy_graph, []))

    def inputs(self) -> dict[str, tf.TensorSpec]:
        return super().inputs() | {"next_states": self.states}

    def loss(self, batch: Batch) -> QLoss:
        of_target = self.target(batch.next_states)
        chosen_by = of_target
        if self.config.double_q:
            chosen_by = self.network(batch.next_states)
        next_values = taken(of_target, tf.argmax(chosen_by, axis=1))
        # The network has no gradient through its choice, and that of the target network is not asked for.
        targets = batch.returns + batch.discounts * next_values
        q_values = taken(self.network(batch.states, training=True), batch.actions)
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

    def _update(self, batch: Batch, rates: Rates) -> UpdateResult:
        result = super()._update(batch, rates)
        if result.applied and result.version % self.config.target_period == 0:
            self._copy_to_target()
        return result._replace(metrics={**result.metrics, "sample_age": float(batch.ages.sum())})

    def _copy_to_target(self) -> None:
        with tf.device(self.device):
            self._copy()

    def _copy_graph(self) -> tf.Tensor:
        pairs = zip(self.target.weights, self.network.weights, strict=True)
        copies = [target.value.assign(weight.value).op for target, weight in pairs]
        with tf.control_dependencies(copies):
            return tf.constant(len(copies))


def huber(errors: tf.Tensor) -> tf.Tensor:
    """Return 0.5 * e^2 for each error up to 1, and |e| - 0.5 beyond, of the errors' shape.

    Its gradient is the error clipped to [-1, 1], as in Mnih et al. 2015.
    """
    size = tf.abs(errors)
    quadratic = tf.minimum(size, 1.0)
    return quadratic * (size - 0.5 * quadratic)

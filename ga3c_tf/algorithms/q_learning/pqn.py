"""PQN (Gallici et al. 2024, arXiv 2407.04811): Q-learning without replay memory and target network."""

from __future__ import annotations

from collections.abc import Sequence

from ga3c_tf.algorithms.computation import Network
from ga3c_tf.algorithms.q_learning.model import ACTIONS_AND_RETURNS, QLoss, QModel, taken
from ga3c_tf.experience.columns import Batch, Column
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.tensorflow import tf


class PQN(QModel):
    """Learns Q(lambda) from the segments of many agents, with layer normalization against divergence.

    The targets are the lambda-returns that agents compute as for the actor-critic: the value of a state is
    the highest Q at the time of acting, so R[i] = r[i] + gamma * ((1 - lambda) * max Q[i + 1] + lambda *
    R[i + 1]). As in the authors' code, they stay the same in all epochs on a batch.
    """

    layer_norm = True

    def columns_of(self, spec: EnvironmentSpec) -> Sequence[Column]:
        return ACTIONS_AND_RETURNS

    def loss(self, network: Network, batch: Batch) -> QLoss:
        q_values = taken(network(batch.states, training=True), batch.actions)
        errors = batch.returns - q_values
        return QLoss(0.5 * tf.square(errors), q_values, errors)

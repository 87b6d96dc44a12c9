"""Asynchronous updates: each is made on one device, with its copy of central weights."""

from __future__ import annotations

from collections.abc import Sequence

from ga3c_tf.algorithms.actor_critic.replicas.replica import Replica
from ga3c_tf.algorithms.actor_critic.replicas.replicas import Replicas
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.contracts import UpdateResult


class AsynchronousReplicas(Replicas):
    """The first replica has the central weights. The others copy them once they are `pull_updates` behind.

    The metric `replica_lag` is the lag of a copy: updates between the weights that the gradients of an update
    were computed with and the update. Policy lag includes it, since predictions have the version of the copy.
    """

    def __init__(self, config: Config, replicas: Sequence[Replica]):
        super().__init__(config, replicas, config.pull_updates)
        self.metrics = (*self.metrics, "replica_lag")

    def _update(self, batch: Batch, rates: Rates) -> UpdateResult:
        with self.lent() as number:
            before = self._versions[number]
            gradients = self.replicas[number].gradients(batch, rates.beta)
        result = self._updated(gradients, batch, rates)
        lag = (result.version - 1 - before) * len(batch)
        return result._replace(metrics={**result.metrics, "replica_lag": lag})

"""The programs of a compiled model, by size."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from ga3c_tf.algorithms.actor_critic.actor_critic import ActorCritic
from ga3c_tf.algorithms.actor_critic.compiled.batch_upload import BatchUpload, IndexedUpload, UpdateSize
from ga3c_tf.algorithms.actor_critic.compiled.prediction_program import PredictionProgram
from ga3c_tf.algorithms.actor_critic.compiled.sizes import UpdateSizes, prediction_size
from ga3c_tf.algorithms.actor_critic.compiled.stateless import StatelessNetwork
from ga3c_tf.algorithms.actor_critic.compiled.update_program import UpdateProgram
from ga3c_tf.config import Config
from ga3c_tf.experience.columns import Column
from ga3c_tf.model.compiled.program import Program
from ga3c_tf.model.compiled.weights import VectorWeights


class Programs:
    """Makes each program where it is first needed. Thread-safe.

    Args:
        config: settings of the run.
        actor_critic: network and objective.
        weights: weights that the programs read and train.
        device: TensorFlow device; None leaves the choice to TensorFlow.

    Attributes:
        sizes: sizes of the updates.
    """

    def __init__(self, config: Config, actor_critic: ActorCritic, weights: VectorWeights, device: str | None):
        self.sizes = UpdateSizes(config)
        self._min_policy = config.min_policy
        self._actor_critic = actor_critic
        self._network = StatelessNetwork(actor_critic.network, actor_critic.states)
        self._weights = weights
        self._device = device
        self._programs: dict[Any, Any] = {}
        self._making = threading.Lock()

    def usual(self) -> Iterator[Program]:
        """Yield the compiled functions of the sizes that the settings produce."""
        for size in self.sizes.usual():
            yield self.update(size).program
        for states in self.sizes.usual_predictions():
            yield self.prediction(states).program

    def update(self, size: UpdateSize) -> UpdateProgram:
        """Return the program for updates of a size."""
        return self._made(size, self._new_update)

    def prediction(self, states: int) -> PredictionProgram:
        """Return the program that predicts for so many states."""
        return self._made(prediction_size(states), self._new_prediction)

    def _made(self, size: Any, make: Callable[[Any], Any]) -> Any:
        with self._making:
            if size not in self._programs:
                self._programs[size] = make(size)
            return self._programs[size]

    def _new_update(self, size: UpdateSize) -> UpdateProgram:
        kind = IndexedUpload if self.sizes.has_minibatches else BatchUpload
        batches = self.new_upload(kind, size)
        objective = self._actor_critic.objective
        return UpdateProgram(self._network, objective, batches, self._weights, size, self._device)

    def new_upload(self, kind: type[BatchUpload], size: UpdateSize) -> BatchUpload:
        """Return an upload of this kind, for what an update reads."""
        network = self._network
        states = Column("states", network.state_dtype.type, "what the agent sees", network.state_shape)
        return kind(self._actor_critic.columns, states, size)

    def _new_prediction(self, size: int) -> PredictionProgram:
        return PredictionProgram(self._network, self._weights, self._min_policy, size, self._device)

"""A model of compiled programs, for GPUs: there each operation costs a launch, and each copy a call."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.algorithms.actor_critic.prediction_program import PredictionProgram
from ga3c_tf.algorithms.actor_critic.sizes import UpdateSize, UpdateSizes, prediction_size
from ga3c_tf.algorithms.actor_critic.stateless import StatelessNetwork
from ga3c_tf.algorithms.actor_critic.update_program import UpdateProgram
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.contracts import Prediction, UpdateResult
from ga3c_tf.model.compiled.compilation import CannotCompile, compile_all
from ga3c_tf.model.compiled.weights import VectorWeights
from ga3c_tf.model.tensorflow import keras

Made = TypeVar("Made")


class CompiledModel(Model):
    """A `Model` that computes the same with compiled programs, several updates in one call.

    Its weights are a vector on the device. The variables of the network, and of checkpoints, have them after
    `store`. Programs are compiled by `compile`, or else when a batch first needs them.

    Args:
        config, state_shape, state_dtype, num_actions, seed, network, device: as for `Model`.

    Raises:
        CannotCompile: the network or the loss cannot be compiled.
        UserError: as for `Model`.
    """

    def __init__(
        self,
        config: Config,
        state_shape: Sequence[int],
        state_dtype: np.dtype | str,
        num_actions: int,
        seed: int,
        network: keras.Model | None = None,
        device: str | None = None,
    ):
        super().__init__(config, state_shape, state_dtype, num_actions, seed, network, device)
        if ":" in config.loss:
            raise CannotCompile("the loss is your own, and rows of padding would count in it")
        self._config = config
        self._device = device
        self._sizes = UpdateSizes(config)
        self.updates_per_call = self._sizes.updates_per_call
        self._network = StatelessNetwork(self.network, self.states)
        variables = self._actor_critic.variables
        self._weights = VectorWeights(config, variables, self._store.slots(), self.version, device)
        self._updates = 0
        self._programs: dict[Any, Any] = {}
        self._making = threading.Lock()

    @property
    def updates(self) -> int:
        """Number of updates done, from the result of the newest one."""
        return self._updates

    def compile(self, say: Callable[[str], None]) -> None:
        """Compile the programs of usual sizes, in parallel.

        Args:
            say: called with one line at the beginning.

        Raises:
            CannotCompile: XLA cannot compile one of them.
        """
        updates = self._sizes.usual()
        predictions = self._sizes.usual_predictions()
        say(f"compiling {len(updates) + len(predictions)} programs of XLA, which takes some seconds")
        compile_all(
            itertools.chain(
                (self._update_program(size).program for size in updates),
                (self._prediction_program(size).program for size in predictions),
            )
        )

    def load(self) -> None:
        self._weights.load()
        self._updates = int(self.version.numpy())

    def store(self) -> None:
        self._weights.store()

    def predict(self, states: np.ndarray) -> Prediction:
        self._actor_critic.check_states(states)
        return self._prediction_program(prediction_size(len(states))).predict(states)

    def train(self, batches: Sequence[Batch], rates: Rates) -> list[UpdateResult]:
        wholes = {id(batch.whole): batch.whole for batch in batches}.values()
        for whole in wholes:
            self._actor_critic.check(whole)
        size = self._sizes.of(sum(map(len, wholes)), len(batches), max(map(len, batches)))
        updates = self._update_program(size).update(batches, rates)
        results = []
        for batch, (update, version) in zip(batches, updates, strict=True):
            divergence = self._divergence.sample(batch, update.log_pi)
            results.append(UpdateResult(update.metrics, divergence, version, update.finite))
        self._updates = max(self._updates, results[-1].version)
        return results

    def _update_program(self, size: UpdateSize) -> UpdateProgram:
        actor_critic = self._actor_critic
        return self._made(
            size,
            lambda: UpdateProgram(
                self._network, actor_critic.objective, actor_critic.columns, self._weights, size, self._device
            ),
        )

    def _prediction_program(self, size: int) -> PredictionProgram:
        return self._made(
            size,
            lambda: PredictionProgram(
                self._network, self._weights, self._config.min_policy, size, self._device
            ),
        )

    def _made(self, size: Any, make: Callable[[], Made]) -> Made:
        """Return the program of a size, which is made where it is needed first."""
        with self._making:
            if size not in self._programs:
                self._programs[size] = make()
            return self._programs[size]

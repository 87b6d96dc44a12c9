"""A model of compiled programs, for GPUs: there each operation costs a launch, and each copy a call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from ga3c_tf.algorithms.compiled.programs import UpdatePrograms
from ga3c_tf.algorithms.network_model import NetworkModel, check_states
from ga3c_tf.algorithms.plain_model import PlainModel
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.contracts import NO_CARRY, Prediction, UpdateResult
from ga3c_tf.model.compiled.compilation import compile_all
from ga3c_tf.model.compiled.weights import VectorWeights
from ga3c_tf.model.tensorflow import tf


class CompiledModel(NetworkModel):
    """Computes the same as a plain model with compiled programs, several updates in one call.

    Its weights are a vector on the device. The plain model's variables, and checkpoints, have them after
    `store`. Programs are compiled by `compile`, or else when a batch first needs them.

    Args:
        config: settings of the run.
        plain: the plain model, which is no longer trained by itself once this one has loaded its weights.
        device: its TensorFlow device; None leaves the choice to TensorFlow.

    Raises:
        CannotCompile: the model cannot be compiled.
    """

    def __init__(self, config: Config, plain: PlainModel, device: str | None = None):
        plain.check_compilable()
        self.metrics = plain.metrics
        self.network = plain.network
        self.dtype_policy = plain.dtype_policy
        self.states = plain.states
        self.needs_segments = plain.needs_segments
        self.version = plain.version
        self._plain = plain
        self._weights = VectorWeights(
            config, plain.computation.variables, plain.slots(), self.version, device
        )
        self._programs = UpdatePrograms(config, plain.computation, self._weights, device)
        self.updates_per_call = self._programs.sizes.updates_per_call
        self._updates = 0
        self._counting = threading.Lock()  # trainers may end updates at once

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
        say("compiling the model, which takes some seconds")
        compile_all(self._programs.usual())

    def load(self) -> None:
        self._weights.load()
        self._plain.follow(self._weights)
        self._plain.load()
        self._updates = int(self.version.numpy())

    def store(self) -> None:
        self._weights.store()

    def standardize(self, mean: np.ndarray, variance: np.ndarray) -> None:
        self._plain.standardize(mean, variance)

    def checkpoint_objects(self) -> dict[str, list[tf.Variable]]:
        return self._plain.checkpoint_objects()

    def predict(self, states: np.ndarray, carry: np.ndarray = NO_CARRY) -> Prediction:
        check_states(states, self.states)
        return self._programs.prediction(len(states)).predict(states)

    def train(self, batches: Sequence[Batch], rates: Rates) -> list[UpdateResult]:
        wholes = {id(batch.whole): batch.whole for batch in batches}.values()
        for whole in wholes:
            self._plain.computation.check(whole)
        size = self._programs.sizes.of(sum(map(len, wholes)), len(batches), max(map(len, batches)))
        updates = self._programs.update(size).update(batches, rates)
        results = [self._plain.result(batch, *update) for batch, update in zip(batches, updates, strict=True)]
        with self._counting:
            self._updates = max(self._updates, results[-1].version)
        return results

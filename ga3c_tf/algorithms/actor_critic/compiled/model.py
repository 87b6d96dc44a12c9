"""A model of compiled programs, for GPUs: there each operation costs a launch, and each copy a call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from ga3c_tf.algorithms.actor_critic.compiled.programs import UpdatePrograms
from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.algorithms.network_model import check_states
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.contracts import NO_CARRY, Prediction, UpdateResult
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.compiled.compilation import CannotCompile, compile_all
from ga3c_tf.model.compiled.weights import VectorWeights


class CompiledModel(Model):
    """A `Model` that computes the same with compiled programs, several updates in one call.

    Its weights are a vector on the device. The variables of the network, and of checkpoints, have them after
    `store`. Programs are compiled by `compile`, or else when a batch first needs them.

    Args:
        config, spec, seed, device: as for `Model`.

    Raises:
        CannotCompile: the network or the loss cannot be compiled.
        UserError: as for `Model`.
    """

    def __init__(self, config: Config, spec: EnvironmentSpec, seed: int, device: str | None = None):
        super().__init__(config, spec, seed, device=device)
        check_compilable(config, self)
        actor_critic = self._actor_critic
        if self._proximal or actor_critic.loss.scales_step:
            raise CannotCompile("the correction computes something between the updates of a call")
        slots = self._store.slots()
        self._weights = VectorWeights(config, actor_critic.variables, slots, self.version, device)
        self._programs = UpdatePrograms(config, actor_critic, self._weights, device)
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
        self._updates = int(self.version.numpy())

    def store(self) -> None:
        self._weights.store()

    def predict(self, states: np.ndarray, carry: np.ndarray = NO_CARRY) -> Prediction:
        check_states(states, self.states)
        return self._programs.prediction(len(states)).predict(states)

    def train(self, batches: Sequence[Batch], rates: Rates) -> list[UpdateResult]:
        wholes = {id(batch.whole): batch.whole for batch in batches}.values()
        for whole in wholes:
            self._actor_critic.check(whole)
        size = self._programs.sizes.of(sum(map(len, wholes)), len(batches), max(map(len, batches)))
        updates = self._programs.update(size).update(batches, rates)
        results = []
        for batch, (update, version) in zip(batches, updates, strict=True):
            divergence = self._divergence.sample(batch, update.log_pi)
            results.append(UpdateResult(update.metrics, divergence, version, update.finite))
        with self._counting:
            self._updates = max(self._updates, results[-1].version)
        return results


def check_compilable(config: Config, model: Model) -> None:
    """Raise CannotCompile for a loss or a network that has only a plain form."""
    if ":" in config.loss:
        raise CannotCompile("the loss is your own, and rows of padding would count in it")
    if len(model.initial_carry):
        raise CannotCompile("the network has memory, which the compiled programs do not pass on")

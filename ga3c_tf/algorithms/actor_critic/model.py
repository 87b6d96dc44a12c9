"""The model: one for all predictor and trainer threads of a run (section 4 of the paper), or one for each A3C
agent.

B is the number of states in a batch, A the number of actions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ga3c_tf.algorithms.actor_critic.actor_critic import ActorCritic
from ga3c_tf.algorithms.actor_critic.gradients import METRICS, Gradients
from ga3c_tf.algorithms.actor_critic.proximal import proximal_of
from ga3c_tf.algorithms.plain_model import PlainModel
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.contracts import NO_CARRY, Prediction, UpdateResult
from ga3c_tf.experience.divergence import DivergenceSampler, effective_sample_size
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.compiled.compilation import CannotCompile
from ga3c_tf.model.device_weights import DeviceWeights
from ga3c_tf.model.tensorflow import keras, tf
from ga3c_tf.model.weight_store import Trainable, WeightStore


class Model(PlainModel):
    """The network and the weights that it trains: policy and learner at once.

    Args:
        config: Settings of the run; those for the network, the loss and the optimizer are used.
        spec: Shape and type of states, and number of actions, A.
        seed: Seed of the initial weights.
        network: Network to use instead of building `config.network`.
        device: TensorFlow device, as `configure_device` returns it; None leaves the choice to TensorFlow.
        store: Makes the store of the weights, from what computes its gradients and the version; None for the
            network's own variables on the device.

    Attributes:
        network: keras.Model from states [B, *state_shape] to (logits [B, A], values [B]), or a recurrent one,
            see `ga3c_tf.model.recurrent`.
        dtype_policy: Keras's name of the dtype policy of the hidden layers.
        states: tf.TensorSpec of a batch of states.
        initial_carry: float32 [H], carry with which an episode begins; [0] without memory.
        version: Scalar int64 variable, the number of updates done.
        metrics: Names of the metrics of updates: sums over the states of a batch.
        updates_per_call: 1.

    Raises:
        UserError: The network cannot be built or does not fit the states, or the loss fails.
    """

    metrics = METRICS

    def __init__(
        self,
        config: Config,
        spec: EnvironmentSpec,
        seed: int,
        network: keras.Model | None = None,
        device: str | None = None,
        store: Callable[[Trainable, tf.Variable], WeightStore] | None = None,
    ):
        super().__init__(device)
        actor_critic = ActorCritic(config, spec, seed, self.version, network, device)
        self._config = config
        self._actor_critic = actor_critic
        self.network = actor_critic.network
        self.dtype_policy = actor_critic.dtype_policy
        self.states = actor_critic.states
        self.initial_carry = actor_critic.initial_carry
        self.needs_segments = actor_critic.needs_segments
        if store is None:
            self._store = DeviceWeights(config, actor_critic, self.version, device)
        else:
            self._store = store(actor_critic, self.version)
        self._proximal = proximal_of(config, actor_critic)
        # Where the weights are a copy, the model is the policy that chose the actions, not the updated one.
        self._divergence = DivergenceSampler(actor_critic.loss.bounds, is_behavior=store is not None)

    @property
    def computation(self) -> ActorCritic:
        return self._actor_critic

    def check_compilable(self) -> None:
        if ":" in self._config.loss:
            raise CannotCompile("the loss is your own, and rows of padding would count in it")
        if len(self.initial_carry):
            raise CannotCompile("the network has memory, which the compiled programs do not pass on")
        if self._proximal or self.computation.loss.scales_step:
            raise CannotCompile("the correction computes something between the updates of a call")

    def predict(self, states: np.ndarray, carry: np.ndarray = NO_CARRY) -> Prediction:
        return self.computation.predict(states, carry)

    def train(self, batches: Sequence[Batch], rates: Rates) -> list[UpdateResult]:
        """Update the weights on each batch. Skip an update whose losses or gradients are not finite.

        Raises:
            ValueError: an error of `ActorCritic.gradients`.
        """
        return [self._update(batch, rates) for batch in batches]

    def _update(self, batch: Batch, rates: Rates) -> UpdateResult:
        actor_critic = self.computation
        store = self._store
        if actor_critic.loss.reads_version:
            store.version()
        if self._proximal:
            self._proximal.before(batch)
        gradients = actor_critic.gradients(batch, rates.beta)
        if gradients.finite:
            version = store.push(gradients.tensors, self._step_size(batch, gradients.log_pi, rates))
        else:
            version = store.version()
        store.pull()
        if self._proximal and gradients.finite:
            self._proximal.after()
        return self._result(batch, gradients, version)

    def result(self, batch: Batch, numbers: np.ndarray, version: int) -> UpdateResult:
        return self._result(batch, Gradients.unpacked((), numbers), version)

    def _result(self, batch: Batch, gradients: Gradients, version: int) -> UpdateResult:
        divergence = self._divergence.sample(batch, gradients.log_pi)
        return UpdateResult(gradients.metrics, divergence, version, gradients.finite)

    def _step_size(self, batch: Batch, log_pi: np.ndarray, rates: Rates) -> float:
        """Return the learning rate of an update, scaled if the correction says so."""
        if not self.computation.loss.scales_step:
            return rates.learning_rate
        share = effective_sample_size(log_pi, batch.mu_log_probabilities)
        return rates.learning_rate * math.sqrt(share)

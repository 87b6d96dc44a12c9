"""One device's model of several: its gradients and its updates are two calls, so that others can join in."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from ga3c_tf.algorithms.actor_critic.gradients import Gradients, clipped
from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.algorithms.network_model import NetworkModel
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.contracts import UpdateResult
from ga3c_tf.experience.divergence import Bounds, DivergenceSampler
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.device_weights import DeviceWeights
from ga3c_tf.model.tensorflow import tf
from ga3c_tf.model.weight_store import Trainable


class Replica(NetworkModel):
    """A `NetworkModel` for `Replicas`. Gradients and weights are arrays of the host, in any fixed order.

    Attributes:
        bounds: what the loss clips or floors.
    """

    bounds: Bounds

    @abstractmethod
    def gradients(self, batch: Batch, beta: float) -> Gradients:
        """Return the gradients of a batch before they are clipped, and its metrics."""

    @abstractmethod
    def apply(self, gradients: Sequence[np.ndarray], learning_rate: float) -> int:
        """Clip gradients and update the weights; return the updates done with this one."""

    @abstractmethod
    def learn(self, batch: Batch, rates: Rates) -> UpdateResult:
        """Make the update of a whole batch."""

    @abstractmethod
    def weights(self) -> list[np.ndarray]:
        """Return the trained weights."""

    @abstractmethod
    def replace(self, weights: Sequence[np.ndarray], version: int) -> None:
        """Take the trained weights of another replica, which contain this number of updates at least."""


class PlainReplica(Model, Replica):
    """A replica with a `Model`'s graphs.

    Args:
        config, spec, seed: as for `new_model`.
        device: TensorFlow device, as `configure_device` returns it.
    """

    def __init__(self, config: Config, spec: EnvironmentSpec, seed: int, device: str):
        self._device = device
        super().__init__(
            without_clipping(config),
            spec.state_shape,
            spec.state_dtype,
            spec.num_actions,
            seed,
            device=device,
            store=functools.partial(_clipping_store, config, device),
        )
        self.bounds = self._actor_critic.loss.bounds
        self._divergence = DivergenceSampler(self.bounds)

    def learn(self, batch: Batch, rates: Rates) -> UpdateResult:
        [result] = self.train([batch], rates)
        return result

    def gradients(self, batch: Batch, beta: float) -> Gradients:
        gradients = self._actor_critic.gradients(batch, beta)
        return gradients._replace(tensors=[*map(np.asarray, gradients.tensors)])

    def apply(self, gradients: Sequence[np.ndarray], learning_rate: float) -> int:
        with tf.device(self._device):
            return self._store.push([*map(tf.constant, gradients)], learning_rate)

    def weights(self) -> list[np.ndarray]:
        return [np.asarray(variable.read_value()) for variable in self._actor_critic.variables]

    def replace(self, weights: Sequence[np.ndarray], version: int) -> None:
        with tf.device(self._device):
            for variable, weight in zip(self._actor_critic.variables, weights, strict=True):
                _assign(variable, tf.constant(weight))
            _assign(self.version, tf.constant(version, tf.int64))


def _assign(variable: tf.Variable, value: tf.Tensor) -> None:
    """Assign without the checks of `variable.assign`, which take most of its time."""
    tf.raw_ops.AssignVariableOp(resource=variable.handle, value=value)


def without_clipping(config: Config) -> Config:
    """Return the settings with which a replica computes gradients: their norm is that of all parts of a
    batch together, so that an update clips them.
    """
    return config.resolved(grad_clip_norm=None, grad_clip_global=0.0)


def _clipping_store(config: Config, device: str, network: Trainable, version: tf.Variable) -> DeviceWeights:
    return DeviceWeights(config, network, version, device, functools.partial(clipped, config))

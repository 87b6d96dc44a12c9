"""One device's model of several: its gradients and its updates are two calls, so that others can join in."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ga3c_tf.algorithms.actor_critic.gradients import Gradients, clipped
from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.config import Config
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.device_weights import DeviceWeights
from ga3c_tf.model.tensorflow import tf
from ga3c_tf.model.weight_store import Trainable


class Replica(Model):
    """A `Model` whose gradients may be computed on another device than the one that is updated.

    Args:
        config, spec, seed: as for `new_model`.
        device: TensorFlow device, as `configure_device` returns it.

    Attributes:
        bounds: what the loss clips or floors.
        size: number of trained weights.
    """

    def __init__(self, config: Config, spec: EnvironmentSpec, seed: int, device: str):
        self._device = device
        store = functools.partial(_clipping_store, config, device)
        super().__init__(_without_clipping(config), spec, seed, device=device, store=store)
        self._variables = self.computation.variables
        self.bounds = self.computation.loss.bounds
        self.size = sum(variable.shape.num_elements() for variable in self._variables)

    def gradients(self, batch: Batch, beta: float) -> Gradients:
        """Return the gradients of a batch before they are clipped, and its metrics."""
        return self.computation.gradients(batch, beta)

    def apply(self, gradients: Sequence[tf.Tensor | np.ndarray], learning_rate: float) -> int:
        """Clip gradients and update the weights; return the updates done with this one."""
        with tf.device(self._device):
            return self._store.push([*map(tf.constant, gradients)], learning_rate)

    def weights(self) -> list[np.ndarray]:
        """Return the trained weights."""
        return [np.asarray(variable.read_value()) for variable in self._variables]

    def replace(self, weights: Sequence[np.ndarray], version: int) -> None:
        """Take the trained weights of another replica, which contain this number of updates at least."""
        with tf.device(self._device):
            for variable, weight in zip(self._variables, weights, strict=True):
                assign(variable, tf.constant(weight))
            assign(self.version, tf.constant(version, tf.int64))


def assign(variable: tf.Variable, value: tf.Tensor) -> None:
    """Assign without the checks of `variable.assign`, which take most of its time."""
    tf.raw_ops.AssignVariableOp(resource=variable.handle, value=value)


def _without_clipping(config: Config) -> Config:
    """Return the settings with which a replica computes gradients: their norm is that of all parts of a
    batch together, so that an update clips them.
    """
    return config.resolved(grad_clip_norm=None, grad_clip_global=0.0)


def _clipping_store(config: Config, device: str, network: Trainable, version: tf.Variable) -> DeviceWeights:
    return DeviceWeights(config, network, version, device, functools.partial(clipped, config))

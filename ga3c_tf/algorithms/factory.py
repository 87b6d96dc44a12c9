"""Makes the model of a run, by the name of its algorithm."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable

from ga3c_tf.algorithms.actor_critic.replicas.asynchronous import AsynchronousReplicas
from ga3c_tf.algorithms.actor_critic.replicas.compiled import CompiledReplica, compile_replicas
from ga3c_tf.algorithms.actor_critic.replicas.replica import Replica
from ga3c_tf.algorithms.actor_critic.replicas.synchronous import SynchronousReplicas
from ga3c_tf.algorithms.compiled.model import CompiledModel
from ga3c_tf.algorithms.network_model import NetworkModel
from ga3c_tf.config import Config
from ga3c_tf.config.declaration import ALGORITHM_MODELS
from ga3c_tf.errors import UserError
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.compiled.compilation import CannotCompile
from ga3c_tf.model.networks import Standardize
from ga3c_tf.model.tensorflow import tf
from ga3c_tf.model.weight_store import Trainable, WeightStore


def new_model(
    config: Config,
    spec: EnvironmentSpec,
    seed: int,
    device: str | None,
    store: Callable[[Trainable, tf.Variable], WeightStore] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> NetworkModel:
    """Return a new model for an environment.

    Args:
        config: settings of the run.
        spec: shape and type of states, and number of actions.
        seed: seed of the initial weights.
        device: TensorFlow device, as `configure_device` returns it; None leaves the choice to TensorFlow.
        say: called with one line while the model is compiled, and with one if it cannot be.
        store: makes the store of the weights; None for the network's own variables on the device.

    Raises:
        UserError: the network cannot be built or does not fit the states, or the loss fails.
    """
    if len(config.device_names) > 1:
        return new_replicas(config, spec, seed, say)
    kind = pkgutil.resolve_name(ALGORITHM_MODELS[config.algorithm])
    plain = kind(config, spec, seed, device=device, store=store)
    if store is None and _is_compiled(config, device):
        try:
            compiled = CompiledModel(config, plain, device)
            compiled.compile(say)
            return compiled
        except CannotCompile as error:
            say(f"the model is not compiled: {error}")
    return plain


def new_replicas(
    config: Config, spec: EnvironmentSpec, seed: int, say: Callable[[str], None]
) -> SynchronousReplicas | AsynchronousReplicas:
    """Return a model on all devices of the settings; arguments and errors as for `new_model`."""
    devices = config.device_names
    kind = SynchronousReplicas if config.sync == "mean" else AsynchronousReplicas
    if _is_compiled(config, devices[0]):
        try:
            replicas = [CompiledReplica(config, spec, seed, device) for device in devices]
            compile_replicas(replicas, say)
            return kind(config, replicas)
        except CannotCompile as error:
            say(f"the model is not compiled: {error}")
    plain = [Replica(config, spec, seed, device) for device in devices]
    _check_weights(plain[0])
    return kind(config, plain)


def _check_weights(replica: Replica) -> None:
    """Refuse a network with weights that it may change by itself, on each device in another way."""
    network = replica.network
    scaling = [layer for layer in network.layers if isinstance(layer, Standardize)]
    constant = {id(weight) for layer in scaling for weight in layer.weights}
    if others := [weight for weight in network.non_trainable_weights if id(weight) not in constant]:
        raise UserError(
            f"--devices share trainable weights only, and the network has {len(others)} others "
            f"({others[0].path}); one device or another network has to do"
        )


def _is_compiled(config: Config, device: str | None) -> bool:
    """Return whether the settings ask for a compiled model on a device."""
    return config.compile == "on" or (config.compile == "auto" and device is not None and "GPU" in device)

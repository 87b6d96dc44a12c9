"""The network of Q-learning: that of the actor-critic, with the values of actions in place of logits."""

from __future__ import annotations

from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.networks import build_network
from ga3c_tf.model.recurrent import initial_carry
from ga3c_tf.model.tensorflow import keras


def q_network(
    config: Config, spec: EnvironmentSpec, seed: int, dtype_policy: str, layer_norm: bool
) -> keras.Model:
    """Build the network from states [B, *state_shape] to Q of each action, float32 [B, A].

    The output for the value of a state is left out, in a user's own network too, or is a part of Q in a
    dueling network.

    Args:
        config, spec, seed, dtype_policy, layer_norm: as for `build_network`.

    Raises:
        UserError: an error of `build_network`, or the network has memory.
    """
    network = build_network(config, spec, seed, dtype_policy, layer_norm)
    if len(initial_carry(network)):
        raise UserError(f"network {config.network!r} has memory, and --algorithm {config.algorithm} has none")
    states = network.input
    outputs = network.outputs
    if ":" in config.network:
        states = keras.Input(spec.state_shape, dtype=spec.state_dtype)
        outputs = network(states)
    q_values = dueling(*outputs) if config.dueling else outputs[0]
    return keras.Model(states, q_values, name=network.name)


def dueling(advantages: keras.KerasTensor, values: keras.KerasTensor) -> keras.KerasTensor:
    """Return Q of a dueling network (Wang et al. 2016, equation 9): the value of the state, plus the
    advantage of each action over the mean of all, [B, A].
    """
    mean = keras.ops.mean(advantages, axis=1, keepdims=True)
    return keras.ops.expand_dims(values, 1) + advantages - mean

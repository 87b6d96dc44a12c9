"""The network of Q-learning: that of the actor-critic, with the values of actions in place of logits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.model.networks import build_network
from ga3c_tf.model.tensorflow import keras


def q_network(
    config: Config,
    state_shape: Sequence[int],
    state_dtype: np.dtype | str,
    num_actions: int,
    seed: int,
    dtype_policy: str,
    layer_norm: bool,
) -> keras.Model:
    """Build the network from states [B, *state_shape] to Q of each action, float32 [B, A].

    The output for the value of a state is left out, in a user's own network too.

    Args:
        config: settings of the run; those for the network are used.
        state_shape, state_dtype, num_actions, seed, dtype_policy, layer_norm: as for `build_network`.

    Raises:
        UserError: an error of `build_network`.
    """
    network = build_network(
        config.network,
        state_shape,
        state_dtype,
        num_actions,
        seed,
        config.initialization,
        config.normalize_images,
        config.normalize_observations,
        dtype_policy,
        layer_norm,
    )
    if ":" not in config.network:
        return keras.Model(network.input, network.outputs[0], name=network.name)
    states = keras.Input(state_shape, dtype=np.dtype(state_dtype).name)
    return keras.Model(states, network(states)[0], name=network.name)

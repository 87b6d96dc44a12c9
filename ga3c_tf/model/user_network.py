"""Networks that users write: built with their seed, and checked before a run starts.

B is the number of states in a batch, A the number of actions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ga3c_tf.errors import UserError
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.host.process_state import global_generators_kept
from ga3c_tf.model.graph_call import trace
from ga3c_tf.model.recurrent import initial_carry
from ga3c_tf.model.tensorflow import keras, tf
from ga3c_tf.plugins import users_errors, users_function


@global_generators_kept()  # Keras draws its seeds from them
def user_network(name: str, spec: EnvironmentSpec, seed: int) -> keras.Model:
    """Build the network of the function `name`, 'module:function', for states of this shape and type.

    Raises:
        UserError: the function fails, or its network does not fit.
    """
    build = users_function(name, f"network {name!r}")
    keras.utils.set_random_seed(seed % 2**32)
    with users_errors(f"network {name!r} failed"):
        network = build(spec.state_shape, np.dtype(spec.state_dtype), spec.num_actions)
    if not isinstance(network, keras.Model):
        raise UserError(f"network {name!r} returned {type(network).__name__}; it must return a keras.Model")
    _check_outputs(name, network, spec)
    return network


def _check_outputs(name: str, network: keras.Model, spec: EnvironmentSpec) -> None:
    """Check the network's outputs for two blank states, which also builds a subclassed model's weights, and
    that it is trained on batches of any size.
    """
    shape, actions = spec.state_shape, spec.num_actions
    states = tf.zeros((2, *shape), spec.state_dtype)
    with users_errors(f"network {name!r} cannot take {spec.state_dtype} states of shape {shape}"):
        carry = initial_carry(network)
        outputs = _outputs_with(network, states, carry) if len(carry) else network(states)
        inputs = [tf.TensorSpec((None, *shape), spec.state_dtype)]
        if len(carry):
            inputs.append(tf.TensorSpec((None, len(carry)), tf.float32))
        trace(lambda *given: network(given if len(carry) else given[0], training=True), inputs)
    found = [(tuple(output.shape), output.dtype.name) for output in tf.nest.flatten(outputs)]
    if not isinstance(outputs, list | tuple) or found != [((2, actions), "float32"), ((2,), "float32")]:
        text = ", ".join(f"{kind} {list(size)}" for size, kind in found)
        raise UserError(
            f"network {name!r} must return (logits float32 [B, {actions}], values float32 [B]); "
            f"for B = 2 it returned {text}"
        )


def _outputs_with(network: keras.Model, states: tf.Tensor, carry: np.ndarray) -> Any:
    """Return the outputs of a recurrent network for states that begin an episode, and check its carry.

    Raises:
        UserError: it gives no carry like the one that it takes.
    """
    carries = tf.tile(carry[None], (len(states), 1))
    outputs, after = network((states, carries))
    if after.shape != carries.shape or after.dtype != tf.float32:
        raise UserError(
            f"the carry after a step is {after.dtype.name} {list(after.shape)}; with this initial_state it "
            f"must be float32 {list(carries.shape)}"
        )
    return outputs

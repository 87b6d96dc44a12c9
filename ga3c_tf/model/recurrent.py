"""Recurrent networks: their carry, and their unrolling over the segments of a batch.

A recurrent network is a keras.Model from a pair (states [B, *state_shape], carry [B, H] float32) to a pair
((logits [B, A], values [B]), carry [B, H]): one step of B episodes. Its attribute `initial_state`, [H], is
the carry with which an episode begins.

B is the number of steps in a batch, S the number of its segments, T the length of the longest one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from ga3c_tf.config.declaration import RECURRENT
from ga3c_tf.model.tensorflow import keras, tf

CELLS = ("lstm", "lstm_v")
"""Names of the layers with the memory of a built-in network; the second only where the value has a trunk."""
Unrolling = Callable[[tf.Tensor, tf.Tensor, tf.Tensor], Sequence[tf.Tensor]]
"""Returns (logits [B, A], values [B]) for states [B, *state_shape], carries [S, H] and lengths [S]."""
Step = Callable[[tf.Tensor, tf.Tensor], tuple[Sequence[tf.Tensor], tf.Tensor]]
"""One step of S segments, from inputs [S, ...] and carry [S, H] to outputs [S, ...] and carry [S, H]."""


def initial_carry(network: keras.Model) -> np.ndarray:
    """Return the carry with which an episode begins, float32 [H]; [0] for a network without memory."""
    return np.asarray(getattr(network, "initial_state", ()), np.float32)


def with_lstm(network: keras.Model) -> keras.Model:
    """Return a built-in network with an LSTM of as many units between its last hidden layer and its outputs.

    Where policy and value have a trunk each, both have an LSTM. The carry is the LSTM's output and its cell,
    one after the other, and then those of the second. All begin as zeros.
    """
    policy = network.get_layer("logits_p")
    value = network.get_layer("logits_v")
    trunks = [policy.input]
    if value.input is not policy.input:
        trunks.append(value.input)
    units = policy.input.shape[-1]
    size = 2 * units * len(trunks)
    carry = keras.Input((size,), name="carry")
    hidden = []
    memory = []
    for name, trunk, part in zip(CELLS, trunks, keras.ops.split(carry, len(trunks), axis=-1), strict=False):
        cell = keras.layers.LSTMCell(units, name=name, dtype="float32")
        output, after = cell(trunk, keras.ops.split(part, 2, axis=-1))
        hidden.append(output)
        memory += after
    outputs = (policy(hidden[0]), keras.ops.squeeze(value(hidden[-1]), axis=-1))
    next_carry = keras.layers.Concatenate(name="next_carry", dtype="float32")(memory)
    recurrent = keras.Model((network.input, carry), (outputs, next_carry), name=f"{network.name}-lstm")
    recurrent.initial_state = np.zeros(size, np.float32)
    return recurrent


def unrolling(network: keras.Model) -> Unrolling:
    """Return the training form of a recurrent network.

    Of a built-in network only an LSTM takes one step after another: the layers before and behind it see all
    steps of a batch at once. Any other network is stepped as a whole.
    """
    if network.name not in RECURRENT:
        return lambda states, carries, lengths: unrolled(
            lambda rows, carry: network((rows, carry), training=True), states, carries, lengths
        )
    names = {layer.name for layer in network.layers}
    cells = [network.get_layer(name) for name in CELLS if name in names]
    before = keras.Model(network.inputs[0], [cell.input[0] for cell in cells])
    behind = keras.Model([cell.output[0] for cell in cells], network.outputs[:2])

    def outputs(states: tf.Tensor, carries: tf.Tensor, lengths: tf.Tensor) -> Sequence[tf.Tensor]:
        hidden: list[tf.Tensor] = []
        trunks = tf.nest.flatten(before(states, training=True))
        for cell, trunk, part in zip(cells, trunks, tf.split(carries, len(cells), axis=1), strict=True):
            projected = tf.matmul(tf.cast(trunk, tf.float32), cell.kernel)
            hidden += unrolled(functools.partial(lstm_step, cell), projected, part, lengths)
        return behind(hidden, training=True)

    return outputs


def lstm_step(cell: keras.layers.LSTMCell, projected: tf.Tensor, carry: tf.Tensor) -> tuple:
    """Return the output of an LSTM (Hochreiter and Schmidhuber 1997) and its carry; gates in Keras's order.

    Args:
        cell: the layer.
        projected: [S, 4 * units], its inputs times its kernel.
        carry: [S, 2 * units].
    """
    output, memory = tf.split(carry, 2, axis=1)
    gates = projected + tf.matmul(output, cell.recurrent_kernel) + cell.bias
    enter, forget, candidate, leave = tf.split(gates, 4, axis=1)
    memory = tf.sigmoid(forget) * memory + tf.sigmoid(enter) * tf.tanh(candidate)
    output = tf.sigmoid(leave) * tf.tanh(memory)
    return [output], tf.concat([output, memory], 1)


def unrolled(step: Step, inputs: tf.Tensor, carries: tf.Tensor, lengths: tf.Tensor) -> Sequence[tf.Tensor]:
    """Take the steps of all segments, each from the carry before its first step; gradients flow through them.

    Segments are padded to [T, S, ...] for the loop only. The rows of the padding are those of other steps,
    and nothing is computed from what they give.

    Args:
        step: one step of the network, or of its part with memory.
        inputs: [B, ...], inputs of all steps, with segments one after another.
        carries: float32 [S, H], carry before the first step of each segment.
        lengths: int32 [S], number of steps of each segment.

    Returns:
        Outputs of all steps, [B, ...] each.
    """
    longest = tf.reduce_max(lengths)
    starts = tf.cumsum(lengths, exclusive=True)
    last = tf.shape(inputs)[0] - 1
    padded = tf.gather(inputs, tf.minimum(starts + tf.range(longest)[:, None], last))
    # The first step, which all segments have, tells what the outputs are.
    results, carry = step(padded[0], carries)
    arrays = []
    for result in results:
        array = tf.TensorArray(result.dtype, longest, element_shape=(None, *result.shape[1:]))
        arrays.append(array.write(0, result))

    def body(number: tf.Tensor, carry: tf.Tensor, *arrays: tf.TensorArray) -> tuple:
        results, carry = step(padded[number], carry)
        written = [array.write(number, result) for array, result in zip(arrays, results, strict=True)]
        return number + 1, carry, *written

    _, _, *arrays = tf.while_loop(lambda number, *_: number < longest, body, (1, carry, *arrays))
    segments = tf.repeat(tf.range(tf.size(lengths)), lengths)
    numbers = tf.range(last + 1) - tf.gather(starts, segments)
    places = tf.stack([numbers, segments], 1)
    return [tf.gather_nd(array.stack(), places) for array in arrays]

"""Recurrent networks: their carry, and their unrolling over the segments of a batch.

A recurrent network is a keras.Model from a pair (states [B, *state_shape], carry [B, H] float32) to a pair
((logits [B, A], values [B]), carry [B, H]): one step of B episodes. Its attribute `initial_state`, [H], is
the carry with which an episode begins.

B is the number of steps in a batch, S the number of its segments, T the length of the longest one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ga3c_tf.config.declaration import RECURRENT
from ga3c_tf.model.tensorflow import keras, tf

CELL = "lstm"
"""Name of the layer with the memory of a built-in network."""
Unrolling = Callable[[tf.Tensor, tf.Tensor, tf.Tensor], Sequence[tf.Tensor]]
"""Returns (logits [B, A], values [B]) for states [B, *state_shape], carries [S, H] and lengths [S]."""
Step = Callable[[tf.Tensor, tf.Tensor], tuple[Sequence[tf.Tensor], tf.Tensor]]
"""One step of S segments, from inputs [S, ...] and carry [S, H] to outputs [S, ...] and carry [S, H]."""


def initial_carry(network: keras.Model) -> np.ndarray:
    """Return the carry with which an episode begins, float32 [H]; [0] for a network without memory."""
    return np.asarray(getattr(network, "initial_state", ()), np.float32)


def with_lstm(network: keras.Model) -> keras.Model:
    """Return a built-in network with an LSTM of as many units between its last hidden layer and its outputs.

    The carry is the LSTM's output and its cell, one after the other. Both begin as zeros.
    """
    hidden = network.get_layer("logits_p").input
    units = hidden.shape[-1]
    carry = keras.Input((2 * units,), name="carry")
    cell = keras.layers.LSTMCell(units, name=CELL, dtype="float32")
    output, memory = cell(hidden, keras.ops.split(carry, 2, axis=-1))
    logits = network.get_layer("logits_p")(output)
    values = keras.ops.squeeze(network.get_layer("logits_v")(output), axis=-1)
    after = keras.layers.Concatenate(name="next_carry", dtype="float32")(memory)
    recurrent = keras.Model((network.input, carry), ((logits, values), after), name=f"{network.name}-lstm")
    recurrent.initial_state = np.zeros(2 * units, np.float32)
    return recurrent


def unrolling(network: keras.Model) -> Unrolling:
    """Return the training form of a recurrent network.

    Of a built-in network only the LSTM takes one step after another: the layers before and behind it see all
    steps of a batch at once. Any other network is stepped as a whole.
    """
    if network.name not in RECURRENT:
        return lambda states, carries, lengths: unrolled(
            lambda rows, carry: network((rows, carry), training=True), states, carries, lengths
        )
    cell = network.get_layer(CELL)
    before = keras.Model(network.inputs[0], cell.input[0])
    behind = keras.Model(cell.output[0], network.outputs[:2])

    def outputs(states: tf.Tensor, carries: tf.Tensor, lengths: tf.Tensor) -> Sequence[tf.Tensor]:
        projected = tf.matmul(tf.cast(before(states, training=True), tf.float32), cell.kernel)
        [hidden] = unrolled(lambda rows, carry: lstm_step(cell, rows, carry), projected, carries, lengths)
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

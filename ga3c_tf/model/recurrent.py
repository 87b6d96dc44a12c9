"""Recurrent networks: their carry, and their unrolling over the segments of a batch.

A recurrent network is a keras.Model from a pair (states [B, *state_shape], carry [B, H] float32) to a pair
((logits [B, A], values [B]), carry [B, H]): one step of B episodes. Its attribute `initial_state`, [H], is
the carry with which an episode begins.

B is the number of steps in a batch, S the number of its segments, T the length of the longest one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

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
        hidden = []
        trunks = tf.nest.flatten(before(states, training=True))
        for cell, trunk, carry in zip(cells, trunks, tf.split(carries, len(cells), axis=1), strict=True):
            weights = tf.concat([cell.kernel, cell.recurrent_kernel], 0)
            inputs = padded(tf.cast(trunk, tf.float32), lengths)
            hidden.append(flat(lstm(inputs, weights, tf.convert_to_tensor(cell.bias), carry), lengths))
        return behind(hidden, training=True)

    return outputs


@tf.custom_gradient
def lstm(
    inputs: tf.Tensor, weights: tf.Tensor, bias: tf.Tensor, carries: tf.Tensor
) -> tuple[tf.Tensor, Callable]:
    """Return the outputs of an LSTM (Hochreiter and Schmidhuber 1997), [T, S, units].

    One operation takes all steps. It has its gradient from here, because that of TensorFlow 2.21 is for
    another order of the gates (`_block_lstm_grad` in its rnn_grad.py).

    Args:
        inputs: float32 [T, S, inputs].
        weights: [inputs + units, 4 * units], gates in Keras's order: input, forget, candidate, output.
        bias: [4 * units].
        carries: [S, 2 * units], output and memory before the first step.
    """
    output, memory = tf.split(carries, 2, axis=1)
    peephole = tf.zeros_like(memory[0])  # not used
    gates = tf.raw_ops.BlockLSTMV2(
        seq_len_max=tf.shape(inputs, tf.int64)[0],
        x=inputs,
        cs_prev=memory,
        h_prev=output,
        w=weights,
        wci=peephole,
        wcf=peephole,
        wco=peephole,
        b=bias,
    )

    def gradients(of_outputs: tf.Tensor) -> tuple[tf.Tensor | None, ...]:
        kernel, recurrent_kernel = tf.split(weights, [inputs.shape[2], output.shape[1]])
        of_gates = _gradient_of_gates(gates, memory, of_outputs, recurrent_kernel)
        outputs_before = tf.concat([output[None], gates.h[:-1]], 0)
        rows = tf.concat([inputs, outputs_before], 2)
        of_weights = tf.tensordot(rows, of_gates, [[0, 1], [0, 1]])
        return tf.tensordot(of_gates, kernel, [[2], [1]]), of_weights, tf.reduce_sum(of_gates, [0, 1]), None

    return gates.h, gradients


def _gradient_of_gates(
    gates: Any, memory: tf.Tensor, of_outputs: tf.Tensor, recurrent_kernel: tf.Tensor
) -> tf.Tensor:
    """Return the gradient of the gates before their activations, [T, S, 4 * units].

    Args:
        gates: what `BlockLSTMV2` gives: gates i, f, o, candidate ci, memory cs and its tanh co.
        memory: [S, units], before the first step.
        of_outputs: [T, S, units], gradient of the outputs without that by the next steps.
        recurrent_kernel: [units, 4 * units].
    """
    memories = tf.concat([memory[None], gates.cs[:-1]], 0)
    input_slope = gates.ci * gates.i * (1 - gates.i)
    forget_slope = memories * gates.f * (1 - gates.f)
    candidate_slope = gates.i * (1 - gates.ci**2)
    output_slope = gates.co * gates.o * (1 - gates.o)
    slopes = tf.concat([input_slope, forget_slope, candidate_slope, output_slope], 2)

    def step(after: tuple, now: tuple) -> tuple:
        of_gates, of_memory = after
        of_output, slopes, slope_of_memory, forget = now
        of_output += tf.matmul(of_gates, recurrent_kernel, transpose_b=True)
        of_memory += of_output * slope_of_memory
        of_gates = slopes * tf.concat([of_memory, of_memory, of_memory, of_output], 1)
        return of_gates, of_memory * forget

    steps = (of_outputs, slopes, gates.o * (1 - gates.co**2), gates.f)
    last = (tf.zeros_like(slopes[0]), tf.zeros_like(memory))
    return tf.scan(step, steps, last, reverse=True)[0]


def padded(inputs: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Return the inputs of all steps, [B, ...], as [T, S, ...].

    The rows of the padding are those of other steps, and nothing is computed from what they give.
    """
    starts = tf.cumsum(lengths, exclusive=True)
    steps = starts + tf.range(tf.reduce_max(lengths))[:, None]
    return tf.gather(inputs, tf.minimum(steps, tf.shape(inputs)[0] - 1))


def flat(outputs: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Return the outputs of all steps, [B, ...], from [T, S, ...]."""
    segments = tf.repeat(tf.range(tf.size(lengths)), lengths)
    numbers = tf.range(tf.size(segments)) - tf.gather(tf.cumsum(lengths, exclusive=True), segments)
    return tf.gather_nd(outputs, tf.stack([numbers, segments], 1))


def unrolled(step: Step, inputs: tf.Tensor, carries: tf.Tensor, lengths: tf.Tensor) -> Sequence[tf.Tensor]:
    """Take the steps of all segments, each from the carry before its first step; gradients flow through them.

    Args:
        step: one step of the network.
        inputs: [B, ...], inputs of all steps, with segments one after another.
        carries: float32 [S, H], carry before the first step of each segment.
        lengths: int32 [S], number of steps of each segment.

    Returns:
        Outputs of all steps, [B, ...] each.
    """
    longest = tf.reduce_max(lengths)
    rows = padded(inputs, lengths)
    # The first step, which all segments have, tells what the outputs are.
    results, carry = step(rows[0], carries)
    arrays = []
    for result in results:
        array = tf.TensorArray(result.dtype, longest, element_shape=(None, *result.shape[1:]))
        arrays.append(array.write(0, result))

    def body(number: tf.Tensor, carry: tf.Tensor, *arrays: tf.TensorArray) -> tuple:
        results, carry = step(rows[number], carry)
        written = [array.write(number, result) for array, result in zip(arrays, results, strict=True)]
        return number + 1, carry, *written

    _, _, *arrays = tf.while_loop(lambda number, *_: number < longest, body, (1, carry, *arrays))
    return [flat(array.stack(), lengths) for array in arrays]

"""Layer normalization of built-in networks."""

from __future__ import annotations

from typing import Any

from ga3c_tf.model.tensorflow import keras

EPSILON = 1e-5
"""Added to the variance, as in PyTorch."""


class LayerNorm(keras.layers.LayerNormalization):
    """Keras's layer over the last axis, computed from differences to the mean.

    Keras computes x * scale + shift from the moments, whose gradient takes half as long again on a CPU.
    """

    def call(self, inputs: Any) -> Any:
        ops = keras.ops
        numbers = ops.cast(inputs, "float32")  # as Keras does, since half precision has too few digits
        centered = numbers - ops.mean(numbers, -1, keepdims=True)
        variance = ops.mean(ops.square(centered), -1, keepdims=True)
        normalized = centered * ops.rsqrt(variance + self.epsilon)
        return ops.cast(normalized * self.gamma + self.beta, self.compute_dtype)

    def built_in(self) -> keras.layers.Layer:
        """Return Keras's layer with the same weights, for programs that lack this one."""
        layer = keras.layers.LayerNormalization.from_config(self.get_config())
        layer.build((None, *self.gamma.shape))
        layer.set_weights(self.get_weights())
        return layer


def with_layer_norm(network: keras.Model) -> keras.Model:
    """Return the network with layer normalization (Ba et al. 2016) before the activation of each hidden
    layer, with new weights.

    Args:
        network: network without weights worth keeping, whose hidden layers have an activation.
    """
    return keras.models.clone_model(network, clone_function=_linear, call_function=_normalized_call)


def _activation(layer: keras.layers.Layer) -> str:
    return layer.get_config().get("activation", "linear")


def _linear(layer: keras.layers.Layer) -> keras.layers.Layer:
    """Return a copy of a layer that leaves its activation to `_normalized_call`."""
    copy = type(layer).from_config(layer.get_config())
    copy.activation_after_norm = _activation(layer)
    if copy.activation_after_norm != "linear":
        copy.activation = keras.activations.linear
    return copy


def _normalized_call(layer: keras.layers.Layer, *inputs: Any, **options: Any) -> Any:
    outputs = layer(*inputs, **options)
    activation = layer.activation_after_norm
    if activation == "linear":
        return outputs
    normalized = LayerNorm(epsilon=EPSILON, dtype=layer.dtype_policy, name=f"{layer.name}_norm")(outputs)
    return keras.layers.Activation(activation, name=f"{layer.name}_{activation}")(normalized)

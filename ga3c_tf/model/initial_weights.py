"""Initial weights of the built-in networks, drawn by NumPy, so that a seed gives them on every device."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ga3c_tf.model.tensorflow import keras

Draw = Callable[[np.random.Generator, keras.layers.Layer], tuple[np.ndarray, np.ndarray]]
"""Function that draws the initial kernel and bias of a layer."""
HIDDEN_GAIN = math.sqrt(2)
HEAD_GAINS = {"logits_p": 0.01, "logits_v": 1.0}
"""Gains of the output layers, as in Stable-Baselines3 and CleanRL: policies begin nearly uniform."""


def initialize(network: keras.Model, seed: int, initialization: str) -> None:
    """Draw the weights of a built-in network.

    Args:
        network: network whose layers have a kernel and a bias, or keep the weights that they have.
        seed: seed of the draws.
        initialization: 'fan-in', 'orthogonal' or 'he', as in `Config.initialization`.
    """
    draw = _INITIALIZERS[initialization]
    rng = np.random.default_rng(seed)
    for layer in network.layers:
        if hasattr(layer, "kernel"):
            for weight, value in zip((layer.kernel, layer.bias), draw(rng, layer), strict=True):
                weight.assign(value.astype(np.float32))


def _fan_in(layer: keras.layers.Layer) -> int:
    """Return the number of inputs of each unit: the product of the kernel's dimensions except the last."""
    return math.prod(layer.kernel.shape[:-1])


def _gain(layer: keras.layers.Layer) -> float:
    return HEAD_GAINS.get(layer.name, HIDDEN_GAIN)


def _draw_fan_in(rng: np.random.Generator, layer: keras.layers.Layer) -> tuple[np.ndarray, np.ndarray]:
    """Draw kernel and bias uniformly within +-1/sqrt(fan_in), as the authors do; the gain is not used."""
    bound = 1 / math.sqrt(_fan_in(layer))
    return rng.uniform(-bound, bound, layer.kernel.shape), rng.uniform(-bound, bound, layer.bias.shape)


def _draw_orthogonal(rng: np.random.Generator, layer: keras.layers.Layer) -> tuple[np.ndarray, np.ndarray]:
    """Draw a kernel with orthonormal columns (or rows, if fewer), times the gain (Saxe et al. 2014)."""
    rows, columns = _fan_in(layer), layer.kernel.shape[-1]
    factor, triangle = np.linalg.qr(rng.normal(size=(max(rows, columns), min(rows, columns))))
    factor *= np.sign(np.diagonal(triangle))  # makes the distribution uniform over all orthogonal matrices
    kernel = factor if rows >= columns else factor.T
    return _gain(layer) * kernel.reshape(layer.kernel.shape), np.zeros(layer.bias.shape)


def _draw_he(rng: np.random.Generator, layer: keras.layers.Layer) -> tuple[np.ndarray, np.ndarray]:
    """Draw a normal kernel with standard deviation gain / sqrt(fan_in) (He et al. 2015)."""
    return rng.normal(0, _gain(layer) / math.sqrt(_fan_in(layer)), layer.kernel.shape), np.zeros(
        layer.bias.shape
    )


_INITIALIZERS: dict[str, Draw] = {"fan-in": _draw_fan_in, "orthogonal": _draw_orthogonal, "he": _draw_he}

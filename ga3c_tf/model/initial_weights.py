"""Initial weights of the built-in networks, drawn by NumPy, so that a seed gives them on every device."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ga3c_tf.model.tensorflow import keras

Draw = Callable[[np.random.Generator, keras.layers.Layer], tuple[np.ndarray, np.ndarray]]
"""Function that draws the initial kernel and bias of a layer."""
HIDDEN_GAIN = math.sqrt(2)
GAINS = {"logits_p": 0.01, "logits_v": 1.0, "lstm": 1.0, "lstm_v": 1.0}
"""Gains of the output layers and the LSTMs, as in Stable-Baselines3 and CleanRL: policies begin nearly
uniform."""


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
        if not hasattr(layer, "kernel"):
            continue
        kernel, bias = draw(rng, layer)
        if hasattr(layer, "recurrent_kernel"):
            bias = _draw_memory(rng, layer)
        layer.kernel.assign(kernel.astype(np.float32))
        layer.bias.assign(bias.astype(np.float32))


def _draw_memory(rng: np.random.Generator, cell: keras.layers.LSTMCell) -> np.ndarray:
    """Draw the recurrent kernel of an LSTM, orthogonal for each gate, and return its bias.

    The bias of the forget gate is 1, so that memory lasts at first (Jozefowicz et al. 2015); others are 0.
    """
    gates = [_orthogonal(rng, cell.units, cell.units) for _ in range(4)]
    cell.recurrent_kernel.assign(np.concatenate(gates, axis=1).astype(np.float32))
    return np.repeat([0.0, 1.0, 0.0, 0.0], cell.units)


def _fan_in(layer: keras.layers.Layer) -> int:
    """Return the number of inputs of each unit: the product of the kernel's dimensions except the last."""
    return math.prod(layer.kernel.shape[:-1])


def _gain(layer: keras.layers.Layer) -> float:
    return GAINS.get(layer.name, HIDDEN_GAIN)


def _draw_fan_in(rng: np.random.Generator, layer: keras.layers.Layer) -> tuple[np.ndarray, np.ndarray]:
    """Draw kernel and bias uniformly within +-1/sqrt(fan_in), as the authors do; the gain is not used."""
    bound = 1 / math.sqrt(_fan_in(layer))
    return rng.uniform(-bound, bound, layer.kernel.shape), rng.uniform(-bound, bound, layer.bias.shape)


def _draw_orthogonal(rng: np.random.Generator, layer: keras.layers.Layer) -> tuple[np.ndarray, np.ndarray]:
    """Draw a kernel with orthonormal columns (or rows, if fewer), times the gain (Saxe et al. 2014)."""
    kernel = _orthogonal(rng, _fan_in(layer), layer.kernel.shape[-1])
    return _gain(layer) * kernel.reshape(layer.kernel.shape), np.zeros(layer.bias.shape)


def _orthogonal(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Draw a matrix with orthonormal columns, or rows if these are fewer."""
    factor, triangle = np.linalg.qr(rng.normal(size=(max(rows, columns), min(rows, columns))))
    factor *= np.sign(np.diagonal(triangle))  # makes the distribution uniform over all orthogonal matrices
    return factor if rows >= columns else factor.T


def _draw_he(rng: np.random.Generator, layer: keras.layers.Layer) -> tuple[np.ndarray, np.ndarray]:
    """Draw a normal kernel with standard deviation gain / sqrt(fan_in) (He et al. 2015)."""
    return rng.normal(0, _gain(layer) / math.sqrt(_fan_in(layer)), layer.kernel.shape), np.zeros(
        layer.bias.shape
    )


_INITIALIZERS: dict[str, Draw] = {"fan-in": _draw_fan_in, "orthogonal": _draw_orthogonal, "he": _draw_he}

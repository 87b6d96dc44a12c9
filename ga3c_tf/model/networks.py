"""The networks, from states to policy logits and values, as Keras models with readable layer names.

B is the number of states in a batch, A the number of actions. A network takes states of the environment's own
type, casts and rescales them itself, and returns (logits [B, A] float32, values [B] float32).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import numpy as np

from ga3c_tf.config import SMALLEST_SCREEN, Config, check_name, network_of_record
from ga3c_tf.config.declaration import RECURRENT
from ga3c_tf.errors import UserError
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.initial_weights import initialize
from ga3c_tf.model.layer_norm import with_layer_norm
from ga3c_tf.model.recurrent import with_lstm
from ga3c_tf.model.tensorflow import keras
from ga3c_tf.model.user_network import user_network

MOST_DEVIATIONS = 5.0
LEAST_VARIANCE = 1e-5
"""Added to variances of states whose largest value is 1. This and `MOST_DEVIATIONS` are as in rl_games."""


Scaling = Literal["x / 128 - 1", "x / 255", "standardized"]
"""Scaling of the gray levels x of screens. Other states are standardized or not scaled."""


class Standardize(keras.layers.Layer):
    """Scales each element of a state to (x - mean) / deviation, clipped to +-`MOST_DEVIATIONS`.

    Mean and deviation are weights that are not trained, so that checkpoints and published weights contain
    them. Before `measured` is called, the mean is 0 and the deviation is `most`.

    Args:
        most: largest value that states can have; 1.0 where there is none.
    """

    def __init__(self, most: float, **options):
        super().__init__(**options)
        self._most = most

    def build(self, input_shape: Sequence[int | None]) -> None:
        self.mean = self.add_weight(name="mean", shape=input_shape[1:], initializer="zeros", trainable=False)
        largest = keras.initializers.Constant(self._most)
        self.deviation = self.add_weight(
            name="deviation", shape=input_shape[1:], initializer=largest, trainable=False
        )

    def call(self, states: keras.KerasTensor) -> keras.KerasTensor:
        # The reciprocal needs one division per element of a state, not per element of the batch. Minimum and
        # maximum are faster than `clip`.
        scaled = (keras.ops.cast(states, "float32") - self.mean) * (1 / self.deviation)
        return keras.ops.maximum(keras.ops.minimum(scaled, MOST_DEVIATIONS), -MOST_DEVIATIONS)

    def measured(self, mean: np.ndarray, variance: np.ndarray) -> None:
        """Set the mean and variance by which states are scaled.

        Args:
            mean: mean of each element of a state, float32 [*state_shape], in the units of the states.
            variance: variance of each element of a state, float32 [*state_shape].
        """
        self.mean.assign(mean)
        self.deviation.assign(np.sqrt(variance + LEAST_VARIANCE * self._most**2))


def build_network(
    config: Config, spec: EnvironmentSpec, seed: int, dtype_policy: str = "float32", layer_norm: bool = False
) -> keras.Model:
    """Build the network that the settings name, with initial weights.

    If the states are standardized (`config.normalize_observations`), the mean and variance must be set with
    `Standardize.measured`. A user-defined function is called with (state_shape, state_dtype, num_actions)
    after Keras, NumPy and Python have been seeded. The weights that it makes are kept.

    Args:
        config: Settings of the run; `network`, `initialization` and those for the scaling of states are used.
        spec: Shape and type of states, and number of actions, A.
        seed: Seed of the initial weights.
        dtype_policy: Keras's dtype policy of the hidden layers, 'float32' or 'mixed_bfloat16'. The scaling of
            inputs, the logits and the values are float32 with either. While a user-defined function runs, it
            is Keras's global policy.
        layer_norm: Whether the hidden layers of a built-in network have layer normalization.

    Returns:
        A model from states [B, *state_shape] to (logits [B, A] float32, values [B] float32), or a recurrent
        one, see `ga3c_tf.model.recurrent`.

    Raises:
        UserError: the name is unknown, the network does not fit the observation, or a user-defined function
            fails.
    """
    if ":" in config.network:
        with keras_settings(dtype_policy):
            return user_network(config.network, spec, seed)
    check_name("network", config.network)
    name = network_of_record(config.network, spec.state_shape)
    scaling: Scaling = "x / 128 - 1"
    if config.normalize_images:
        scaling = "x / 255"
    if config.normalize_observations:
        scaling = "standardized"
    with keras_settings(dtype_policy):
        network = _BUILDERS[name.removesuffix("-lstm")](spec, scaling)
        if layer_norm:
            network = with_layer_norm(network)
        if name in RECURRENT:
            network = with_lstm(network)
    initialize(network, seed, config.initialization)
    return network


@contextlib.contextmanager
def keras_settings(dtype_policy: str = "float32") -> Iterator[None]:
    """Set Keras's global settings for the layers built during the block, except for those that specify their
    own.

    The program, or `keras.json` in the user's home, may have set others, which would silently give another
    network.

    Args:
        dtype_policy: name of the dtype policy.
    """
    settings = keras.config
    before = settings.floatx(), settings.image_data_format(), settings.dtype_policy()
    after = "float32", "channels_last", dtype_policy
    setters = settings.set_floatx, settings.set_image_data_format, settings.set_dtype_policy
    for setter, value in zip(setters, after, strict=True):
        setter(value)
    try:
        yield
    finally:
        for setter, value in zip(setters, before, strict=True):
            setter(value)


def _small(spec: EnvironmentSpec, scaling: Scaling) -> keras.Model:
    """Build the paper's small network for screens: conv 16 8x8 stride 4, conv 32 4x4 stride 2, FC 256."""
    states, hidden = _rescaled_images("small", spec, scaling)
    hidden = _conv("conv11", 16, 8, 4, "same")(hidden)
    hidden = _conv("conv12", 32, 4, 2, "same")(hidden)
    hidden = _dense("dense1", 256)(keras.layers.Flatten(name="flat1")(hidden))
    return _with_heads("small", states, hidden, spec.num_actions)


def _large(stride: int, spec: EnvironmentSpec, scaling: Scaling) -> keras.Model:
    """Build the paper's large network: conv 32 8x8 with this stride, 32 4x4 stride 2, 64 4x4 stride 2, FC
    256.
    """
    name = f"large-{stride}"
    states, hidden = _rescaled_images(name, spec, scaling)
    hidden = _conv("conv11", 32, 8, stride, "same")(hidden)
    hidden = _conv("conv12", 32, 4, 2, "same")(hidden)
    hidden = _conv("conv13", 64, 4, 2, "same")(hidden)
    hidden = _dense("dense1", 256)(keras.layers.Flatten(name="flat1")(hidden))
    return _with_heads(name, states, hidden, spec.num_actions)


def _nature(spec: EnvironmentSpec, scaling: Scaling) -> keras.Model:
    """Build the network of Mnih et al. 2015 (Nature 518): conv 32 8x8 stride 4, 64 4x4 stride 2, 64 3x3, FC
    512.
    """
    states, hidden = _rescaled_images("nature", spec, scaling)
    hidden = _conv("conv11", 32, 8, 4, "valid")(hidden)
    hidden = _conv("conv12", 64, 4, 2, "valid")(hidden)
    hidden = _conv("conv13", 64, 3, 1, "valid")(hidden)
    hidden = _dense("dense1", 512)(keras.layers.Flatten(name="flat1")(hidden))
    return _with_heads("nature", states, hidden, spec.num_actions)


def _minatar(spec: EnvironmentSpec, scaling: Scaling) -> keras.Model:
    """Build MinAtar's network (Young and Tian, arXiv 1903.03176) for planes: conv 16 3x3 stride 1, FC 128."""
    fits = len(spec.state_shape) == 3 and min(spec.state_shape[:2]) >= 3
    _expect("minatar", fits, "images of at least 3x3 cells (height, width, planes)", spec)
    if spec.is_screen and spec.state_dtype == "uint8":
        states, cells = _rescaled_images("minatar", spec, scaling)
    else:
        states = keras.Input(spec.state_shape, dtype=spec.state_dtype)
        cells = _as_float(states, scaling)
    hidden = _conv("conv11", 16, 3, 1, "valid")(cells)
    hidden = _dense("dense1", 128)(keras.layers.Flatten(name="flat1")(hidden))
    return _with_heads("minatar", states, hidden, spec.num_actions)


def _mlp(spec: EnvironmentSpec, scaling: Scaling) -> keras.Model:
    """Build a network with two hidden tanh layers of 64 units, which policy and value share, for vectors."""
    states, numbers = _vectors("mlp", spec, scaling)
    return _with_heads("mlp", states, _tanh_layers("dense")(numbers), spec.num_actions)


def _two_trunks(spec: EnvironmentSpec, scaling: Scaling) -> keras.Model:
    """Build `mlp`'s layers twice, one trunk for the policy and one for the value, as in Stable-Baselines3."""
    states, numbers = _vectors("mlp-two-trunks", spec, scaling)
    of_policy = _tanh_layers("policy")(numbers)
    of_value = _tanh_layers("value")(numbers)
    return _with_heads("mlp-two-trunks", states, of_policy, spec.num_actions, of_value)


_BUILDERS: dict[str, Callable[[EnvironmentSpec, Scaling], keras.Model]] = {
    "small": _small,
    "large": functools.partial(_large, 4),
    **{f"large-{stride}": functools.partial(_large, stride) for stride in (4, 3, 2, 1)},
    "nature": _nature,
    "minatar": _minatar,
    "mlp": _mlp,
    "mlp-two-trunks": _two_trunks,
}


def _expect(name: str, fits: bool, wanted: str, spec: EnvironmentSpec) -> None:
    if not fits:
        raise UserError(
            f"network {name!r} takes {wanted}, not {spec.state_dtype} states of shape {spec.state_shape}"
        )


def _rescaled_images(
    name: str, spec: EnvironmentSpec, scaling: Scaling
) -> tuple[keras.KerasTensor, keras.KerasTensor]:
    """Return the input of the network `name`, and its gray levels scaled as `scaling` says."""
    fits = spec.is_screen and spec.state_dtype == "uint8"
    _expect(name, fits, f"uint8 screens of {SMALLEST_SCREEN}x{SMALLEST_SCREEN} or more", spec)
    states = keras.Input(spec.state_shape, dtype=spec.state_dtype)
    if scaling == "standardized":
        return states, Standardize(255.0, name="standardize", dtype="float32")(states)
    factor, offset = (1 / 255, 0) if scaling == "x / 255" else (1 / 128, -1)
    return states, keras.layers.Rescaling(factor, offset=offset, name="rescale", dtype="float32")(states)


def _vectors(
    name: str, spec: EnvironmentSpec, scaling: Scaling
) -> tuple[keras.KerasTensor, keras.KerasTensor]:
    """Return the input of the network `name`, and its numbers scaled as `scaling` says."""
    _expect(name, len(spec.state_shape) == 1, "vectors (size,)", spec)
    states = keras.Input(spec.state_shape, dtype=spec.state_dtype)
    return states, _as_float(states, scaling)


def _tanh_layers(name: str) -> Callable[[keras.KerasTensor], keras.KerasTensor]:
    """Return two hidden tanh layers of 64 units, named `name`1 and `name`2, as a function."""
    first = _dense(f"{name}1", 64, "tanh")
    second = _dense(f"{name}2", 64, "tanh")
    return lambda numbers: second(first(numbers))


def _as_float(states: keras.KerasTensor, scaling: Scaling) -> keras.KerasTensor:
    if scaling == "standardized":
        return Standardize(1.0, name="standardize", dtype="float32")(states)
    return keras.layers.Rescaling(1.0, name="cast", dtype="float32")(states)


def _conv(name: str, filters: int, size: int, stride: int, padding: str) -> keras.layers.Layer:
    return keras.layers.Conv2D(
        filters,
        size,
        strides=stride,
        padding=padding,
        activation="relu",
        kernel_initializer="zeros",
        name=name,
    )


def _dense(
    name: str, units: int, activation: str | None = "relu", dtype: str | None = None
) -> keras.layers.Layer:
    return keras.layers.Dense(
        units, activation=activation, kernel_initializer="zeros", name=name, dtype=dtype
    )


def _with_heads(
    name: str,
    states: keras.KerasTensor,
    hidden: keras.KerasTensor,
    num_actions: int,
    hidden_of_value: keras.KerasTensor | None = None,
) -> keras.Model:
    """Return the network with policy and value on `hidden`, or with the value on hidden units of its own."""
    of_value = hidden if hidden_of_value is None else hidden_of_value
    values = keras.ops.squeeze(_dense("logits_v", 1, None, "float32")(of_value), axis=-1)
    logits = _dense("logits_p", num_actions, None, "float32")(hidden)
    return keras.Model(states, (logits, values), name=name)

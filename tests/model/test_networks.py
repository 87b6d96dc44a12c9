"""The networks: shapes, the paper's forward pass in NumPy, initial weights, users' networks, and errors."""

import math
import random
import subprocess
import sys
import textwrap

import keras
import keras_globals
import numpy as np
import pytest
import tensorflow as tf

from ga3c_tf.config import BUILT_IN, Config, network_for
from ga3c_tf.errors import UserError
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model import networks
from ga3c_tf.model.networks import build_network

OBSERVATIONS = {
    "small": ((84, 84, 4), "uint8"),
    "minatar": ((10, 10, 6), "uint8"),
    "mlp": ((4,), "float32"),
    "mlp-two-trunks": ((4,), "float32"),
}
# With the height and width after its convolutions.
LARGE = {"large-4": 6, "large-3": 7, "large-2": 11, "large-1": 21}
SHAPES = {
    "small": {
        "conv11": (8, 8, 4, 16),
        "conv12": (4, 4, 16, 32),
        "dense1": (11 * 11 * 32, 256),
        "logits_v": (256, 1),
        "logits_p": (256, 3),
    },
    "minatar": {
        "conv11": (3, 3, 6, 16),
        "dense1": (8 * 8 * 16, 128),
        "logits_v": (128, 1),
        "logits_p": (128, 3),
    },
    "mlp": {"dense1": (4, 64), "dense2": (64, 64), "logits_v": (64, 1), "logits_p": (64, 3)},
    "mlp-two-trunks": {
        "policy1": (4, 64),
        "policy2": (64, 64),
        "value1": (4, 64),
        "value2": (64, 64),
        "logits_v": (64, 1),
        "logits_p": (64, 3),
    },
    **{
        name: {
            "conv11": (8, 8, 4, 32),
            "conv12": (4, 4, 32, 32),
            "conv13": (4, 4, 32, 64),
            "dense1": (size * size * 64, 256),
            "logits_v": (256, 1),
            "logits_p": (256, 3),
        }
        for name, size in LARGE.items()
    },
}
SHAPES["nature"] = {
    "conv11": (8, 8, 4, 32),
    "conv12": (4, 4, 32, 64),
    "conv13": (3, 3, 64, 64),
    "dense1": (7 * 7 * 64, 512),
    "logits_v": (512, 1),
    "logits_p": (512, 3),
}
OBSERVATIONS |= dict.fromkeys([*LARGE, "nature"], OBSERVATIONS["small"])


def build(name, seed=0, num_actions=3, observation=None, **settings):
    spec = EnvironmentSpec(*(observation or OBSERVATIONS[name]), num_actions)
    return build_network(Config(network=name, **settings), spec, seed)


def states_for(name, count=2):
    shape, dtype = OBSERVATIONS[name]
    rng = np.random.default_rng(5)
    return (
        rng.integers(0, 256, (count, *shape)).astype(np.uint8)
        if dtype == "uint8"
        else rng.normal(size=(count, *shape)).astype(np.float32)
    )


@pytest.mark.parametrize("name", SHAPES)
def test_layers_and_outputs(name):
    network = build(name)
    assert {layer.name: layer.kernel.shape for layer in network.layers if layer.weights} == SHAPES[name]
    assert network.input.dtype == OBSERVATIONS[name][1]
    logits, values = network(states_for(name))
    assert (logits.shape, logits.dtype, values.shape, values.dtype) == ((2, 3), tf.float32, (2,), tf.float32)


@pytest.mark.parametrize(
    ("observation", "recorded", "new"),
    [
        (((84, 84, 4), "uint8"), "small", "small"),
        (((36, 40, 1), "uint8"), "small", "small"),
        (((10, 10, 4), "uint8"), "minatar", "minatar"),
        (((84, 35, 4), "uint8"), "minatar", "minatar"),
        (((8,), np.float32), "mlp", "mlp-two-trunks"),
    ],
)
def test_auto_goes_by_the_observation(observation, recorded, new):
    assert build("auto", observation=observation).name == recorded
    assert network_for("auto", observation[0]) == new
    assert network_for("nature", observation[0]) == "nature"


def test_policy_and_value_of_two_trunks_share_nothing():
    network = build("mlp-two-trunks")
    with tf.GradientTape(persistent=True) as tape:
        logits, values = network(states_for("mlp-two-trunks"))
    variables = [variable.value for variable in network.trainable_variables]
    reached = [
        {i for i, gradient in enumerate(tape.gradient(output, variables)) if gradient is not None}
        for output in (logits, values)
    ]
    assert reached[0] | reached[1] == set(range(12)) and not reached[0] & reached[1]


def slow_conv(x, kernel, bias, stride, same):
    size, out = kernel.shape[0], []
    if same:
        rows = -(-x.shape[0] // stride)
        pad = max((rows - 1) * stride + size - x.shape[0], 0)
        x = np.pad(x, ((pad // 2, pad - pad // 2), (pad // 2, pad - pad // 2), (0, 0)))
    for i in range(0, x.shape[0] - size + 1, stride):
        out.append(
            [
                np.tensordot(x[i : i + size, j : j + size], kernel, 3) + bias
                for j in range(0, x.shape[1] - size + 1, stride)
            ]
        )
    return np.maximum(np.array(out), 0)


def slow_forward(name, network, state):
    weights = {
        layer.name: [np.asarray(w, np.float64) for w in (layer.kernel, layer.bias)]
        for layer in network.layers
        if layer.weights
    }

    def dense(layer, x):
        return x @ weights[layer][0] + weights[layer][1]

    x = state.astype(np.float64)
    if name == "small":
        x = slow_conv(x / 128 - 1, *weights["conv11"], 4, True)
        x = slow_conv(x, *weights["conv12"], 2, True)
    if name in LARGE:
        x = slow_conv(x / 128 - 1, *weights["conv11"], int(name[-1]), True)
        x = slow_conv(slow_conv(x, *weights["conv12"], 2, True), *weights["conv13"], 2, True)
    if name == "nature":
        x = slow_conv(x / 128 - 1, *weights["conv11"], 4, False)
        x = slow_conv(slow_conv(x, *weights["conv12"], 2, False), *weights["conv13"], 1, False)
    if name == "minatar":
        x = slow_conv(x, *weights["conv11"], 1, False)
    if name == "mlp-two-trunks":
        of_policy, of_value = (
            np.tanh(dense(f"{trunk}2", np.tanh(dense(f"{trunk}1", x)))) for trunk in ("policy", "value")
        )
        return dense("logits_p", of_policy), dense("logits_v", of_value)[0]
    if name == "mlp":
        x = np.tanh(dense("dense2", np.tanh(dense("dense1", x))))
    else:
        x = np.maximum(dense("dense1", x.ravel()), 0)
    return dense("logits_p", x), dense("logits_v", x)[0]


@pytest.mark.parametrize("name", SHAPES)
def test_forward_pass_is_the_slow_one(name):
    network, states = build(name), states_for(name)
    logits, values = network(states)
    for b, state in enumerate(states):
        slow_logits, slow_value = slow_forward(name, network, state)
        scale = 1e-5 * max(1.0, np.abs(slow_logits).max(), abs(slow_value))
        np.testing.assert_allclose(logits[b], slow_logits, rtol=1e-4, atol=scale)
        np.testing.assert_allclose(values[b], slow_value, rtol=1e-4, atol=scale)


@pytest.mark.parametrize("setting", keras_globals.CHANGED)
def test_no_global_setting_of_keras_changes_a_network(setting, user_module):
    """The program may have changed them, or keras.json in the user's home."""
    users = {"my_networks:of_cells": OBSERVATIONS["minatar"]}
    observations = {name: OBSERVATIONS[name] for name in ("small", "nature", "minatar", "mlp")} | users
    states = {name: np.ones((2, *shape), dtype) for name, (shape, dtype) in observations.items()}
    usual = {name: build(name, observation=observations[name]) for name in observations}
    expected = {name: [output.numpy() for output in network(states[name])] for name, network in usual.items()}
    with keras_globals.changed(setting):
        before = keras_globals.values()
        for name, network in usual.items():
            changed = build(name, observation=observations[name])
            for weight, other in zip(network.weights, changed.weights, strict=True):
                assert weight.dtype == other.dtype and np.array_equal(weight.numpy(), other.numpy())
            for output, other in zip(expected[name], changed(states[name]), strict=True):
                assert output.dtype == other.dtype and np.array_equal(output, other.numpy())
        assert keras_globals.values() == before


@pytest.mark.parametrize("name", SHAPES)
def test_weights_start_uniform_within_the_fan_in(name):
    for layer in build(name, num_actions=18).layers:
        if layer.weights:
            bound = 1 / math.sqrt(math.prod(layer.kernel.shape[:-1]))
            for weight in (np.asarray(layer.kernel), np.asarray(layer.bias)):
                assert np.abs(weight).max() <= bound
                assert len(np.unique(weight)) > 0.85 * weight.size
                if weight.size >= 1000:
                    assert np.abs(weight).max() > 0.98 * bound
                    assert abs(weight.std() * math.sqrt(3) / bound - 1) < 0.05


HEAD_GAINS = {"logits_p": 0.01, "logits_v": 1.0}


def initialized(name, initialization, num_actions=3):
    """The gain a built-in network's layers are to have, with their kernels as [fan_in, units] and biases."""
    for layer in build(name, num_actions=num_actions, initialization=initialization).layers:
        if layer.weights:
            kernel = np.asarray(layer.kernel, np.float64)
            gain = HEAD_GAINS.get(layer.name, math.sqrt(2))
            yield gain, kernel.reshape(-1, kernel.shape[-1]), np.asarray(layer.bias)


@pytest.mark.parametrize("name", ["small", "minatar", "mlp", "mlp-two-trunks"])
def test_orthogonal_weights_have_orthogonal_columns_or_rows_of_the_gains_length(name):
    for gain, kernel, bias in initialized(name, "orthogonal"):
        least = kernel.T @ kernel if len(kernel) >= kernel.shape[1] else kernel @ kernel.T
        np.testing.assert_allclose(least, gain**2 * np.eye(len(least)), atol=1e-5 * gain**2)
        assert not bias.any()


@pytest.mark.parametrize("name", ["small", "minatar", "mlp", "mlp-two-trunks"])
def test_he_weights_are_normal_by_fan_in_and_gain(name):
    for gain, kernel, bias in initialized(name, "he", num_actions=18):
        ratio = kernel.std() * math.sqrt(len(kernel)) / gain
        assert abs(ratio - 1) < 4 / math.sqrt(2 * kernel.size)  # four standard errors
        assert np.abs(kernel).max() > math.sqrt(3) * kernel.std()  # a uniform distribution ends there
        assert not bias.any()


def test_normalized_images_are_divided_by_255():
    usual = build("small")
    normalized = build("small", normalize_images=True)
    rescale = (network.get_layer("rescale") for network in (usual, normalized))
    found = [layer(np.array([0, 255], np.uint8)).numpy().tolist() for layer in rescale]
    assert found == [[-1, pytest.approx(127 / 128)], [0, pytest.approx(1)]]
    for one, other in zip(usual.weights, normalized.weights, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["small", "nature", "minatar", "mlp", "mlp-two-trunks"])
def test_normalized_observations_are_deviations_from_the_mean(name):
    shape, dtype = OBSERVATIONS[name]
    most = 255 if shape == (84, 84, 4) else 1
    network = build(name, normalize_observations=True)
    layer = network.get_layer("standardize")
    rng = np.random.default_rng(0)
    mean = most * rng.random(shape, np.float32)
    variance = (0.2 * most * rng.random(shape, np.float32)) ** 2
    variance[..., 0] = 0
    layer.measured(mean, variance)
    states = (most * rng.random((5, *shape)) if most == 255 else rng.integers(0, 2, (5, *shape))).astype(
        dtype
    )
    expected = np.clip((states - mean) / np.sqrt(variance + 1e-5 * most**2), -5, 5)
    np.testing.assert_allclose(layer(states), expected, rtol=1e-4, atol=1e-5)
    assert not layer.trainable_weights and len(network.trainable_weights) == len(build(name).weights)
    assert all(np.isfinite(output).all() for output in network(states))


@pytest.mark.parametrize("initialization", ["fan-in", "orthogonal", "he"])
def test_the_seed_decides_the_weights(initialization):
    def weights(seed, elsewhere):
        keras.utils.set_random_seed(elsewhere)  # the process's other random numbers must not matter
        network = build("mlp", seed, initialization=initialization)
        return [np.asarray(w) for w in network.weights]

    for first, again, other in zip(weights(2**40 + 1, 0), weights(2**40 + 1, 1), weights(2, 0), strict=True):
        assert np.array_equal(first, again)
        assert np.array_equal(first, other) == (not first.any())  # biases may begin at zero


USER_MODULE = """
import keras

def good(state_shape, state_dtype, num_actions):
    states = keras.Input(state_shape, dtype=state_dtype.name)
    hidden = keras.layers.Dense(5)(states)
    values = keras.layers.Dense(1)(hidden)
    return keras.Model(states, (keras.layers.Dense(num_actions)(hidden), keras.ops.squeeze(values, -1)))

def of_cells(state_shape, state_dtype, num_actions):
    states = keras.Input(state_shape, dtype=state_dtype.name)
    hidden = keras.layers.Flatten()(keras.layers.Conv2D(3, 3)(keras.layers.Rescaling(1.0)(states)))
    logits = keras.layers.Dense(num_actions, dtype="float32")(hidden)
    values = keras.layers.Dense(1, dtype="float32")(hidden)
    return keras.Model(states, (logits, keras.ops.squeeze(values, -1)))

def column_of_values(state_shape, state_dtype, num_actions):
    states = keras.Input(state_shape)
    return keras.Model(states, (keras.layers.Dense(num_actions)(states), keras.layers.Dense(1)(states)))

def logits_only(state_shape, state_dtype, num_actions):
    states = keras.Input(state_shape)
    return keras.Model(states, keras.layers.Dense(num_actions)(states))

def other_shape(state_shape, state_dtype, num_actions):
    return good((9,), state_dtype, num_actions)

class OfAKnownBatch(keras.Model):
    def __init__(self, num_actions):
        super().__init__()
        self.logits = keras.layers.Dense(num_actions)

    def call(self, states):
        flat = keras.ops.reshape(states, (states.shape[0], -1))  # None in an update
        return self.logits(flat), flat[:, 0]

def of_a_known_batch(state_shape, state_dtype, num_actions):
    return OfAKnownBatch(num_actions)

def no_model(state_shape, state_dtype, num_actions):
    return 3

def failing(state_shape, state_dtype, num_actions):
    raise RuntimeError("two\\nlines")

number = 3
"""


@pytest.fixture
def user_module(tmp_path, monkeypatch):
    (tmp_path / "my_networks.py").write_text(textwrap.dedent(USER_MODULE))
    (tmp_path / "my_broken_module.py").write_text("import no_such_module\n")
    (tmp_path / "my_program.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.chdir(tmp_path)  # found from the current folder, as users expect
    monkeypatch.setattr("sys.path", list(sys.path))
    monkeypatch.delitem(sys.modules, "my_networks", raising=False)


def test_a_users_network(user_module):
    before = random.getstate(), str(np.random.get_state())  # noqa: NPY002
    first, again, other = (
        build("my_networks:good", seed, observation=((4,), "float32")) for seed in (1, 1, 2)
    )
    # The program keeps its own.
    assert (random.getstate(), str(np.random.get_state())) == before  # noqa: NPY002
    assert [tuple(output.shape) for output in first(np.zeros((6, 4), np.float32))] == [(6, 3), (6,)]
    for a, b in zip(first.weights, again.weights, strict=True):
        assert np.array_equal(np.asarray(a), np.asarray(b))
    assert not np.array_equal(np.asarray(first.weights[0]), np.asarray(other.weights[0]))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my_networks:god", "has no function 'god'; close: good"),
        ("my_networks:number", "has no function 'number'"),
        ("my_networks:", "has no function ''"),
        ("no_such_networks:good", "'no_such_networks' cannot be imported"),
        ("my_broken_module:good", "'my_broken_module' cannot be imported"),
        ("my_program:good", "'my_program' cannot be imported: SystemExit: 0"),
        (":good", "'' cannot be imported"),
        ("my_networks:no_model", "returned int; it must return a keras.Model"),
        ("my_networks:failing", "failed: RuntimeError: two lines"),
        ("my_networks:column_of_values", r"must return .*it returned float32 \[2, 3\], float32 \[2, 1\]"),
        ("my_networks:logits_only", r"must return .*it returned float32 \[2, 3\]"),
        ("my_networks:other_shape", r"cannot take float32 states of shape \(4,\)"),
        ("my_networks:of_a_known_batch", r"cannot take float32 states of shape \(4,\): .*None"),
    ],
)
def test_a_users_mistakes_are_told_in_one_line(user_module, name, message):
    with pytest.raises(UserError, match=message) as error:
        build(name, observation=((4,), "float32"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["test", "code", "sys"])
def test_a_users_file_with_the_name_of_a_module_of_python_is_named(user_module, tmp_path, name):
    (tmp_path / f"{name}.py").write_text(USER_MODULE)
    with pytest.raises(
        UserError, match=rf"has a module '{name}' of its own, which hides .*{name}\.py; rename the file"
    ):
        build(f"{name}:good", observation=((4,), "float32"))


def test_a_users_file_that_comes_before_a_module_of_python_is_used(user_module, tmp_path, monkeypatch):
    """As with `python -m ga3c_tf`, where the current folder comes first."""
    (tmp_path / "code.py").write_text(USER_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "code", raising=False)
    assert build("code:good", observation=((4,), "float32")).count_params() == 49
    del sys.modules["code"]


def test_the_network_of_minatar_scales_screens_as_the_others_do():
    scales = build("minatar", observation=OBSERVATIONS["small"]).get_layer("rescale")
    np.testing.assert_allclose(scales(np.array([0, 255], np.uint8)), [-1, 255 / 128 - 1])
    cells = build("minatar").get_layer("cast")
    np.testing.assert_array_equal(cells(np.array([0, 1], np.uint8)), [0, 1])


@pytest.mark.parametrize(
    ("name", "observation", "message"),
    [
        ("small", ((4,), "float32"), "'small' takes uint8 screens .* not float32 states of shape"),
        ("small", ((84, 84, 4), "float32"), "'small' takes uint8 screens"),
        ("small", ((10, 10, 4), "uint8"), "'small' takes uint8 screens of 36x36 or more"),
        ("minatar", ((4,), "float32"), "'minatar' takes images"),
        ("minatar", ((2, 9, 1), "uint8"), "at least 3x3"),
        ("mlp", ((84, 84, 4), "uint8"), "'mlp' takes vectors"),
        ("auto", ((4, 4), "float32"), "no network for states of shape"),
        ("smal", ((84, 84, 4), "uint8"), "unknown network 'smal'.*close: small"),
    ],
)
def test_a_network_that_does_not_fit(name, observation, message):
    with pytest.raises(UserError, match=message) as error:
        build(name, observation=observation)
    assert "\n" not in str(error.value)


def test_every_name_of_a_network_has_a_builder():
    without_memory = {name.removesuffix("-lstm") for name in BUILT_IN["network"]}
    assert without_memory == {*networks._BUILDERS, "auto", "lstm"}


def test_large_is_large_4():
    short, full = build("large", observation=OBSERVATIONS["small"]), build("large-4")
    assert short.name == full.name == "large-4"
    for first, second in zip(short.weights, full.weights, strict=True):
        assert np.array_equal(np.asarray(first), np.asarray(second))


def test_a_large_network_takes_images_only():
    with pytest.raises(UserError, match="'large-2' takes uint8 screens"):
        build("large-2", observation=((4,), "float32"))
    with pytest.raises(UserError, match=r"unknown network 'large-5'.*close: large-4"):
        build("large-5", observation=OBSERVATIONS["small"])


def test_keras_with_another_backend_is_refused_in_one_line():
    """Stand-ins say so: both packages take seconds to import, and the other backend is not installed."""
    program = (
        "import sys, types; sys.modules['tensorflow'] = types.ModuleType('tensorflow')\n"
        "keras = sys.modules['keras'] = types.ModuleType('keras')\n"
        "keras.config, keras.Model = types.SimpleNamespace(backend=lambda: 'jax'), type(None)\n"
        "import ga3c_tf; ga3c_tf.load_agent('pong')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == (
        "ga3c_tf.errors.UserError: Keras has started with the backend jax in this process; it must be "
        "tensorflow: set KERAS_BACKEND=tensorflow, or import ga3c_tf.model.tensorflow before Keras"
    )

"""The model by the authors' code (data/updates.json), its threads, traces, checkpoints, devices, errors."""

import json
import math
import os
import subprocess
import sys
import threading
from pathlib import Path

import keras
import numpy as np
import pytest
from checks import batch_of, replica_of, update
from commands import python

from ga3c_tf.algorithms.actor_critic import losses, model
from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.algorithms.factory import new_model
from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model import device, graph_call
from ga3c_tf.model import networks as network
from ga3c_tf.model.device import configure_device
from ga3c_tf.model.optimizers import RMSProp
from ga3c_tf.model.tensorflow import import_quietly

SPEC = EnvironmentSpec((4,), "float32", 3)
tf = model.tf
CASES = json.loads((Path(__file__).parents[1] / "data" / "updates.json").read_text())["cases"]
OURS = {
    "USE_LOG_SOFTMAX": "log_softmax",
    "MIN_POLICY": "min_policy",
    "GRAD_CLIP_NORM": "grad_clip_norm",
    "RMSPROP_MOMENTUM": "rmsprop_momentum",
    "RMSPROP_DECAY": "rmsprop_decay",
    "RMSPROP_EPSILON": "rmsprop_epsilon",
}


@pytest.fixture(autouse=True)
def full_precision():
    """A GPU would otherwise multiply in TF32, which is within 1e-3 only."""
    before = tf.config.experimental.tensor_float_32_execution_enabled()
    tf.config.experimental.enable_tensor_float_32_execution(False)
    yield
    tf.config.experimental.enable_tensor_float_32_execution(before)


def assert_near(found, expected, what, scale=None):
    """Within 1e-4, relative to the largest entry: a tensor's small entries carry its large ones' rounding."""
    found = np.asarray(found, np.float64)
    expected = np.asarray(expected, np.float64)
    assert found.shape == expected.shape, what
    error = np.abs(found - expected).max() / (scale or np.abs(expected).max())
    assert error < 1e-4, f"{what} is off by {error:.1e}"


def authors_weights(case, random):
    fan_in = {
        "conv11": 8 * 8 * 4,
        "conv12": 4 * 4 * 16,
        "dense1": 11 * 11 * 32,
        "logits_v": 256,
        "logits_p": 256,
    }
    weights = {}
    for name in case["variable_order"]:
        bound = 1 / math.sqrt(fan_in[name.split("/")[0]])
        weights[name] = random.uniform(-bound, bound, case["shapes"][name]).astype(np.float32)
    return weights


def variable(trained, name):
    layer, kind = name.split("/")
    return getattr(trained.network.get_layer(layer), {"w": "kernel", "b": "bias"}[kind])


@pytest.mark.parametrize("replica", [False, True], ids=["model", "a3c-replica"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['variant']}-{case['seed']}")
def test_six_updates_of_the_authors_code(case, replica):
    config = Config(
        network="small", **{OURS[name]: value for name, value in case["settings"].items() if name in OURS}
    )
    assert set(case["settings"]) <= {*OURS, "USE_GRAD_CLIP"}
    spec = EnvironmentSpec((84, 84, 4), "uint8", case["num_actions"])
    trained = Model(config, spec, seed=9)
    random = np.random.RandomState(case["seed"])
    weights = authors_weights(case, random)
    for name, value in weights.items():
        variable(trained, name).assign(value)
    if replica:
        trained = replica_of(trained, config, spec)
    sizes = random.randint(1, 24, size=6)
    assert len(case["steps"]) == 6
    for number, (size, step) in enumerate(zip(sizes, case["steps"], strict=True), 1):
        states = random.randint(0, 256, size=(size, 84, 84, 4)).astype(np.uint8)
        actions = random.randint(0, case["num_actions"], size=size).astype(np.int32)
        returns = random.normal(0, 2, size=size).astype(np.float32)
        policy, values, version, *_ = trained.predict(states)
        assert (version, size) == (number - 1, step["batch"])
        assert_near(policy[0], step["policy_row0"], "policy of the first state")
        assert_near(policy[-1], step["policy_rowlast"], "policy of the last state")
        assert_near(values, step["values"], "values")
        result = update(trained, batch_of(states, actions, returns), case["learning_rate"], case["beta"])
        entropy = result.metrics["entropy"] * case["beta"]
        assert result.version == number
        assert_near(entropy, step["objective_entropy"], "entropy objective")
        assert_near(
            -result.metrics["policy_loss"] - entropy, step["objective_advantage"], "advantage objective"
        )
        assert_near(result.metrics["policy_loss"], step["policy_loss"], "policy loss")
        assert_near(result.metrics["value_loss"], step["value_loss"], "value loss")
        for name, expected in step.get("weights_after", {}).items():
            found = np.asarray(variable(trained, name), np.float64)
            assert_near(found.ravel()[expected["index"]], expected["value"], name)
            assert_near(np.linalg.norm(found), expected["l2"], f"{name}'s norm")
            assert_near(found.sum(), expected["sum"], f"{name}'s sum", scale=expected["l2"])
            # The weights could agree to 1e-4 because they hardly moved: compare the movement, too.
            start = np.ravel(weights[name])[expected["index"]].astype(np.float64)
            movement = found.ravel()[expected["index"]] - start
            expected_movement = expected["value"] - start
            error = np.abs(movement - expected_movement).max()
            assert error < 1e-7 + 0.005 * np.abs(expected_movement).max(), f"{name} moved otherwise"
    assert "weights_after" in case["steps"][0] and "weights_after" in case["steps"][-1]


def small_model(seed=0, state_size=4, num_actions=3, **settings):
    return Model(
        Config(network="mlp", **settings), EnvironmentSpec((state_size,), "float32", num_actions), seed
    )


def small_batch(size=6, state_size=4, num_actions=3, seed=1):
    random = np.random.default_rng(seed)
    return (
        random.normal(size=(size, state_size)).astype(np.float32),
        random.integers(0, num_actions, size).astype(np.int32),
        random.normal(0, 2, size).astype(np.float32),
    )


def weights_of(trained):
    return [np.asarray(weight) for weight in trained.network.weights]


def after_updates(count=3, learning_rate=0.01, beta=0.1, **settings):
    trained = small_model(**settings)
    for number in range(count):
        update(trained, batch_of(*small_batch(seed=number)), learning_rate, beta)
    return weights_of(trained)


OPTIONS = [
    {"min_policy": 0.2},
    {"grad_clip_norm": 1e-3},
    {"rmsprop_decay": 0.5},
    {"rmsprop_momentum": 0.9},
    {"rmsprop_epsilon": 1.0},
    {"dual_rmsprop": True},
    {"log_epsilon": 0.34},
    {"learning_rate": 0.02},
    {"beta": 0.2},
    {"log_softmax": True, "log_epsilon": 0.34},
]


@pytest.mark.parametrize("option", OPTIONS, ids=str)
def test_every_option_changes_the_update(option):
    plain = {"log_epsilon": 0.34} if "log_softmax" in option else {}
    pairs = list(zip(after_updates(**plain), after_updates(**option), strict=True))
    assert max(np.abs(a - b).max() for a, b in pairs) > 1e-5


def test_min_policy_shows_in_the_prediction():
    trained = small_model(min_policy=0.5)
    for weight in trained.network.weights:
        weight.assign(10 * weight)
    policy, *_ = trained.predict(10 * small_batch(50)[0])
    assert policy.min() >= 0.5 / 2.5 - 1e-6 and policy.max() > 0.55
    np.testing.assert_allclose(policy.sum(axis=1), 1, rtol=1e-6)


def test_log_softmax_passes_gradient_where_the_floor_stops_it():
    """A state whose action has a probability far below the floor teaches nothing, unless by log-softmax."""

    def movement(log_softmax):
        trained = small_model(log_softmax=log_softmax, log_epsilon=0.9)
        before = np.asarray(trained.network.get_layer("logits_p").kernel).copy()
        update(trained, batch_of(*small_batch()), 0.01, 0.0)
        return np.abs(np.asarray(trained.network.get_layer("logits_p").kernel) - before).max()

    assert movement(False) == 0 and movement(True) > 1e-4


def clipped(gradient, clip):
    """As tf.clip_by_norm, with which the authors clip with two optimizers; not by the average norm."""
    norm = np.sqrt(np.square(gradient, dtype=np.float64).sum())
    return tf.constant(gradient * min(1.0, clip / norm), tf.float32)


def by_hand(copy, batch, beta, clip):
    """The gradients of policy loss and value loss, each by itself, on the network of `copy`."""
    states, actions, returns = batch
    variables = [weight.value for weight in copy.network.trainable_variables]
    gradients = []
    for which in range(2):
        with tf.GradientTape() as tape:
            logits, values = copy.network(states)
            policy = losses.policy(logits)
            log_policy = losses.log_policy(logits)
            taken = losses.log_taken(log_policy, actions) * (returns - tf.stop_gradient(values))
            objective = tf.reduce_sum(taken) + beta * losses.entropy(policy, log_policy)
            loss = losses.value_loss(values, returns) if which else -objective
        found = tape.gradient(loss, variables)
        gradients.append([g if g is None or clip is None else clipped(g.numpy(), clip) for g in found])
    return variables, gradients


@pytest.mark.parametrize("clip", [None, 0.5])
def test_dual_rmsprop_is_two_optimizers(clip):
    trained = small_model(dual_rmsprop=True, grad_clip_norm=clip, rmsprop_momentum=0.5)
    copy = small_model()
    variables = [weight.value for weight in copy.network.trainable_variables]
    optimizers = [RMSProp(variables, momentum=0.5) for _ in range(2)]
    for number in range(3):
        batch = small_batch(seed=number)
        update(trained, batch_of(*batch), 0.01, 0.1)
        _, gradients = by_hand(copy, batch, 0.1, clip)
        for optimizer, gradient in zip(optimizers, gradients, strict=True):
            optimizer.apply(gradient, 0.01)
    for found, expected in zip(weights_of(trained), weights_of(copy), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_one_update_by_hand():
    trained = small_model()
    copy = small_model()
    states, actions, returns = batch = small_batch()
    result = update(trained, batch_of(*batch), 0.01, 0.1)
    variables, (by_policy, by_value) = by_hand(copy, batch, 0.1, None)
    gradients = [sum(g for g in pair if g is not None) for pair in zip(by_policy, by_value, strict=True)]
    policy, values, *_ = copy.predict(states)
    for before, gradient, after in zip(variables, gradients, weights_of(trained), strict=True):
        square = 0.99 + 0.01 * np.square(gradient)
        np.testing.assert_allclose(
            after, before - 0.01 * gradient / np.sqrt(square + 0.1), rtol=1e-4, atol=1e-6
        )
    entropy = -(policy * np.log(policy)).sum(axis=1)
    taken = np.log(policy[np.arange(6), actions])
    np.testing.assert_allclose(result.metrics["entropy"], entropy.sum(), rtol=1e-5)
    np.testing.assert_allclose(
        result.metrics["policy_loss"], -(taken * (returns - values) + 0.1 * entropy).sum(), rtol=1e-4
    )
    np.testing.assert_allclose(
        result.metrics["value_loss"], 0.5 * np.square(returns - values).sum(), rtol=1e-5
    )
    assert all(type(number) is float for number in result.metrics.values())
    assert type(result.version) is int


class CountingNetwork(keras.Model):
    """Counts how often Python, that is tracing, comes through its forward pass."""

    def __init__(self):
        super().__init__()
        self.passes = 0
        self.heads = keras.layers.Dense(3), keras.layers.Dense(1)

    def call(self, states, training=False):
        self.passes += 1
        return self.heads[0](states), keras.ops.squeeze(self.heads[1](states), -1)


def test_one_trace_for_all_batch_sizes():
    counting = CountingNetwork()
    counting(np.zeros((1, 4), np.float32))
    before = counting.passes
    built = Model(Config(), SPEC, 0, network=counting)
    for size in (1, 2, 5, 16, 45):
        batch = small_batch(size)
        policy, values, *_ = built.predict(batch[0])
        assert (policy.shape, values.shape) == ((size, 3), (size,))
        update(built, batch_of(*batch), 0.01, 0.1)
        update(built, batch_of(*batch), 0.02, 0.0)
    assert counting.passes - before == 2, "one trace for prediction, one for training"


@pytest.mark.parametrize("dual", [False, True])
def test_threads_lose_no_update(dual):
    trained = small_model(dual_rmsprop=dual)
    versions = []
    count = 60
    batch = small_batch(5)
    stop = threading.Event()
    seen = []
    errors = []

    def predict():
        try:
            while not stop.is_set():
                seen.append(trained.predict(batch[0])[2])
        except Exception as error:
            errors.append(error)

    def train():
        try:
            for _ in range(count):
                versions.append(update(trained, batch_of(*batch), 1e-3, 0.01).version)
        except Exception as error:
            errors.append(error)

    predictor = threading.Thread(target=predict)
    trainers = [threading.Thread(target=train) for _ in range(4)]
    for thread in (predictor, *trainers):
        thread.start()
    for thread in trainers:
        thread.join()
    stop.set()
    predictor.join()
    assert not errors
    assert sorted(versions) == list(range(1, 4 * count + 1))
    assert trained.predict(batch[0])[2] == 4 * count
    assert seen == sorted(seen)


def test_the_prediction_is_of_its_version():
    """While a trainer raises the weight, an answer holds every update of the version it names, or later."""
    states = keras.Input((1,))
    value = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros", name="value")(states)
    net = keras.Model(states, (keras.ops.concatenate([value, value], axis=-1), keras.ops.squeeze(value, -1)))
    trained = Model(Config(), EnvironmentSpec((1,), "float32", 2), 0, network=net)
    one = np.ones((1, 1), np.float32)
    values = {0: 0.0}
    answers = []
    stop = threading.Event()

    def predict():
        while not stop.is_set():
            answers.append(trained.predict(one)[1:3])

    predictor = threading.Thread(target=predict, daemon=True)
    predictor.start()
    while len(values) < 300 or len({version for _, version in answers}) < 20:
        version = update(
            trained, batch_of(one, np.zeros(1, np.int32), np.full(1, 1e6, np.float32)), 1e-3, 0.0
        ).version
        values[version] = float(net.get_layer("value").kernel.numpy()[0, 0])
    stop.set()
    predictor.join()
    assert all(values[version] < values[version + 1] for version in range(len(values) - 1))
    assert {float(value[0]) for value, _ in answers} <= set(values.values())
    assert all(value[0] >= values[version] for value, version in answers)


def ancestors(operation):
    """The operations that must have run before this one."""
    found = set()
    left = [operation]
    while left:
        for before in (*left[-1].control_inputs, *(tensor.op for tensor in left.pop().inputs)):
            if before not in found:
                found.add(before)
                left.append(before)
    return found


@pytest.mark.parametrize("dual", [False, True])
def test_the_graphs_count_after_the_update_and_read_before_the_weights(dual):
    """The order that the test above can only hit by chance."""
    trained = small_model(dual_rmsprop=dual)
    states = tf.TensorSpec((None, 4), tf.float32)
    gradients = [
        tf.TensorSpec(trained.computation.variables[number].shape)
        for _, number in trained.computation.gradients_of
    ]
    training = (
        tf.function(trained._store._update_graph)
        .get_concrete_function(tf.TensorSpec((), tf.float32), *gradients)
        .graph.get_operations()
    )
    updates = {operation for operation in training if operation.type == "ResourceApplyRMSProp"}
    counting = next(operation for operation in training if operation.type == "ResourceCountUpTo")
    assert len(updates) == (12 if dual else 8)
    assert updates <= ancestors(counting)
    assert all(update.get_attr("use_locking") for update in updates)

    prediction = (
        tf.function(trained.computation._prediction_graph)
        .get_concrete_function(states)
        .graph.get_operations()
    )
    reads = [operation for operation in prediction if operation.type == "ReadVariableOp"]
    version = next(read for read in reads if read.outputs[0].dtype == tf.int64)
    assert len(reads) == 9
    assert all(version in ancestors(read) for read in reads if read is not version)


@pytest.mark.parametrize("dual", [False, True])
def test_a_checkpoint_continues_bit_for_bit(tmp_path, dual):
    settings = {"dual_rmsprop": dual, "rmsprop_momentum": 0.5}
    first = small_model(**settings)
    for number in range(2):
        update(first, batch_of(*small_batch(seed=number)), 0.01, 0.1)
    path = tf.train.Checkpoint(**first.checkpoint_objects()).write(str(tmp_path / "checkpoint"))
    second = small_model(seed=1, **settings)
    tf.train.Checkpoint(**second.checkpoint_objects()).read(path).assert_existing_objects_matched()
    results = [update(trained, batch_of(*small_batch(seed=7)), 0.01, 0.1) for trained in (first, second)]
    assert results[0] == results[1] and results[0].version == 3
    for a, b in zip(weights_of(first), weights_of(second), strict=True):
        np.testing.assert_array_equal(a, b)


def test_checkpoint_objects_are_all_variables():
    objects = small_model(dual_rmsprop=True).checkpoint_objects()
    assert {name: len(variables) for name, variables in objects.items()} == {
        "weights": 8,
        "version": 1,
        "mean_square": 8,
        "momentum": 8,
        "value_mean_square": 8,
        "value_momentum": 8,
    }
    assert len({id(each) for variables in objects.values() for each in variables}) == 8 * 5 + 1


def logarithms(shape, dtype, num_actions):
    """A user's network, whose outputs are finite for states that are all 0, and whose gradient is not."""
    states = keras.Input(shape, dtype=dtype)
    size = keras.ops.abs(keras.layers.Dense(4, use_bias=False)(states))
    hidden = keras.ops.where(size > 1e-6, keras.ops.log(size), 0.0)
    values = keras.ops.squeeze(keras.layers.Dense(1)(hidden), -1)
    return keras.Model(states, (keras.layers.Dense(num_actions)(hidden), values))


@pytest.mark.parametrize("clip", [0.0, 0.5])
def test_an_update_whose_inner_gradients_are_not_finite_is_left_out(clip):
    model = Model(
        Config(network=f"{__name__}:logarithms", grad_clip_global=clip),
        EnvironmentSpec((4,), "float32", 3),
        0,
    )
    before = [weight.numpy() for weight in model.network.trainable_variables]
    batch = batch_of(np.zeros((5, 4), np.float32), np.zeros(5, np.int32), np.ones(5, np.float32))
    assert not update(model, batch, 0.1, 0.01).applied
    for weight, old in zip(model.network.trainable_variables, before, strict=True):
        np.testing.assert_array_equal(weight.numpy(), old)


def test_it_learns_a_bandit():
    trained = small_model(state_size=1, num_actions=2)
    random = np.random.default_rng(0)
    states = np.ones((20, 1), np.float32)
    for _ in range(150):
        policy, *_ = trained.predict(states)
        actions = (random.random(20) < policy[:, 1]).astype(np.int32)
        update(trained, batch_of(states, actions, actions.astype(np.float32)), 0.01, 0.0)
    policy, values, *_ = trained.predict(states[:1])
    assert policy[0, 1] > 0.95 and abs(values[0] - 1) < 0.15


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"states": np.zeros((3, 5), np.float32)},
            r"states are float32 \(3, 5\); the model takes float32 \[B, 4\]",
        ),
        ({"states": np.zeros((3, 4))}, "states are float64"),
        ({"states": np.zeros(4, np.float32)}, "states are"),
        ({"actions": np.zeros(2, np.int32)}, "3 states need as many actions"),
        ({"returns": np.zeros((3, 1), np.float32)}, "3 states need as many returns"),
    ],
)
def test_a_batch_of_the_wrong_shape_is_refused(changes, message):
    good = {
        "states": np.zeros((3, 4), np.float32),
        "actions": np.zeros(3, np.int32),
        "returns": np.zeros(3, np.float32),
    }
    trained = small_model()
    with pytest.raises(ValueError, match=message):
        update(trained, batch_of(**{**good, **changes}), learning_rate=0.01, beta=0.1)
    if "states" in changes:
        with pytest.raises(ValueError, match=message):
            trained.predict(changes["states"])
    assert trained.predict(good["states"])[2] == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"mu_log_probabilities": np.zeros(1, np.float32)},
            r"3 states need as many mu_log_probabilities, .* \(1,\)",
        ),
        ({"rewards": np.zeros(4, np.float32)}, "3 states need as many rewards"),
        (
            {"bootstrap_values": np.zeros(1, np.float32)},
            r"bootstrap_values have shape \(1,\), .* segments \(2,\)",
        ),
        ({"lengths": np.ones((2, 1), np.int32)}, r"lengths have shape \(2, 1\)"),
    ],
)
def test_every_column_that_the_loss_reads_has_the_length_of_the_others(changes, message):
    """TensorFlow would spread a column of one number over the batch without a word."""
    columns = {
        "rewards": np.zeros(3, np.float32),
        "mu_log_probabilities": np.zeros(3, np.float32),
        "lengths": np.array([2, 1], np.int32),
        "bootstrap_values": np.zeros(2, np.float32),
    }
    trained = small_model(correction="v-trace")
    update(trained, batch_of(*small_batch(3), **columns), 0.01, 0.1)
    with pytest.raises(ValueError, match=message):
        update(trained, batch_of(*small_batch(3), **{**columns, **changes}), 0.01, 0.1)


def sum_of_lags(batch, config):
    """The policy lag of the batch as its policy loss."""
    zero = 0.0 * (tf.reduce_sum(batch.logits) + tf.reduce_sum(batch.values))
    return tf.reduce_sum(tf.cast(batch.version - batch.versions, tf.float32)) + zero, zero, zero


@pytest.mark.parametrize("replica", [False, True], ids=["model", "a3c-replica"])
def test_a_loss_may_read_the_policy_lag(replica):
    config = Config(network="mlp", loss="test_model:sum_of_lags")
    trained = Model(config, SPEC, seed=0)
    if replica:
        trained = replica_of(trained, config, SPEC)
    batch = batch_of(*small_batch(6), versions=np.zeros(6, np.int64))
    results = [update(trained, batch, 0.01, 0.1) for _ in range(4)]
    assert [result.metrics["policy_loss"] for result in results] == [0, 6, 12, 18]
    assert [result.version for result in results] == [1, 2, 3, 4]


def test_builds_the_network_of_the_config():
    assert small_model().network.name == "mlp"
    spec = EnvironmentSpec((4,), "float32", 2)
    with pytest.raises(UserError, match="'small' takes uint8 screens"):
        Model(Config(network="small"), spec, 0)
    given = network.build_network(Config(network="mlp"), spec, 5)
    assert Model(Config(network="small"), spec, 0, network=given).network is given


@pytest.mark.parametrize(("normalize", "scaled"), [(False, [-1, 0, 127 / 128]), (True, [0, 128 / 255, 1])])
def test_screens_are_scaled_as_the_config_says(normalize, scaled):
    trained = Model(
        Config(network="small", normalize_images=normalize), EnvironmentSpec((36, 36, 1), "uint8", 3), seed=0
    )
    found = trained.network.get_layer("rescale")(np.array([0, 128, 255], np.uint8))
    np.testing.assert_allclose(found, scaled, atol=1e-6)


def test_the_weights_begin_as_the_config_says():
    """As the lengths of the columns of the policy's kernel show, each of which has 64 inputs."""
    lengths = {}
    for initialization in ("fan-in", "orthogonal", "he"):
        trained = small_model(initialization=initialization)
        lengths[initialization] = np.linalg.norm(trained.network.get_layer("logits_p").kernel, axis=0)
    np.testing.assert_allclose(lengths["fan-in"], 1 / np.sqrt(3), atol=0.15)  # uniform within 1 / 8
    np.testing.assert_allclose(lengths["orthogonal"], 0.01, rtol=1e-5)
    np.testing.assert_allclose(lengths["he"], 0.01, rtol=0.5)
    assert np.ptp(lengths["he"]) > 1e-4  # its columns differ in length, unlike orthogonal ones


@pytest.fixture
def gpus(monkeypatch):
    """Lets a test say how many GPUs TensorFlow finds, and see which get memory growth."""
    grown = []
    there = []
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: there)
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: there)
    monkeypatch.setattr(tf.config, "set_visible_devices", lambda devices, kind: grown.append("hidden"))
    monkeypatch.setattr(tf.config.experimental, "set_memory_growth", lambda gpu, on: grown.append(gpu))
    return there, grown


@pytest.mark.parametrize(
    ("device", "count", "chosen", "grown"),
    [
        ("auto", 0, "/CPU:0", ["hidden"]),
        ("auto", 2, "/GPU:0", ["GPU0", "GPU1"]),
        ("cpu", 2, "/CPU:0", ["hidden"]),
        ("gpu", 1, "/GPU:0", ["GPU0"]),
        ("gpu:1", 2, "/GPU:1", ["GPU0", "GPU1"]),
    ],
)
def test_the_device(gpus, device, count, chosen, grown):
    gpus[0].extend(f"GPU{number}" for number in range(count))
    assert configure_device(device) == chosen
    assert gpus[1] == grown


@pytest.mark.parametrize(
    ("device", "count", "message"),
    [
        ("gpu", 0, "device is 'gpu', but TensorFlow finds no GPU here; --device cpu"),
        ("gpu:1", 1, "TensorFlow finds 1 GPU here"),
        ("gpu:2", 2, "TensorFlow finds 2 GPUs here"),
        ("tpu", 0, "must be auto, cpu, gpu or gpu:N"),
        ("gpu:", 1, "must be"),
        ("gpu:-1", 1, "must be"),
        ("cpu ", 1, "must be"),
    ],
)
def test_a_device_that_is_not_there(gpus, device, count, message):
    gpus[0].extend(f"GPU{number}" for number in range(count))
    with pytest.raises(UserError, match=message):
        configure_device(device)


def test_gpus_that_this_process_has_hidden_are_not_used(gpus, monkeypatch):
    """TensorFlow would compute on the CPU without a word, and the run would be recorded as one on a GPU."""
    gpus[0].append("GPU0")
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [])
    assert configure_device("auto") == "/CPU:0"
    with pytest.raises(UserError, match="has used the CPU before; start another process"):
        configure_device("gpu")


def test_the_model_runs_on_the_device_it_was_given():
    trained = Model(Config(network="mlp"), SPEC, 0, device=configure_device("cpu"))
    update(trained, batch_of(*small_batch()), 0.01, 0.1)
    assert all(weight.value.device.endswith("CPU:0") for weight in trained.network.weights)


ANY_COLUMNS = {
    "next_states": small_batch(seed=2)[0],
    "discounts": np.full(6, 0.9, np.float32),
    "weights": np.ones(6, np.float32),
    "versions": np.zeros(6, np.int64),
    "agents": np.zeros(6, np.int64),
    "ages": np.zeros(6, np.int64),
}
CALLED = [{}, {"dual_rmsprop": True}, {"algorithm": "pqn"}, {"algorithm": "dqn", "target_period": 1}]


@pytest.mark.parametrize("settings", CALLED, ids=str)
def test_an_update_is_the_same_when_called_as_on_a_gpu(settings, monkeypatch):
    """There the ConcreteFunction is called, which nests its outputs and gives None for no gradient."""
    weights = []
    for on_gpu in (False, True):
        monkeypatch.setattr(graph_call, "on_gpu", lambda _, answer=on_gpu: answer)
        trained = new_model(Config(network="mlp", **settings), SPEC, 0, device=None)
        before = weights_of(trained)
        assert update(trained, batch_of(*small_batch(), **ANY_COLUMNS), 0.01, 0.01).applied
        weights.append(weights_of(trained))
    for raw, nested in zip(*weights, strict=True):
        assert np.array_equal(raw, nested)
    assert any(not np.array_equal(start, after) for start, after in zip(before, weights[0], strict=True))


@pytest.mark.parametrize(
    ("cores", "already", "threads"),
    [
        (1, (0, 0), (1, 2)),
        (2, (0, 0), (1, 2)),
        (7, (0, 0), (1, 7)),
        (16, (0, 0), (4, 16)),
        (16, (1, 1), (1, 1)),
    ],
)
def test_the_threads(monkeypatch, cores, already, threads):
    found = dict(zip(("intra", "inter"), already, strict=True))
    for kind in found:
        monkeypatch.setattr(
            tf.config.threading, f"get_{kind}_op_parallelism_threads", lambda kind=kind: found[kind]
        )
        monkeypatch.setattr(
            tf.config.threading,
            f"set_{kind}_op_parallelism_threads",
            lambda number, kind=kind: found.update({kind: number}),
        )
    monkeypatch.setattr(device, "usable_cores", lambda: cores)
    configure_device("cpu")
    assert tuple(found.values()) == threads


PROGRAM = """
from ga3c_tf.algorithms.actor_critic import model
from ga3c_tf.config import rates
from ga3c_tf.model import device
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.spec import EnvironmentSpec
import hashlib, numpy as np
device.make_deterministic(2**40)
device = device.configure_device("cpu")
threads = model.tf.config.threading
spec = EnvironmentSpec((84, 84, 4), "uint8", 6)
trained = model.Model(model.Config(network="small"), spec, 2**40, device=device)
random = np.random.default_rng(0)
for _ in range(4):
    states, actions = random.integers(0, 256, (25, 84, 84, 4), dtype=np.uint8), random.integers(0, 6, 25)
    batch = Batch(states=states, actions=actions, returns=random.normal(size=25))
    trained.train([batch], rates.Rates(1e-3, 0.01))
print(threads.get_intra_op_parallelism_threads(), threads.get_inter_op_parallelism_threads(),
      hashlib.sha256(b"".join(np.asarray(each).tobytes() for each in trained.network.weights)).hexdigest())
"""


def test_a_seed_gives_the_same_bits_and_a_quiet_start():
    """Only the first of the two programs imports everything by itself."""
    first = subprocess.run([sys.executable, "-c", PROGRAM], text=True, capture_output=True)
    for run in (first, python(PROGRAM)):
        assert (run.returncode, run.stderr) == (0, "")
        assert run.stdout == first.stdout and run.stdout.startswith("1 1 ")


def test_an_import_is_quiet_unless_it_fails(tmp_path, monkeypatch, capfd):
    (tmp_path / "chatting.py").write_text("import os\nos.write(2, b'a greeting')\n")
    (tmp_path / "shouting.py").write_text("import os\nos.write(2, b'the reason')\nraise ImportError('no')\n")
    monkeypatch.syspath_prepend(tmp_path)
    import_quietly("chatting")
    with pytest.raises(ImportError, match="no"):
        import_quietly("shouting")
    os.write(2, b", and after")
    assert capfd.readouterr().err == "the reason, and after"


def test_the_divergence_of_one_batch_in_eleven_is_measured():
    model = Model(Config(network="mlp"), SPEC, seed=0, device="/CPU:0")
    states, actions, returns = small_batch()
    chosen = np.full(len(states), np.log(1 / 3), np.float32)
    batch = batch_of(states, actions, returns, mu_log_probabilities=chosen, mu_values=returns)
    measured = [math.isfinite(update(model, batch, 1e-3, 0.01).divergence.kl) for _ in range(33)]
    assert measured == ([True] + [False] * 10) * 3


@pytest.mark.parametrize("min_policy", [0.0, 0.2])
def test_the_divergence_is_that_of_the_policy_that_is_predicted(min_policy):
    trained = small_model(min_policy=min_policy)
    states, actions, returns = small_batch()
    policy, *_ = trained.predict(states)
    log_pi = np.log(policy[np.arange(len(actions)), actions])
    log_mu = (log_pi - np.linspace(-0.5, 1, len(actions))).astype(np.float32)
    batch = batch_of(states, actions, returns, mu_log_probabilities=log_mu, mu_values=returns)
    measured = update(trained, batch, 1e-3, 0.01).divergence
    ratios = np.exp(log_pi - log_mu)
    assert measured.kl == pytest.approx(-0.25, abs=1e-4)  # the mean of log mu - log pi
    assert measured.total_variation == pytest.approx(0.5 * np.abs(ratios - 1).mean(), rel=1e-4)

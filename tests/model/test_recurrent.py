"""Recurrent networks: against a slow NumPy loop, finite differences, and networks without memory."""

import numpy as np
import pytest
from checks import update

from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.algorithms.actor_critic.replicas import parts
from ga3c_tf.algorithms.actor_critic.replicas.replica import Replica
from ga3c_tf.algorithms.actor_critic.replicas.synchronous import SynchronousReplicas
from ga3c_tf.algorithms.factory import new_model
from ga3c_tf.config import Config, network_for
from ga3c_tf.config.rates import Rates
from ga3c_tf.errors import UserError
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.networks import build_network
from ga3c_tf.model.recurrent import flat, lstm, padded, unrolled, unrolling
from ga3c_tf.model.tensorflow import keras, tf
from ga3c_tf.workers.minibatches import Minibatches

SPEC = EnvironmentSpec((4,), "float32", 3)
LENGTHS = np.array([3, 1, 5, 2], np.int32)
B = int(LENGTHS.sum())
SHAPES = {"mlp-two-trunks-lstm": ((4,), "float32"), "minatar-lstm": ((10, 10, 4), "uint8")}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def random_states(shape, dtype, count=B):
    rng = np.random.default_rng(5)
    if dtype == np.uint8:
        return rng.integers(0, 2, (count, *shape)).astype(dtype)
    return rng.normal(size=(count, *shape)).astype(dtype)


def batch_of(states, carries, lengths=LENGTHS, actions=3, **columns):
    """A batch of segments of these lengths, with all columns that any correction reads."""
    rng = np.random.default_rng(7)
    steps = len(states)
    segments = len(lengths)
    values = {
        "actions": rng.integers(0, actions, steps).astype(np.int32),
        "rewards": rng.normal(size=steps).astype(np.float32),
        "mu_values": rng.normal(size=steps).astype(np.float32),
        "mu_log_probabilities": rng.uniform(-2, -0.5, steps).astype(np.float32),
        "versions": np.zeros(steps, np.int64),
        "returns": rng.normal(size=steps).astype(np.float32),
        "lengths": np.asarray(lengths, np.int32),
        "bootstrap_values": rng.normal(size=segments).astype(np.float32),
        "agents": np.zeros(steps, np.int64),
        "carries": carries,
    }
    return Batch(states=states, **{**values, **columns})


def slow_lstm(weights, inputs, carry):
    """The outputs and the last carry of an LSTM, one step after another."""
    kernel, recurrent, bias = (np.asarray(weight, np.float64) for weight in weights)
    output, memory = np.split(np.asarray(carry, np.float64), 2)
    outputs = []
    for row in inputs:
        enter, forget, candidate, leave = np.split(row @ kernel + output @ recurrent + bias, 4)
        memory = sigmoid(forget) * memory + sigmoid(enter) * np.tanh(candidate)
        output = sigmoid(leave) * np.tanh(memory)
        outputs.append(output)
    return np.array(outputs), np.concatenate([output, memory])


@pytest.mark.parametrize("name", SHAPES)
def test_whole_segments_give_what_single_steps_and_a_slow_loop_give(name):
    network = build_network(Config(network=name), EnvironmentSpec(*SHAPES[name], 3), 1)
    states = random_states(*SHAPES[name])
    cell = network.get_layer("lstm")  # that of the policy, whose carry comes first
    hidden = keras.Model(network.inputs[0], cell.input[0])(states).numpy()
    size = len(network.initial_state)
    carries = np.random.default_rng(3).normal(size=(len(LENGTHS), size)).astype(np.float32)
    logits, values = unrolling(network)(*map(tf.constant, (states, carries, LENGTHS)))
    start = 0
    for length, first in zip(LENGTHS, carries, strict=True):
        steps = slice(start, start + length)
        outputs, last = slow_lstm(cell.get_weights(), hidden[steps], first[: 2 * cell.units])
        head = network.get_layer("logits_p")
        np.testing.assert_allclose(logits[steps], outputs @ head.kernel + head.bias, atol=1e-5)
        carry = first[None]
        for step in range(start, start + length):
            (one, value), carry = network((tf.constant(states[step : step + 1]), tf.constant(carry)))
            np.testing.assert_allclose(one[0], logits[step], atol=1e-5)
            np.testing.assert_allclose(value[0], values[step], atol=1e-5)
        np.testing.assert_allclose(carry[0, : 2 * cell.units], last, atol=1e-5)
        start += length


def test_gradients_flow_through_whole_segments_as_finite_differences_of_a_slow_loop_say():
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=shape) for shape in ((2, 12), (3, 12), (12,))]
    inputs = rng.normal(size=(B, 2)).astype(np.float32)
    carries = rng.normal(size=(len(LENGTHS), 6)).astype(np.float32)
    factors = rng.normal(size=(B, 3))

    def slow_loss():
        segments = np.split(inputs, np.cumsum(LENGTHS)[:-1])
        outputs = [slow_lstm(weights, rows, carry)[0] for rows, carry in zip(segments, carries, strict=True)]
        return (np.sin(np.concatenate(outputs)) * factors).sum()

    variables = [tf.constant(values, tf.float32) for values in weights]
    with tf.GradientTape() as tape:
        tape.watch(variables)
        kernel, recurrent, bias = variables
        steps = padded(tf.constant(inputs), LENGTHS)
        outputs = lstm(steps, tf.concat([kernel, recurrent], 0), bias, tf.constant(carries))
        total = tf.reduce_sum(tf.sin(flat(outputs, LENGTHS)) * factors.astype(np.float32))
    for values, gradient in zip(weights, tape.gradient(total, variables), strict=True):
        for place in np.ndindex(values.shape):
            value = values[place]
            sides = []
            for shift in (1e-6, -1e-6):
                values[place] = value + shift
                sides.append(slow_loss())
            values[place] = value
            assert gradient.numpy()[place] == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("name", SHAPES)
def test_a_network_that_is_stepped_has_the_gradients_of_one_with_whole_segments(name):
    """As those of users are."""
    network = build_network(Config(network=name), EnvironmentSpec(*SHAPES[name], 3), 1)
    carries = np.random.default_rng(3).normal(size=(len(LENGTHS), len(network.initial_state)))
    batch = [
        tf.constant(random_states(*SHAPES[name])),
        tf.constant(carries, tf.float32),
        tf.constant(LENGTHS),
    ]

    def gradients(outputs):
        with tf.GradientTape() as tape:
            logits, values = outputs(*batch)
            loss = tf.reduce_sum(tf.sin(logits)) + tf.reduce_sum(tf.sin(values))
        return tape.gradient(loss, network.trainable_variables)

    stepped = gradients(lambda *batch: unrolled(lambda rows, carry: network((rows, carry)), *batch))
    for one, other in zip(gradients(unrolling(network)), stepped, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def open_gates(network):
    """Let an LSTM pass its input on: gates that are 1 or, for the memory, 0 to the last bit."""
    cell = network.get_layer("lstm")
    units = cell.units
    kernel, kernel_of_memory, bias = (np.zeros(weight.shape, np.float32) for weight in cell.get_weights())
    candidate = slice(2 * units, 3 * units)
    kernel[:, candidate] = np.random.default_rng(2).normal(size=(kernel.shape[0], units)) / 8
    bias[:units] = bias[3 * units :] = 100  # the gates of the input and the output
    bias[units : 2 * units] = -200  # the gate of the memory
    cell.set_weights([kernel, kernel_of_memory, bias])
    return kernel[:, candidate]


def without_memory(recurrent_network, kernel):
    """The network that an LSTM with open gates makes of its layers: two more activations."""
    states = keras.Input((4,))
    hidden = recurrent_network.get_layer("cast")(states)
    for name in ("dense1", "dense2"):
        layer = keras.layers.Dense(64, "tanh", name=name)
        hidden = layer(hidden)
        layer.set_weights(recurrent_network.get_layer(name).get_weights())
    middle = keras.layers.Dense(64, "tanh", use_bias=False, name="middle")
    hidden = keras.layers.Activation("tanh")(middle(hidden))
    middle.set_weights([kernel])
    heads = []
    for name, units in (("logits_p", 3), ("logits_v", 1)):
        layer = keras.layers.Dense(units, name=name)
        heads.append(layer(hidden))
        layer.set_weights(recurrent_network.get_layer(name).get_weights())
    return keras.Model(states, [heads[0], keras.layers.Reshape(())(heads[1])])


@pytest.mark.parametrize(
    "settings",
    [
        {"correction": "v-trace"},
        {"correction": "ppo", "clip_ratio": 0.2, "advantage": "gae", "normalize_advantages": True},
    ],
)
def test_with_open_gates_it_learns_what_a_network_without_memory_learns(settings):
    """In one update, which also gives weights to the memory."""
    config = Config(network="mlp-lstm", optimizer="rmsprop", **settings)
    network = build_network(Config(network="mlp-lstm"), SPEC, 1)
    kernel = open_gates(network)
    plain = Model(config, SPEC, 0, network=without_memory(network, kernel))
    model = Model(config, SPEC, 0, network=network)
    states = random_states((4,), np.float32)
    carries = np.random.default_rng(3).normal(size=(len(LENGTHS), 128)).astype(np.float32)
    batch = batch_of(states, carries)
    with_carry = model.predict(states, np.ones((B, 128), np.float32))
    np.testing.assert_allclose(with_carry.policy, plain.predict(states).policy, atol=1e-6)
    np.testing.assert_allclose(with_carry.value, plain.predict(states).value, atol=1e-6)
    one = update(model, batch, 0.01, 0.01)
    other = update(plain, batch, 0.01, 0.01)
    assert one.metrics == pytest.approx(other.metrics, rel=1e-5)
    for name in ("dense1", "dense2", "logits_p", "logits_v"):
        for one, other in zip(
            network.get_layer(name).get_weights(), plain.network.get_layer(name).get_weights(), strict=True
        ):
            np.testing.assert_allclose(one, other, atol=1e-5)


def counting(state_shape, state_dtype, num_actions):
    """A user's network, whose carry is the mean of the states so far and their number."""
    states = keras.Input(state_shape, dtype=state_dtype.name)
    carry = keras.Input((5,))
    number = carry[:, 4:] + 1
    mean = carry[:, :4] + (states - carry[:, :4]) / number
    hidden = keras.layers.Dense(8, "tanh")(keras.ops.concatenate([states, mean], 1))
    values = keras.layers.Reshape(())(keras.layers.Dense(1)(hidden))
    outputs = (keras.layers.Dense(num_actions)(hidden), values)
    network = keras.Model((states, carry), (outputs, keras.ops.concatenate([mean, number], 1)))
    network.initial_state = np.zeros(5, np.float32)
    return network


def test_a_users_network_is_stepped_with_its_carry():
    model = Model(Config(network="test_recurrent:counting"), SPEC, 0)
    states = random_states((4,), np.float32, 3)
    carry = np.zeros((1, 5), np.float32)
    log_policies = []
    for state in states:
        prediction = model.predict(state[None], carry)
        log_policies.append(np.log(prediction.policy[0]))
        carry = prediction.carry
    np.testing.assert_allclose(carry[0], [*states.mean(axis=0), 3], rtol=1e-5)
    batch = batch_of(states, np.zeros((1, 5), np.float32), [3], actions=1)
    gradients = model.computation.gradients(batch, 0.0)
    np.testing.assert_allclose(gradients.log_pi, [row[0] for row in log_policies], atol=1e-5)
    with pytest.raises(ValueError, match=r"the carry has the shape \(0,\); the model takes \(3, 5\)"):
        model.predict(states)


def forgetful(state_shape, state_dtype, num_actions):
    network = counting(state_shape, state_dtype, num_actions)
    network.initial_state = np.zeros(4, np.float32)
    return network


def shrinking(state_shape, state_dtype, num_actions):
    states = keras.Input(state_shape)
    carry = keras.Input((2,))
    dense = keras.layers.Dense(num_actions)(states)
    network = keras.Model((states, carry), ((dense, dense[:, 0]), carry[:, :1]))
    network.initial_state = [0.0, 0.0]
    return network


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("forgetful", "network 'test_recurrent:forgetful' cannot take float32 states of shape"),
        ("shrinking", r"the carry after a step is float32 \[2, 1\]; .* must be float32 \[2, 2\]"),
    ],
)
def test_a_users_network_whose_carry_does_not_fit_is_refused(name, message):
    with pytest.raises(UserError, match=message):
        Model(Config(network=f"test_recurrent:{name}"), SPEC, 0)


def test_q_learning_refuses_memory_and_the_compiled_model_falls_back_in_one_line():
    with pytest.raises(
        UserError, match="--network mlp-lstm cannot be combined with --algorithm pqn: its networks"
    ):
        Config(network="mlp-lstm", algorithm="pqn")
    own = Config(network="test_recurrent:counting", algorithm="pqn")
    with pytest.raises(UserError, match="has memory, and --algorithm pqn has none"):
        new_model(own, SPEC, 0, "/CPU:0")
    said = []
    model = new_model(Config(network="mlp-lstm", compile="on"), SPEC, 0, "/CPU:0", say=said.append)
    assert type(model) is Model
    assert said == [
        "the model is not compiled: the network has memory, which the compiled programs do not pass on"
    ]


@pytest.mark.parametrize(
    ("shape", "name"), [((84, 84, 4), "small"), ((10, 10, 4), "minatar"), ((4,), "mlp-two-trunks")]
)
def test_lstm_is_behind_the_network_for_the_observation(shape, name):
    assert network_for("lstm", shape) == f"{name}-lstm"


def test_two_devices_train_as_one_does(monkeypatch):
    monkeypatch.setattr(parts, "SMALLEST_WORK", 1)
    config = Config(network="mlp-lstm", devices="cpu:2", rmsprop_epsilon=1e-3, correction="v-trace")
    replicas = SynchronousReplicas(config, [Replica(config, SPEC, seed, "/CPU:0") for seed in (0, 1)])
    replicas.load()
    model = Model(config, SPEC, 0)
    states = random_states((4,), np.float32)
    carries = np.random.default_rng(2).normal(size=(len(LENGTHS), 128)).astype(np.float32)
    for _ in range(3):
        for trained in (replicas, model):
            assert trained.train([batch_of(states, carries)], Rates(0.01, 0.02))[0].applied
        for one, of_two in zip(model.network.weights, replicas.network.weights, strict=True):
            np.testing.assert_allclose(of_two, one, rtol=1e-6, atol=1e-6)
    for _ in range(2):  # on both devices
        predictions = [trained.predict(states[:4], carries) for trained in (replicas, model)]
        np.testing.assert_allclose(predictions[0].carry, predictions[1].carry, atol=1e-6)


def test_the_memory_lasts_at_first():
    for initialization in ("fan-in", "orthogonal", "he"):
        network = build_network(Config(network="mlp-lstm", initialization=initialization), SPEC, 1)
        _, kernel, bias = network.get_layer("lstm").get_weights()
        np.testing.assert_array_equal(bias, np.repeat([0.0, 1.0, 0.0, 0.0], 64))
        for gate in np.split(kernel, 4, axis=1):
            np.testing.assert_allclose(gate @ gate.T, np.eye(64), atol=1e-5)


def test_minibatches_are_of_whole_segments():
    states = random_states((4,), np.float32)
    carries = np.arange(2.0 * len(LENGTHS), dtype=np.float32).reshape(-1, 2)
    batch = batch_of(states, carries, agents=np.repeat(np.arange(len(LENGTHS)), LENGTHS))
    config = Config(clip_ratio=0.2, epochs=2, minibatch_size=4, seed=1)
    minibatches = list(Minibatches(config).of(batch, whole_segments=True))
    assert len(minibatches) == 2 * round(B / 4)
    seen = []
    for part in minibatches:
        assert len(part) == part.lengths.sum() == len(part.states)
        starts = np.cumsum(part.lengths) - part.lengths
        for start, length, carry in zip(starts, part.lengths, part.carries, strict=True):
            number = int(part.agents[start])
            seen.append(number)
            first = LENGTHS[:number].sum()
            np.testing.assert_array_equal(part.states[start : start + length], states[first : first + length])
            assert length == LENGTHS[number] and (carry == carries[number]).all()
    assert sorted(seen[: len(LENGTHS)]) == [*range(len(LENGTHS))] == sorted(seen[len(LENGTHS) :])

"""DQN's targets, losses and gradients against slow NumPy, and its target network."""

import functools

import numpy as np
import pytest

from ga3c_tf.algorithms.q_learning.dqn import DQN
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.errors import UserError
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.tensorflow import keras

STATES, ACTIONS = 4, 3
RATES = Rates(0.01)


def config_of(**settings):
    usual = {"algorithm": "dqn", "seed": 1, "network": "mlp", "rmsprop_epsilon": 1e-2, "target_period": 3}
    return Config(**usual | settings)


def model_of(**settings):
    return DQN(config_of(**settings), EnvironmentSpec((STATES,), "float32", ACTIONS), seed=1)


def batch_of(size=16, scale=3.0):
    random = np.random.default_rng(0)
    return Batch(
        states=random.normal(size=(size, STATES)).astype(np.float32),
        next_states=random.normal(size=(size, STATES)).astype(np.float32),
        actions=random.integers(ACTIONS, size=size).astype(np.int32),
        returns=random.normal(0, scale, size).astype(np.float32),
        discounts=random.choice([0.0, 0.9, 0.81], size).astype(np.float32),
        weights=random.uniform(0.1, 1, size).astype(np.float32),
        versions=np.zeros(size, np.int64),
        agents=np.zeros(size, np.int64),
        ages=np.arange(size),
    )


def q_of(network, states):
    return network(states).numpy().astype(np.float64)


def slow_errors(model, batch, double):
    """The difference of each target and its value, step by step."""
    errors = []
    for row in range(len(batch)):
        after = batch.next_states[row : row + 1]
        of_target = q_of(model.target, after)[0]
        best = q_of(model.network if double else model.target, after)[0].argmax()
        target = batch.returns[row] + batch.discounts[row] * of_target[best]
        errors.append(target - q_of(model.network, batch.states[row : row + 1])[0][batch.actions[row]])
    return np.array(errors)


def changed(model):
    """Gives the target network other weights than the network."""
    random = np.random.default_rng(5)
    for weight in model.target.weights:
        weight.assign(random.normal(0, 0.5, weight.shape))
    return model


@pytest.mark.parametrize("dueling", [True, False])
@pytest.mark.parametrize("double", [True, False])
def test_errors_and_losses_are_those_of_a_loop(double, dueling):
    model, batch = changed(model_of(double_q=double, dueling=dueling)), batch_of()
    expected = slow_errors(model, batch, double)
    value = q_of(model.network, batch.states)[np.arange(len(batch)), batch.actions].sum()
    [result] = model.train([batch], RATES)
    np.testing.assert_allclose(result.errors, expected, rtol=1e-4, atol=1e-5)
    huber = [0.5 * e * e if abs(e) <= 1 else abs(e) - 0.5 for e in expected]
    metrics = {"q_loss": (batch.weights * huber).sum(), "q_value": value, "sample_age": batch.ages.sum()}
    assert result.metrics == pytest.approx(metrics, rel=1e-4)
    assert (np.abs(expected) > 1).any() and (np.abs(expected) < 1).any()
    assert result.applied and result.version == 1


def test_the_gradient_is_that_of_the_weighted_clipped_errors():
    """The bias of the last layer: its gradient is the sum of the errors of its action, clipped to 1."""
    model, batch = changed(model_of(dueling=False, rmsprop_decay=0.0, loss_reduction="mean")), batch_of()
    expected = slow_errors(model, batch, double=True)
    bias = model.network.trainable_variables[-1]
    before = bias.numpy()
    model.train([batch], RATES)
    for action in range(ACTIONS):
        here = batch.actions == action
        gradient = -(batch.weights * expected.clip(-1, 1))[here].sum() / len(batch)
        step = -RATES.learning_rate * gradient / np.sqrt(gradient**2 + 1e-2)
        assert bias.numpy()[action] - before[action] == pytest.approx(step, rel=1e-3)


def test_the_target_network_is_a_copy_from_time_to_time():
    model = model_of(target_period=3)
    batch = batch_of()
    same = []
    for _ in range(7):
        model.train([batch], RATES)
        pairs = zip(model.target.weights, model.network.weights, strict=True)
        same.append(all((target.numpy() == weight.numpy()).all() for target, weight in pairs))
    assert same == [False, False, True, False, False, True, False]


def test_the_target_network_begins_with_weights_that_were_loaded():
    model = changed(model_of())
    model.load()
    for target, weight in zip(model.target.weights, model.network.weights, strict=True):
        np.testing.assert_array_equal(target.numpy(), weight.numpy())


def test_a_checkpoint_brings_the_target_network_back():
    """After four updates it is that of the third."""
    before = model_of(target_period=3)
    after = changed(model_of(target_period=3))
    for _ in range(4):
        before.train([batch_of()], RATES)
    for group, variables in after.checkpoint_objects().items():
        for variable, saved in zip(variables, before.checkpoint_objects()[group], strict=True):
            variable.assign(saved)
    after.load()
    for target, saved in zip(after.target.weights, before.target.weights, strict=True):
        np.testing.assert_array_equal(target.numpy(), saved.numpy())
    assert any(
        (target.numpy() != weight.numpy()).any()
        for target, weight in zip(after.target.weights, after.network.weights, strict=True)
    )


@functools.cache
def same_network_again(shape, dtype, actions):
    states = keras.Input(shape, dtype=dtype.name)
    value = keras.ops.squeeze(keras.layers.Dense(1)(states), -1)
    return keras.Model(states, (keras.layers.Dense(actions)(states), value))


def test_a_network_that_is_the_same_at_each_call_is_refused():
    """It would be its own target network."""
    with pytest.raises(UserError, match="a target network needs"):
        model_of(network="test_dqn:same_network_again")


def test_an_update_with_an_infinite_target_is_skipped():
    model = model_of()
    batch = batch_of()
    weights = [weight.numpy() for weight in model.network.weights]
    batch.returns[3] = np.inf
    [result] = model.train([batch], RATES)
    assert not result.applied and result.version == 0
    for weight, before in zip(model.network.weights, weights, strict=True):
        np.testing.assert_array_equal(weight.numpy(), before)


def steep_network(shape, dtype, actions):
    """The gradient of a root is infinite at 0."""
    states = keras.Input(shape, dtype=dtype.name)
    hidden = keras.layers.Dense(actions)(states)
    value = keras.ops.squeeze(keras.layers.Dense(1)(states), -1)
    return keras.Model(states, (keras.ops.sqrt(keras.ops.abs(hidden - hidden)), value))


def test_an_update_with_an_infinite_gradient_is_skipped():
    [result] = model_of(network="test_dqn:steep_network").train([batch_of()], RATES)
    assert np.isfinite(result.metrics["q_loss"]) and not result.applied


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        ("states", np.zeros((16, STATES + 1), np.float32), r"states are float32 \(16, 5\)"),
        ("next_states", np.zeros((1, STATES), np.float32), "16 states need as many next_states"),
        ("returns", np.zeros(1, np.float32), "16 states need as many returns"),
    ],
)
def test_states_and_columns_of_a_wrong_shape_are_refused(name, column, message):
    model = model_of()
    batch = batch_of()
    setattr(batch, name, column)
    with pytest.raises(ValueError, match=message):
        model.train([batch], RATES)
    with pytest.raises(ValueError, match="the model takes float32"):
        model.predict(np.zeros((2, STATES + 1), np.float32))

"""Q-learning against slow NumPy and known answers."""

import math

import numpy as np
import pytest
from checks import batch_of, update

from ga3c_tf.algorithms.q_learning.pqn import PQN
from ga3c_tf.config import Config
from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.columns import SegmentEnd, Step
from ga3c_tf.experience.contracts import Prediction
from ga3c_tf.experience.segment import Segment
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.layer_norm import LayerNorm
from ga3c_tf.model.tensorflow import keras, tf

SIZE = 7
ACTIONS = 3
SPEC = EnvironmentSpec((4,), "float32", ACTIONS)
PLAIN = {"algorithm": "pqn", "rmsprop_epsilon": 1e6}
"""RMSProp steps by 1e-3 * learning rate * gradient."""


def pqn(**settings):
    return PQN(Config(network="mlp", **PLAIN, **settings), SPEC, seed=1)


def a_batch(seed=0):
    random = np.random.default_rng(seed)
    states = random.normal(size=(SIZE, 4)).astype(np.float32)
    actions = random.integers(ACTIONS, size=SIZE).astype(np.int32)
    return batch_of(states, actions, random.normal(0, 2, SIZE).astype(np.float32))


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_the_loss_and_its_gradient_are_those_of_the_squared_errors(reduction):
    model = pqn(loss_reduction=reduction)
    batch = a_batch()
    q_values = model.network(batch.states).numpy()
    head = model.network.get_layer("logits_p").bias
    before = head.numpy()
    result = update(model, batch, 100.0, 0.0)

    loss, of_taken, gradient = 0.0, 0.0, np.zeros(ACTIONS)
    for row, action, target in zip(q_values, batch.actions, batch.returns, strict=True):
        loss += 0.5 * (target - row[action]) ** 2
        of_taken += row[action]
        gradient[action] -= target - row[action]
    assert result.metrics["q_loss"] == pytest.approx(loss, rel=1e-5)
    assert result.metrics["q_value"] == pytest.approx(of_taken, rel=1e-5)
    states = SIZE if reduction == "mean" else 1
    np.testing.assert_allclose(head.numpy() - before, -0.1 * gradient / states, rtol=1e-3)


def test_the_global_clip_bounds_the_step():
    model = pqn(grad_clip_global=1e-3)
    before = [weight.numpy() for weight in model.network.trainable_variables]
    update(model, a_batch(), 1000.0, 0.0)
    steps = [now.numpy() - weight for now, weight in zip(model.network.weights, before, strict=True)]
    assert math.sqrt(sum(np.square(step).sum() for step in steps)) == pytest.approx(1e-3, rel=1e-2)


def test_the_policy_is_greedy_and_its_value_the_highest_q():
    model = pqn()
    states = a_batch().states
    q_values = model.network(states).numpy()
    prediction = model.predict(states)
    np.testing.assert_array_equal(prediction.policy, np.eye(ACTIONS)[q_values.argmax(axis=1)])
    np.testing.assert_allclose(prediction.value, q_values.max(axis=1), rtol=1e-6)


def test_an_update_that_is_not_finite_changes_nothing():
    model = pqn()
    batch = a_batch()
    before = [weight.numpy() for weight in model.network.weights]
    for bad in (np.nan, np.inf, 1e30):
        batch.returns = np.where(np.arange(SIZE) == 3, np.float32(bad), batch.returns)
        result = update(model, batch, 1.0, 0.0)
        assert (result.version, result.applied) == (0, False)
        assert not np.isfinite(result.metrics["q_loss"])
    for weight, now in zip(before, model.network.weights, strict=True):
        np.testing.assert_array_equal(weight, now.numpy())
    assert update(model, a_batch(), 1.0, 0.0).version == 1


def test_epsilon_mixes_the_uniform_policy_into_the_greedy_one():
    greedy = np.eye(4, dtype=np.float32)[[2, 0]]
    mixed = Prediction(greedy, np.zeros(2, np.float32), 5).exploring(np.array([0.2, 0.4], np.float32))
    np.testing.assert_allclose(mixed.policy, [[0.05, 0.05, 0.85, 0.05], [0.7, 0.1, 0.1, 0.1]], rtol=1e-6)
    assert mixed.policy.dtype == np.float32 and mixed.version == 5


def test_epsilon_falls_linearly_and_is_nothing_to_an_actor_critic():
    config = Config(algorithm="pqn", epsilon=1.0, epsilon_end=0.2, epsilon_steps=100)
    assert [config.annealed(steps, 9.0).epsilon for steps in (0, 50, 100, 10**6)] == pytest.approx(
        [1.0, 0.6, 0.2, 0.2]
    )
    assert Config().annealed(0, 0.0).epsilon == 0


def test_the_returns_are_q_of_lambda():
    """The mean of the returns of all lengths n, weighted by (1 - lambda) lambda^(n - 1)."""
    gamma, lam, bootstrap = 0.9, 0.65, 7.0
    config = Config(algorithm="pqn", gamma=gamma, gae_lambda=lam, t_max=5, num_agents=1)
    memory = RolloutBuffers(config, SPEC)
    segment = Segment(memory, 0, np.zeros(4, np.float32))
    rewards, best = [1.0, -2.0, 0.5, 3.0], [4.0, -1.0, 2.0, 5.0]
    for reward, value in zip(rewards, best, strict=True):
        segment.append(Step(0, reward, value, -1.0, 0), np.zeros(4, np.float32))
    segment.close(SegmentEnd(False, False, bootstrap, 0), config)

    after = [*best[1:], bootstrap]
    for step in range(4):
        returns = []
        for last in range(step, 4):
            total = sum(gamma ** (k - step) * rewards[k] for k in range(step, last + 1))
            returns.append(total + gamma ** (last + 1 - step) * after[last])
        weights = [(1 - lam) * lam**n for n in range(len(returns))]
        weights[-1] = lam ** (len(returns) - 1)
        assert memory.returns[0, step] == pytest.approx(np.dot(weights, returns), rel=1e-5)


@pytest.mark.parametrize(
    ("network", "shape", "dtype", "hidden"),
    [("mlp", (4,), "float32", 2), ("minatar", (10, 10, 4), "float32", 2), ("small", (84, 84, 4), "uint8", 3)],
)
def test_every_hidden_layer_is_normalized_before_its_activation(network, shape, dtype, hidden):
    config = Config(network=network, algorithm="pqn")
    layers = PQN(config, EnvironmentSpec(shape, dtype, ACTIONS), seed=0).network.layers
    kinds = [type(layer) for layer in layers if layer.name.split("_")[0] not in ("flat1", "cast", "rescale")]
    normalized = [place for place, kind in enumerate(kinds) if kind is LayerNorm]
    assert len(normalized) == hidden
    for place in normalized:
        assert kinds[place - 1] in (keras.layers.Conv2D, keras.layers.Dense)
        assert kinds[place + 1] is keras.layers.Activation
    assert layers[-1].name == "logits_p"


@pytest.mark.parametrize("dtype_policy", ["float32", "mixed_bfloat16"])
def test_layer_normalization_and_its_gradients_are_keras(dtype_policy):
    layer = LayerNorm(epsilon=1e-5, dtype=dtype_policy)
    states = tf.constant(np.random.default_rng(0).normal(3, 2, (5, 4, 6)), layer.compute_dtype)
    layer(states)
    layer.set_weights([np.linspace(-1, 2, 6), np.linspace(0, 1, 6)])
    found = {}
    for name, normalize in {"ours": layer, "keras": layer.built_in()}.items():
        with tf.GradientTape() as tape:
            tape.watch(states)
            outputs = normalize(states)
            total = tf.reduce_sum(tf.sin(tf.cast(outputs, tf.float32)))
        of_weights = [variable.value for variable in normalize.trainable_variables]
        found[name] = [outputs, *tape.gradient(total, [states, *of_weights])]
    for ours, theirs in zip(found["ours"], found["keras"], strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(
            tf.cast(ours, tf.float32), tf.cast(theirs, tf.float32), rtol=1e-5, atol=1e-5
        )


def test_a_users_network_gives_q_by_its_first_output(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "import keras\n"
        "def network(shape, dtype, actions):\n"
        "    states = keras.Input(shape)\n"
        "    value = keras.ops.squeeze(keras.layers.Dense(1, name='v')(states), -1)\n"
        "    return keras.Model(states, (keras.layers.Dense(actions, name='q')(states), value))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    config = Config(network="mine:network", **PLAIN)
    model = PQN(config, SPEC, seed=0)
    batch = a_batch()
    before = model.network(batch.states).numpy()
    assert update(model, batch, 10.0, 0.0).applied
    assert np.abs(model.network(batch.states).numpy() - before).max() > 0


def embedding(shape, dtype, num_actions):
    """A user's network, of which the gradient of a layer is sparse."""
    states = keras.Input(shape, dtype=dtype)
    hidden = keras.layers.Flatten()(keras.layers.Embedding(5, 8)(states))
    values = keras.ops.squeeze(keras.layers.Dense(1)(hidden), -1)
    return keras.Model(states, (keras.layers.Dense(num_actions)(hidden), values))


def test_a_users_network_may_have_an_embedding():
    network = {"network": f"{__name__}:embedding"}
    model = PQN(Config(**PLAIN, **network), EnvironmentSpec((2,), "uint8", ACTIONS), seed=1)
    [table] = (weight for weight in model.network.trainable_variables if weight.path.endswith("embeddings"))
    before = table.numpy()
    batch = batch_of(np.array([[0, 3], [3, 3]], np.uint8), np.zeros(2, np.int32), np.ones(2, np.float32))
    assert update(model, batch, 100.0, 0.0).applied
    assert [bool(row.any()) for row in table.numpy() - before] == [True, False, False, True, False]

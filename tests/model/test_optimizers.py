"""RMSProp and Adam against NumPy: the fused kernels, the step on shared weights, and threads."""

import threading

import numpy as np
import pytest
import tensorflow as tf
from checks import batch_of, update

from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.config import Config
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.optimizers import Adam, RMSProp, clip_by_average_norm
from ga3c_tf.systems.a3c.adam import adam_step
from ga3c_tf.systems.a3c.shared_weights import BLOCK

EPSILON = 1e-3


class SlowRMSProp:
    def __init__(self, weights, decay, momentum, epsilon, centred):
        self.weights = [w.astype(np.float64) for w in weights]
        self.decay = decay
        self.momentum = momentum
        self.epsilon = epsilon
        self.centred = centred
        self.squares = [np.ones_like(w) for w in self.weights]
        self.moments = [np.zeros_like(w) for w in self.weights]
        self.means = [np.zeros_like(w) for w in self.weights]

    def apply(self, gradients, rate):
        slots = zip(self.weights, self.squares, self.moments, self.means, gradients, strict=True)
        for w, s, m, a, g in slots:
            s[...] = self.decay * s + (1 - self.decay) * g * g
            a[...] = self.centred * (self.decay * a + (1 - self.decay) * g)
            m[...] = self.momentum * m + rate * g / np.sqrt(s - a * a + self.epsilon)
            w -= m


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("decay", "momentum", "epsilon"), [(0.99, 0.0, 0.1), (0.9, 0.0, 0.001), (0.95, 0.9, 0.1)]
)
def test_follows_tensorflow_1(decay, momentum, epsilon, compiled, centred):
    rng = np.random.default_rng(0)
    start = [rng.normal(size=(3, 4)).astype(np.float32), rng.normal(size=5).astype(np.float32)]
    variables = [tf.Variable(w) for w in start]
    fast = RMSProp(variables, decay, momentum, epsilon, centred)
    slow = SlowRMSProp(start, decay, momentum, epsilon, centred)

    def apply(gradients, rate):
        fast.apply(gradients, rate)

    apply = tf.function(apply) if compiled else apply
    for step in range(5):
        gradients = [rng.normal(0, 3, w.shape).astype(np.float32) for w in start]
        rate = tf.constant(0.01 * (step + 1))
        apply([tf.constant(g) for g in gradients], rate)
        slow.apply(gradients, float(rate))
        for variable, expected in zip(variables, slow.weights, strict=True):
            np.testing.assert_allclose(variable, expected, rtol=1e-5, atol=1e-6)
    expected_slots = {"mean_square": slow.squares, "momentum": slow.moments}
    if centred:
        expected_slots["mean_gradient"] = slow.means
    assert list(fast.slots) == list(expected_slots)
    for name, slots in fast.slots.items():
        for slot, value in zip(slots, expected_slots[name], strict=True):
            np.testing.assert_allclose(slot, value, rtol=1e-5, atol=1e-6)


def test_first_step_is_that_of_a_mean_square_of_ones():
    variable = tf.Variable([0.0])
    RMSProp([variable], decay=0.99, epsilon=0.1).apply([tf.constant([1.0])], 1.0)
    np.testing.assert_allclose(variable, [-1 / np.sqrt(1.1)], rtol=1e-6)


def test_a_variable_without_gradient_is_left_alone():
    variables = [tf.Variable([1.0]), tf.Variable([1.0])]
    optimizer = RMSProp(variables, momentum=0.9)
    optimizer.apply([None, tf.constant([1.0])], 0.1)
    assert variables[0].numpy() == 1 and variables[1].numpy() != 1
    assert optimizer.slots["mean_square"][0].numpy() == 1


def test_too_few_gradients_are_refused():
    with pytest.raises(ValueError, match="zip"):
        RMSProp([tf.Variable([1.0]), tf.Variable([1.0])]).apply([tf.constant([1.0])], 0.1)


def test_threads_lose_no_step():
    variable = tf.Variable(tf.zeros(2000))
    # decay 1 keeps the mean square at one and epsilon 3 makes the root two: every step is exactly -0.5
    optimizer = RMSProp([variable], decay=1.0, epsilon=3.0)

    @tf.function
    def step():
        optimizer.apply([tf.ones(2000)], 1.0)

    threads = [threading.Thread(target=lambda: [step() for _ in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(variable, np.full(2000, -400.0))


def test_slots_come_back_from_a_checkpoint(tmp_path):
    def optimizer():
        return RMSProp([tf.Variable([1.0, 2.0])], momentum=0.5)

    first = optimizer()
    second = optimizer()
    first.apply([tf.constant([3.0, 4.0])], 0.1)
    path = tf.train.Checkpoint(optimizer=first).write(str(tmp_path / "c"))
    tf.train.Checkpoint(optimizer=second).read(path).assert_existing_objects_matched()
    for name in ("mean_square", "momentum"):
        np.testing.assert_array_equal(second.slots[name][0], first.slots[name][0])
        assert not np.array_equal(first.slots[name][0], optimizer().slots[name][0])


@pytest.mark.parametrize("scale", [0.001, 1.0, 100.0])
def test_clips_by_the_average_norm(scale):
    gradient = scale * np.random.default_rng(1).normal(size=(4, 6)).astype(np.float32)
    average = np.sqrt((gradient.astype(np.float64) ** 2).sum()) / gradient.size
    expected = gradient * 0.05 / max(average, 0.05)
    np.testing.assert_allclose(clip_by_average_norm(tf.constant(gradient), 0.05), expected, rtol=1e-5)


def test_clipping_keeps_no_gradient_and_zero():
    assert clip_by_average_norm(tf.zeros(3), 1.0).numpy().tolist() == [0, 0, 0]


def slow_adam(weight, gradients, rate):
    """Algorithm 1 of the paper, with epsilon where its more efficient form has it."""
    weight = weight.astype(np.float64)
    m = v = np.zeros_like(weight)
    for step, gradient in enumerate(gradients, 1):
        m = 0.9 * m + 0.1 * gradient
        v = 0.999 * v + 0.001 * gradient.astype(np.float64) ** 2
        weight = weight - rate * np.sqrt(1 - 0.999**step) / (1 - 0.9**step) * m / (np.sqrt(v) + EPSILON)
    return weight, m, v


@pytest.mark.parametrize("shape", [(3, 4), (BLOCK + 1,)], ids=str)
def test_both_steps_of_adam_are_the_slow_ones(shape):
    rng = np.random.default_rng(0)
    start = rng.normal(size=shape).astype(np.float32)
    gradients = rng.normal(0, 2, (4, *shape)).astype(np.float32)
    variable = tf.Variable(start)
    steps = tf.Variable(0, dtype=tf.int64)
    adam = Adam([variable], steps, EPSILON)

    @tf.function
    def step(gradient):
        with tf.control_dependencies(adam.apply([gradient], 0.01)):
            steps.assign_add(1)

    shared = [start.copy(), np.zeros(shape, np.float32), np.zeros(shape, np.float32)]
    for number, gradient in enumerate(gradients, 1):
        step(gradient)
        adam_step(*shared, gradient, 0.01, EPSILON, number)
    slots = [slots[0].numpy() for slots in adam.slots.values()]
    for expected, *both in zip(
        slow_adam(start, gradients, 0.01), [variable.numpy(), *slots], shared, strict=True
    ):
        for found in both:
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("steps", "times"), [(1, 31.6), (100, 3.24), (1000, 1.26)])
def test_the_epsilon_of_adam_counts_more_than_in_pytorch(steps, times):
    """PyTorch adds it after the bias of the second moment is corrected; --adam-epsilon's help says this."""
    gradients = np.full((steps, 1), 1e-4, np.float32)
    before = slow_adam(np.zeros(1), gradients[:-1], 1.0)[0]
    weight, m, v = slow_adam(np.zeros(1), gradients, 1.0)
    first = m / (1 - 0.9**steps)
    second = v / (1 - 0.999**steps)
    np.testing.assert_allclose(before - weight, first / (np.sqrt(second) + times * EPSILON), rtol=2e-3)


def test_a_checkpoint_of_the_model_continues_bit_for_bit(tmp_path):
    def model(seed):
        return Model(Config(network="mlp", optimizer="adam"), EnvironmentSpec((4,), "float32", 3), seed)

    def train(model, seed):
        rng = np.random.default_rng(seed)
        states = rng.normal(size=(6, 4)).astype(np.float32)
        actions = rng.integers(0, 3, 6).astype(np.int32)
        return update(model, batch_of(states, actions, rng.normal(0, 2, 6).astype(np.float32)), 0.01, 0.1)

    first = model(0)
    second = model(1)
    for seed in range(3):
        train(first, seed)
    assert set(first.checkpoint_objects()) == {"weights", "version", "first_moment", "second_moment"}
    path = tf.train.Checkpoint(**first.checkpoint_objects()).write(str(tmp_path / "checkpoint"))
    tf.train.Checkpoint(**second.checkpoint_objects()).read(path).assert_existing_objects_matched()
    assert train(first, 7) == train(second, 7)
    for one, other in zip(first.network.weights, second.network.weights, strict=True):
        np.testing.assert_array_equal(one, other)

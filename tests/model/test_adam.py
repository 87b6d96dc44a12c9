"""Adam against its formula in NumPy: the fused kernel, the step on shared weights, and a checkpoint."""

import numpy as np
import pytest
import tensorflow as tf
from checks import batch_of, update

from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.config import Config
from ga3c_tf.model.adam import Adam
from ga3c_tf.systems.a3c.adam import adam_step
from ga3c_tf.systems.a3c.shared_weights import BLOCK

EPSILON = 1e-3


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
def test_both_steps_are_the_slow_ones(shape):
    rng = np.random.default_rng(0)
    start = rng.normal(size=shape).astype(np.float32)
    gradients = rng.normal(0, 2, (4, *shape)).astype(np.float32)
    variable, steps = tf.Variable(start), tf.Variable(0, dtype=tf.int64)
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
def test_epsilon_counts_more_than_in_pytorch(steps, times):
    """PyTorch adds it after the bias of the second moment is corrected; --adam-epsilon's help says this."""
    gradients = np.full((steps, 1), 1e-4, np.float32)
    before = slow_adam(np.zeros(1), gradients[:-1], 1.0)[0]
    weight, m, v = slow_adam(np.zeros(1), gradients, 1.0)
    first, second = m / (1 - 0.9**steps), v / (1 - 0.999**steps)
    np.testing.assert_allclose(before - weight, first / (np.sqrt(second) + times * EPSILON), rtol=2e-3)


def test_a_checkpoint_of_the_model_continues_bit_for_bit(tmp_path):
    def model(seed):
        return Model(Config(network="mlp", optimizer="adam"), (4,), np.float32, 3, seed)

    def train(model, seed):
        rng = np.random.default_rng(seed)
        states, actions = rng.normal(size=(6, 4)).astype(np.float32), rng.integers(0, 3, 6).astype(np.int32)
        return update(model, batch_of(states, actions, rng.normal(0, 2, 6).astype(np.float32)), 0.01, 0.1)

    first, second = model(0), model(1)
    for seed in range(3):
        train(first, seed)
    assert set(first.checkpoint_objects()) == {"weights", "version", "first_moment", "second_moment"}
    path = tf.train.Checkpoint(**first.checkpoint_objects()).write(str(tmp_path / "checkpoint"))
    tf.train.Checkpoint(**second.checkpoint_objects()).read(path).assert_existing_objects_matched()
    assert train(first, 7) == train(second, 7)
    for one, other in zip(first.network.weights, second.network.weights, strict=True):
        np.testing.assert_array_equal(one, other)

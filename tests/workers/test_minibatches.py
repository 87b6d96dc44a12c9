"""Minibatches: each step once an epoch, columns kept together, and the batch itself where there are none."""

import numpy as np
import pytest

from ga3c_tf.config import Config
from ga3c_tf.experience.columns import Batch
from ga3c_tf.workers.minibatches import Minibatches


def batch_of(size):
    numbers = np.arange(size)
    return Batch(states=np.stack([numbers, -numbers], axis=1), actions=numbers, lengths=np.array([size]))


@pytest.mark.parametrize(
    ("size", "minibatch_size", "sizes"),
    [(256, 128, [128, 128]), (271, 128, [136, 135]), (100, 128, [100]), (7, 0, [7]), (300, 128, [150, 150])],
)
def test_every_epoch_has_each_step_once_in_parts_of_nearly_equal_size(size, minibatch_size, sizes):
    minibatches = Minibatches(Config(seed=1, epochs=3, clip_ratio=0.1, minibatch_size=minibatch_size))
    parts = list(minibatches.of(batch_of(size)))
    assert [len(part) for part in parts] == 3 * sizes
    orders = [
        np.concatenate([part.actions for part in parts[start : start + len(sizes)]])
        for start in (0, len(sizes))
    ]
    for order in orders:
        assert sorted(order.tolist()) == list(range(size))
    assert not np.array_equal(*orders)
    for part in parts:
        np.testing.assert_array_equal(part.states, np.stack([part.actions, -part.actions], axis=1))
        assert not hasattr(part, "lengths")


def test_whole_segments_are_cut_into_parts_of_nearly_equal_numbers_of_steps():
    lengths = np.array([128] * 7 + [5] * 26)
    numbers = np.arange(lengths.sum())
    batch = Batch(actions=numbers, lengths=lengths)
    minibatches = Minibatches(Config(seed=1, epochs=3, clip_ratio=0.1, minibatch_size=256))
    parts = list(minibatches.of(batch, whole_segments=True))
    assert len(parts) == 3 * 4 and max(abs(len(part) - len(numbers) / 4) for part in parts) <= 128
    for part in parts:
        segments = np.split(part.actions, np.cumsum(part.lengths)[:-1])
        assert all((np.diff(segment) == 1).all() for segment in segments)
    for epoch in range(3):
        seen = np.concatenate([part.actions for part in parts[4 * epoch : 4 * epoch + 4]])
        np.testing.assert_array_equal(np.sort(seen), numbers)


def test_the_seed_decides_the_order():
    def order(seed):
        parts = Minibatches(Config(seed=seed, minibatch_size=10)).of(batch_of(50))
        return np.concatenate([part.actions for part in parts]).tolist()

    assert order(1) == order(1) != order(2)


def test_without_minibatches_the_batch_itself_is_trained_on():
    batch = batch_of(5)
    assert [part is batch for part in Minibatches(Config()).of(batch)] == [True]
    a3c = Config(system="a3c", epochs=3, clip_ratio=0.1, minibatch_size=2)
    assert [part is batch for part in Minibatches(a3c).of(batch)] == [True]

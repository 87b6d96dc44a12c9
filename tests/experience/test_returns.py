"""The returns against slow sums, and against what the authors' agents sent to training."""

import numpy as np
import pytest
from batches import SEGMENTS

from ga3c_tf.experience.returns import lambda_returns, nstep_returns


def slow_returns(rewards, bootstrap, gamma):
    n = len(rewards)
    return [
        sum(gamma ** (k - i) * rewards[k] for k in range(i, n)) + gamma ** (n - i) * bootstrap
        for i in range(n)
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 5, 50])
def test_returns_are_the_discounted_sums(n, dtype):
    rewards = np.random.default_rng(n).normal(size=n).astype(dtype)
    found = nstep_returns(rewards, bootstrap=1.7, gamma=0.9)
    assert found.dtype == np.float32 and found.shape == (n,)
    np.testing.assert_allclose(
        found, slow_returns(rewards.astype(np.float64), 1.7, 0.9), rtol=1e-6, atol=1e-7
    )


# Of shared/golden/rollouts.json: clipped rewards, bootstrap (0 at an episode's end), returns; gamma 0.99.
AUTHORS = [
    ([1, 0, -0.5, 0, -1], -0.599, [-1.0202890498901, -2.04069600999, -2.061309101, -1.5770799, -1.59301]),
    (
        [0.5, 0, 0, -0.5, 0.5],
        0.836,
        [1.2901761867163999, 0.7981577643599999, 0.8062199639999998, 0.8143635999999999, 1.32764],
    ),
    ([-0.5], 0.0, [-0.5]),
    ([-0.5, -0.5, 1, 1], 0.0, [0.9553989999999999, 1.4701, 1.99, 1.0]),
]


@pytest.mark.parametrize(("rewards", "bootstrap", "returns"), AUTHORS)
def test_the_authors_segments(rewards, bootstrap, returns):
    np.testing.assert_allclose(
        nstep_returns(np.array(rewards, np.float64), bootstrap, 0.99), returns, rtol=1e-6
    )


def test_no_rewards_give_no_returns():
    assert nstep_returns(np.zeros(0, np.float32), 3.0, 0.99).shape == (0,)


def test_gamma_zero_keeps_the_rewards_and_one_sums_them():
    rewards = np.array([1, 2, 3], np.float32)
    assert nstep_returns(rewards, 10, 0).tolist() == [1, 2, 3]
    assert nstep_returns(rewards, 10, 1).tolist() == [16, 15, 13]


def test_the_rewards_are_left_alone():
    rewards = np.ones(3, np.float32)
    nstep_returns(rewards, 5, 0.5)
    assert rewards.tolist() == [1, 1, 1]


def test_the_bootstrap_may_be_a_numpy_scalar():
    assert nstep_returns(np.zeros(2), np.float32(4), 0.5).tolist() == [1, 2]


@pytest.mark.parametrize("segment", SEGMENTS, ids=lambda segment: str(segment["seed"]))
def test_lambda_returns_minus_values_are_the_generalized_advantages(segment):
    """The reference is the discounted sum of the one-step errors, not a recursion."""
    values = np.array(segment["values"])
    arguments = segment["rewards"], values, segment["bootstrap"], segment["gamma"]
    found = lambda_returns(*arguments, segment["gae_lambda"])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found - values, segment["gae"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        lambda_returns(*arguments, 1.0), segment["nstep_returns"], rtol=1e-5, atol=1e-6
    )


def test_lambda_zero_looks_one_step_ahead():
    found = lambda_returns([1, 2, 3], [10, 20, 30], bootstrap=40, gamma=0.5, gae_lambda=0)
    assert found.tolist() == [1 + 10, 2 + 15, 3 + 20]
    assert lambda_returns([], [], 3.0, 0.99, 0.95).shape == (0,)

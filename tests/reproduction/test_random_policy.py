"""When runs have left the random policy: how often chance is taken for it, and what scatter does."""

import numpy as np
import pytest

from ga3c_tf.reproduce.measures.random_policy import (
    RANDOM_POLICY,
    RandomPolicy,
    has_left_random,
    random_policy_of,
)

POLICY = RandomPolicy(0.5, 1.0, 1000)


def test_the_random_policy_has_mean_and_deviation_of_its_episodes():
    assert random_policy_of([1.0, 2.0, 3.0]) == RandomPolicy(2.0, 1.0, 3)
    assert random_policy_of([1.0]) == RandomPolicy(1.0, 0.0, 1)


def test_every_seed_must_be_above_the_limit():
    """Of 100 episodes it is 0.5 + 1.645 * sqrt(1 / 100 + 1 / 1000) = 0.673."""
    assert has_left_random([0.68, 0.7, 0.9], 100, POLICY)
    assert not has_left_random([0.66, 5.0, 9.0], 100, POLICY)
    assert not has_left_random([0.68, 0.7, 0.9], 20, POLICY)  # the mean of fewer episodes is less sure


def test_seeds_that_learned_different_amounts_have_left_it():
    """A t interval of these three scores would begin below 0: MinAtar Seaquest, tuned."""
    assert has_left_random([69.3, 96.7, 17.1], 100, RANDOM_POLICY["minatar_seaquest"])


def test_fewer_than_three_seeds_or_an_unknown_policy_close_nothing():
    assert has_left_random([0.1, 0.2], 100, POLICY)
    assert has_left_random([0.1, 0.2, 0.1], 100, None)


@pytest.mark.parametrize("episodes", [30, 100, 1000])
def test_runs_that_play_at_random_seldom_seem_to_have_left_it(episodes):
    """Scores as skewed as MinAtar's: most episodes score nothing."""
    rng = np.random.default_rng(0)

    def mean(count):
        return rng.geometric(0.7, count).mean() - 1

    wrong = [
        has_left_random(
            [mean(100) for _ in range(3)], 100, random_policy_of(rng.geometric(0.7, episodes) - 1.0)
        )
        for _ in range(600)
    ]
    assert np.mean(wrong) < 0.05

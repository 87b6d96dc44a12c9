"""The mean and variance of states under the random policy, against NumPy on all states at once."""

import itertools

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from ga3c_tf.config import Config
from ga3c_tf.environments import statistics
from ga3c_tf.environments.statistics import observation_statistics
from ga3c_tf.errors import UserError


class Recorded(gymnasium.Env):
    """Numbers of very different sizes, in episodes of seven steps; it keeps all states that it has shown."""

    observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = spaces.Discrete(4)
    shown: list = []

    def _state(self):
        state = np.array([5.0, 1e3 * self.np_random.normal(), self._step], np.float32)
        Recorded.shown.append(state)
        return state

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self._step = 0
        return self._state(), {}

    def step(self, action):
        assert action in self.action_space
        self._step += 1
        return self._state(), 0.0, self._step % 14 == 7, self._step % 14 == 0, {}


@pytest.fixture(scope="module")
def config():
    gymnasium.register("Recorded-v0", Recorded)
    yield Config(env_id="Recorded-v0", seed=3)
    gymnasium.registry.pop("Recorded-v0")


def test_they_are_those_of_all_states(config):
    Recorded.shown.clear()
    mean, variance = observation_statistics(config, steps=100)
    # The last state of an episode has no step, so it is not looked at.
    kept = np.array([state for state in Recorded.shown if state[2] < 7][:100], np.float64)
    np.testing.assert_allclose(mean, kept.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(variance, kept.var(axis=0), rtol=1e-4, atol=1e-9)
    assert variance[0] == 0 and mean.dtype == variance.dtype == np.float32


def test_an_observation_that_is_not_finite_is_one_line(config, monkeypatch):
    monkeypatch.setattr(Recorded, "_state", lambda self: np.full(3, np.nan if self._step == 5 else 0.0))
    with pytest.raises(UserError, match=r"^Recorded-v0 does not work with random actions: .*not finite$"):
        observation_statistics(config, 50)


def test_the_seed_decides_them(config):
    first, again, other = (
        observation_statistics(each, 50)[0] for each in (config, config, config.replace(seed=4))
    )
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_a_slow_environment_says_so_and_is_not_measured_for_ever(config, monkeypatch):
    """Each step of this one takes a second."""
    seconds = itertools.count()
    monkeypatch.setattr(statistics.time, "monotonic", lambda: float(next(seconds)))
    Recorded.shown.clear()
    lines = []
    mean, _ = observation_statistics(config, say=lines.append)
    assert len(lines) == 6 and len(Recorded.shown) < 80
    assert lines[0].endswith("step 11 of 10,000 of the random policy; the training begins within 50 s")
    assert "mean and deviation are of 61 steps instead of 10,000" in lines[-1]
    expected = [state for state in Recorded.shown if state[2] < 7][:61]
    np.testing.assert_allclose(mean, np.mean(expected, axis=0), rtol=1e-5)


class Global(Recorded):
    """Draws its states from the global random generator."""

    def _state(self):
        return np.random.normal(size=3).astype(np.float32)  # noqa: NPY002


def test_the_seed_decides_them_if_the_environment_uses_the_global_generator():
    gymnasium.register("Global-v0", Global)
    before = np.random.get_state()[1]  # noqa: NPY002
    first, again, other = (
        observation_statistics(Config(env_id="Global-v0", seed=seed), 50)[0] for seed in (3, 3, 4)
    )
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    gymnasium.registry.pop("Global-v0")


def test_screens_are_measured_pixel_by_pixel():
    mean, variance = observation_statistics(Config(env_id="ALE/Pong-v5", seed=1), steps=200)
    assert mean.shape == variance.shape == (84, 84, 4) and 50 < mean.mean() < 150
    assert 0 < (variance > 0).mean() < 0.5  # most of the screen never changes, in any frame of the stack
    np.testing.assert_allclose(mean[..., 0], mean[..., 3], atol=5)

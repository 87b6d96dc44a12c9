"""The environments of a user's program: Gymnasium's own checker and wrappers, on all families."""

import copy
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces, wrappers
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

from ga3c_tf.config import Config
from ga3c_tf.environments.environment import make_environment
from ga3c_tf.environments.public import PublicEnvironment
from ga3c_tf.plugins import name_of


class Drawn(gymnasium.Env):
    """A user's environment: observations drawn from the space, in pictures too."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}

    def __init__(self, space, render_mode=None):
        self.observation_space = copy.deepcopy(space)
        self.action_space = spaces.Discrete(3, start=2)
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(int(self.np_random.integers(2**31)))
        return self.observation_space.sample(), {}

    def step(self, action):
        assert action in self.action_space
        return self.observation_space.sample(), float(action), False, False, {}

    def render(self):
        return np.zeros((8, 8, 3), np.uint8)


SPACES = {
    "screens": spaces.Box(0, 255, (40, 48, 3), np.uint8),
    "stacked screens": spaces.Box(0, 255, (4, 40, 48, 3), np.uint8),
    "planes": spaces.Box(0, 1, (8, 8, 3), np.bool_),
    "unbounded": spaces.Box(-np.inf, np.inf, (3,), np.float64),
    "integers": spaces.Box(-5, 2**40, (3,), np.int64),
    "discrete": spaces.Discrete(4, start=-1),
    "dict": spaces.Dict(
        a=spaces.Box(0, 255, (5, 5), np.uint8), b=spaces.Tuple([spaces.Discrete(3), spaces.Box(0, 1)])
    ),
    "tuple": spaces.Tuple([spaces.MultiBinary(3), spaces.MultiDiscrete([2, 3])]),
}


def drawn(name):
    def make(render_mode=None):
        return Drawn(SPACES[name], render_mode)

    return Config(env_id=name_of(make))


CONFIGS = {
    "Pong": Config(noop_max=5),
    "nvlabs": Config(env_id="ALE/Breakout-v5", preprocessing="nvlabs", frame_stack=2),
    "lives": Config(env_id="ALE/Breakout-v5", terminal_on_life_loss=True),
    "MinAtar": Config(env_id="MinAtar/Breakout-v1"),
    "CartPole": Config(env_id="CartPole-v1"),
    "Acrobot": Config(env_id="Acrobot-v1"),
    "Blackjack": Config(env_id="Blackjack-v1"),
    "CliffWalking": Config(env_id="CliffWalking-v1"),
    **{name: drawn(name) for name in SPACES},
}


@pytest.fixture(autouse=True)
def no_display(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("SDL_AUDIODRIVER", "dummy")


def trajectory(env, steps=60):
    """Copies of what an episode of always the same actions returns, starting anew where it ends."""
    results = [env.reset(seed=3)[0].copy()]
    for number in range(steps):
        state, reward, terminated, truncated, _ = env.step(number * 7 % int(env.action_space.n))
        results += [state.copy(), reward, terminated, truncated]
        if terminated or truncated:
            results.append(env.reset()[0].copy())
    return results


def assert_equal(first, second):
    assert len(first) == len(second) and all(map(np.array_equal, first, second))


@pytest.mark.parametrize("name", CONFIGS)
def test_gymnasiums_checker_is_content(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(PublicEnvironment(CONFIGS[name], "rgb_array"))


@pytest.mark.parametrize("name", CONFIGS)
def test_the_spec_makes_the_same_environment(name):
    env = PublicEnvironment(CONFIGS[name])
    again = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    assert isinstance(again.unwrapped, PublicEnvironment)
    assert again.observation_space == env.observation_space and again.action_space == env.action_space
    assert_equal(trajectory(again), trajectory(env))


@pytest.mark.parametrize("name", CONFIGS)
def test_the_trajectories_are_those_of_the_agents(name):
    assert_equal(trajectory(PublicEnvironment(CONFIGS[name])), trajectory(make_environment(CONFIGS[name])))


@pytest.mark.parametrize("name", ["Pong", "nvlabs", "MinAtar", "CartPole", "screens"])
def test_wrappers_give_right_results(name):
    config = CONFIGS[name]
    plain = trajectory(PublicEnvironment(config))
    states = [value for value in plain[:21] if isinstance(value, np.ndarray)]

    def after_four(env):
        env.reset(seed=3)
        return [env.step(number * 7 % int(env.action_space.n))[0] for number in range(4)][-1]

    np.testing.assert_array_equal(
        after_four(wrappers.FrameStackObservation(PublicEnvironment(config), 3)), np.stack(states[2:5])
    )
    np.testing.assert_array_equal(
        after_four(wrappers.DelayObservation(PublicEnvironment(config), 2)), states[2]
    )

    sticky = wrappers.StickyAction(PublicEnvironment(config), 0.5)
    first = trajectory(sticky)
    assert_equal(first, trajectory(sticky))
    assert len(first) != len(plain) or not all(map(np.array_equal, first, plain))

    limited = wrappers.RecordEpisodeStatistics(wrappers.TimeLimit(PublicEnvironment(config), 5))
    limited = wrappers.Autoreset(limited)
    limited.reset(seed=3)
    results = [limited.step(number * 7 % int(limited.action_space.n)) for number in range(7)]
    assert [result[3] for result in results] == [False] * 4 + [True, False, False]
    assert results[4][4]["episode"]["l"] == 5
    assert results[4][4]["episode"]["r"] == sum(result[1] for result in results[:5])
    np.testing.assert_array_equal(np.stack([result[0] for result in results[:5]]), np.stack(states[1:6]))


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vectors_of_environments_give_the_same_states(mode):
    env = PublicEnvironment(Config(frame_stack=2))
    with_others = gymnasium.make_vec(env.spec, num_envs=2, vectorization_mode=mode)
    try:
        states, _ = with_others.reset(seed=[3, 4])
        np.testing.assert_array_equal(states[0], env.reset(seed=3)[0])
        for _ in range(5):
            states, *_ = with_others.step(np.array([1, 2]))
            np.testing.assert_array_equal(states[0], env.step(1)[0])
    finally:
        with_others.close()


def test_random_numbers_of_wrappers_are_not_those_of_the_environment():
    env = PublicEnvironment(CONFIGS["CartPole"])
    env.reset(seed=5)
    assert env.np_random.random() != np.random.default_rng(5).random() and env.np_random_seed == 5


def test_attributes_of_the_game_are_there():
    env = PublicEnvironment(CONFIGS["Pong"])
    assert env.get_action_meanings()[0] == "NOOP" and env.unwrapped.ale.lives() == 0
    assert not hasattr(PublicEnvironment(CONFIGS["CartPole"]), "ale")

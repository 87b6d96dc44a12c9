"""Environments against slow references, Gymnasium's own preprocessing and the authors' frames."""

import importlib.util
import itertools
import math
import subprocess
import sys
from pathlib import Path

import ale_py
import cv2
import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from ga3c_tf.config import Config
from ga3c_tf.environments import minatar
from ga3c_tf.environments.environment import (
    EnvironmentSpec,
    StateEnvironment,
    describe_environment,
    make_environment,
)
from ga3c_tf.environments.frames import AreaResize, stretch_and_resize
from ga3c_tf.environments.ids import atari_ids, resolve_env_id
from ga3c_tf.environments.states import state_reader
from ga3c_tf.errors import UserError
from ga3c_tf.plugins import name_of

DATA = Path(__file__).parents[1] / "data"
GOLDEN = np.load(DATA / "preprocess.npz")
ENV_IDS = ("ALE/Pong-v5", "CartPole-v1", "MinAtar/Breakout-v1")

NEEDS_BOX2D = pytest.mark.skipif(importlib.util.find_spec("Box2D") is None, reason="Box2D is not installed")


def settings(**values) -> Config:
    return Config(**values)


def play(env, actions, seed):
    """The copied states, rewards and ends of `actions`, starting anew with seed 7 where an episode ends."""
    states, rewards, ends = [env.reset(seed=seed)[0].copy()], [], []
    for action in actions:
        state, reward, terminated, truncated, _ = env.step(action)
        states.append(state.copy())
        rewards.append(reward)
        ends.append((terminated, truncated))
        if terminated or truncated:
            states.append(env.reset(seed=7)[0].copy())
    return np.array(states), rewards, ends


def random_actions(env, count, seed=0):
    return np.random.RandomState(seed).randint(env.action_space.n, size=count).tolist()


def raw_atari(game, seed, sticky=0.0):
    """The bare emulator, one raw frame per step, and its actions."""
    atari_ids()
    env = gymnasium.make(
        f"ALE/{game}-v5", frameskip=1, repeat_action_probability=sticky, obs_type="rgb"
    ).unwrapped
    env.reset(seed=seed)
    return env.ale, env.ale.getMinimalActionSet()


def area_resize(gray):
    """Area interpolation by its definition: the mean of the source pixels, weighted by the share covered."""

    def weights(size):
        edges = np.arange(85) * size / 84
        return (
            np.array(
                [
                    np.clip(
                        np.minimum(high, np.arange(1, size + 1)) - np.maximum(low, np.arange(size)), 0, None
                    )
                    for low, high in itertools.pairwise(edges)
                ]
            )
            * 84
            / size
        )

    return weights(gray.shape[0]) @ gray @ weights(gray.shape[1]).T


# ----------------------------------------------------------------------------------------------- Atari frames


@pytest.mark.parametrize("index", range(len(GOLDEN["names"])), ids=GOLDEN["names"].tolist())
def test_nvlabs_frames_are_the_authors(index):
    expected = np.rint((GOLDEN["processed"][index] + 1) * 128)
    difference = np.abs(stretch_and_resize(GOLDEN["frames"][index]) - expected)
    assert difference.max() <= 1
    assert difference.mean() < 0.1


@pytest.mark.parametrize("level", [0, 9, 255])
def test_constant_frame_becomes_black(level):
    assert not stretch_and_resize(np.full((210, 160), level, np.uint8)).any()
    assert not stretch_and_resize(np.full((210, 160, 3), level, np.uint8)).any()


def test_gray_frame_is_stretched_like_a_color_frame():
    gray = np.random.RandomState(0).randint(90, 120, (210, 160)).astype(np.uint8)
    result = stretch_and_resize(gray)
    assert (result.shape, result.dtype) == ((84, 84), np.uint8)
    # Whole gray levels come out of the weighted sum up to float rounding, so at most one level apart.
    assert np.abs(result - stretch_and_resize(np.repeat(gray[..., None], 3, 2)).astype(int)).max() <= 1
    assert result.min() < 80 and result.max() > 175


@pytest.mark.parametrize("preprocessing", ["standard", "nvlabs"])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_atari_spec(preprocessing, depth):
    config = settings(preprocessing=preprocessing, frame_stack=depth)
    assert describe_environment(config) == EnvironmentSpec((84, 84, depth), "uint8", 6, depth)
    env = make_environment(config)
    state, info = env.reset(seed=0)
    assert state in env.observation_space and info["lives"] == 0
    state, reward, terminated, truncated, _ = env.step(2)
    assert state in env.observation_space
    assert (type(reward), terminated, truncated) == (float, False, False)


def test_a_game_that_ends_before_its_first_step_is_refused():
    """Nobody serves for 3,100 frames of no-ops on Pong."""
    config = settings(preprocessing="nvlabs", frame_skip=100, frame_stack=32)
    with pytest.raises(
        UserError, match="ALE/Pong-v5 ends before its first step in 10 attempts; lower --frame-skip"
    ):
        describe_environment(config)


@pytest.mark.parametrize("skip", [1, 4])
def test_standard_is_maximum_of_last_two_frames_and_area_resize(skip):
    env = make_environment(settings(env_id="ALE/Breakout-v5", repeat_action_probability=0.0, frame_skip=skip))
    ale, actions = raw_atari("Breakout", seed=3)
    env.reset(seed=3)
    pooled_differs = False
    for action in [1, *random_actions(env, 30)]:
        newest = env.step(action)[0][..., -1]
        screens = []
        for _ in range(skip):
            ale.act(actions[action])
            screens.append(ale.getScreenRGB() @ np.array([0.299, 0.587, 0.114]))
        expected = area_resize(np.max(screens[-2:], axis=0))
        assert np.abs(newest - expected).max() <= 1.1
        pooled_differs |= bool(np.abs(expected - area_resize(screens[-1])).max() > 5)
    assert pooled_differs == (skip > 1)


@pytest.mark.parametrize("game", ["Breakout", "Pong"])
def test_standard_plays_as_gymnasium_does(game):
    """Frames, rewards and ends, with sticky actions, no-op starts and lost lives, step by step."""
    env = make_environment(settings(env_id=f"ALE/{game}-v5", noop_max=30, terminal_on_life_loss=True))
    base = gymnasium.make(f"ALE/{game}-v5", frameskip=1, obs_type="grayscale", repeat_action_probability=0.25)
    theirs = gymnasium.wrappers.AtariPreprocessing(base, noop_max=30, terminal_on_life_loss=True)
    actions = [1, *random_actions(env, 500)]
    frames, rewards, ends = play(env, actions, seed=11)
    their_frames, their_rewards, their_ends = play(theirs, actions, seed=11)
    assert rewards == their_rewards and ends == their_ends
    assert any(terminated for terminated, _ in ends) == (game == "Breakout")
    episode_ends = {i + 1 + sum(map(any, ends[:i])) for i, end in enumerate(ends) if any(end)}
    for index, (ours, expected) in enumerate(zip(frames[..., -1], their_frames, strict=True)):
        # Where a step is cut short theirs shows an older step's frames; ours the last one.
        assert index in episode_ends or np.array_equal(ours, expected), index


def test_nvlabs_takes_the_last_raw_frame():
    env = make_environment(settings(preprocessing="nvlabs", repeat_action_probability=0.0))
    ale, actions = raw_atari("Pong", seed=0)
    env.reset(seed=0)
    for _ in range(12):
        ale.act(actions[0])
    for action in random_actions(env, 60):
        newest = env.step(action)[0][..., -1]
        for _ in range(4):
            ale.act(actions[action])
        difference = np.abs(newest - stretch_and_resize(ale.getScreenRGB()).astype(int))
        assert difference.max() <= 2 and difference.mean() < 1


@pytest.mark.parametrize("preprocessing", ["standard", "nvlabs"])
@pytest.mark.parametrize("depth", [2, 3, 4, 6])
def test_newest_frame_is_last(preprocessing, depth):
    env = make_environment(settings(preprocessing=preprocessing, frame_stack=depth))
    before = env.reset(seed=0)[0].copy()
    for action in random_actions(env, 3 * depth):
        state = env.step(action)[0]
        assert np.array_equal(state[..., :-1], before[..., 1:])
        before = state.copy()
    assert not np.array_equal(state[..., -1], state[..., -2])


def test_standard_starts_with_the_first_frame_repeated():
    state, info = make_environment(settings()).reset(seed=0)
    assert info["episode_frame_number"] == 0
    assert all(np.array_equal(state[..., channel], state[..., 0]) for channel in range(4)) and state.any()


def test_nvlabs_starts_with_real_frames_of_noops():
    env = make_environment(settings(preprocessing="nvlabs", env_id="ALE/SpaceInvaders-v5"))
    state, info = env.reset(seed=0)
    assert info["episode_frame_number"] == 12
    ale, _ = raw_atari("SpaceInvaders", seed=0)
    for channel in range(4):
        expected = stretch_and_resize(ale.getScreenGrayscale())
        assert np.array_equal(state[..., channel], expected)
        for _ in range(4):
            ale.act(0)


# --------------------------------------------------------------------------------------------- Atari settings


@pytest.mark.parametrize("skip", [1, 3, 4])
def test_frame_skip_sets_raw_frames_per_step(skip):
    env = make_environment(settings(frame_skip=skip))
    env.reset(seed=0)
    for _ in range(5):
        info = env.step(0)[4]
    assert info["episode_frame_number"] == 5 * skip
    assert env.metadata["render_fps"] == 60 // skip


@pytest.mark.parametrize(("sticky", "equal"), [(0.0, True), (0.25, False)])
def test_sticky_actions_make_seeds_differ(sticky, equal):
    env = make_environment(settings(repeat_action_probability=sticky))
    actions = random_actions(env, 60)
    first, second = (play(env, actions, seed)[0] for seed in (1, 2))
    assert np.array_equal(first, second) is equal


def test_full_action_space():
    assert describe_environment(settings(full_action_space=True)).num_actions == 18


@pytest.mark.parametrize(("game", "first"), [("Backgammon", 2), ("VideoCheckers", 0)])
def test_games_without_a_noop_of_their_own_can_be_played(game, first):
    """The emulator has one for every game."""
    env = make_environment(settings(env_id=f"ALE/{game}-v5", noop_max=5, preprocessing="nvlabs"))
    assert "NOOP" not in env.get_action_meanings()
    assert 0 < env.reset(seed=0)[1]["episode_frame_number"] - first - 12 <= 5


@pytest.mark.parametrize("preprocessing", ["standard", "nvlabs"])
def test_noop_max_draws_a_start(preprocessing):
    config = settings(noop_max=10, preprocessing=preprocessing)
    env = make_environment(config)
    played = 0 if preprocessing == "standard" else 12
    starts = {env.reset(seed=None if start else 0)[1]["episode_frame_number"] - played for start in range(30)}
    assert starts <= set(range(1, 11)) and len(starts) > 4


@pytest.mark.parametrize("preprocessing", ["standard", "nvlabs"])
def test_terminal_on_life_loss(preprocessing):
    for ends in (True, False):
        env = make_environment(
            settings(
                env_id="ALE/Breakout-v5",
                terminal_on_life_loss=ends,
                frame_skip=4,
                preprocessing=preprocessing,
            )
        )
        lives = env.reset(seed=0)[1]["lives"]
        assert lives == 5
        for _ in range(300):
            _, _, terminated, truncated, info = env.step(1)
            if info["lives"] < lives:
                break
        assert (info["lives"], terminated, truncated) == (4, ends, False)


@pytest.mark.parametrize("preprocessing", ["standard", "nvlabs"])
def test_a_game_continues_after_a_lost_life_until_it_is_over(preprocessing):
    env = make_environment(
        settings(
            env_id="ALE/Breakout-v5", terminal_on_life_loss=True, preprocessing=preprocessing, noop_max=5
        )
    )
    _, begun = env.reset(seed=0)
    ends = []
    for action in itertools.cycle([1, 0, 2, 3]):
        state, _, terminated, _, info = env.step(action)
        if terminated:
            ends.append(info)
            last = state.copy()
            state, info = env.reset()
            if info["episode_frame_number"] != ends[-1]["episode_frame_number"]:
                break
            assert info == ends[-1] and np.array_equal(state, last)
    assert [end["lives"] for end in ends] == [4, 3, 2, 1, 0]
    assert np.diff([end["episode_frame_number"] for end in ends]).min() > 4
    assert info["lives"] == 5 and env.reset(seed=0)[1] == begun


def test_a_seed_begins_a_new_game_after_a_lost_life():
    env = make_environment(settings(env_id="ALE/Breakout-v5", terminal_on_life_loss=True))
    begun = env.reset(seed=0)
    first = begun[0].copy()
    while not env.step(1)[2]:
        pass
    state, info = env.reset(seed=0)
    assert np.array_equal(state, first) and info == begun[1] and not env.game_continues


def test_lives_of_the_last_episode_are_forgotten():
    env = make_environment(settings(env_id="ALE/Breakout-v5", terminal_on_life_loss=True))
    env.reset(seed=0)
    env._lives = 9  # stands for a game that gave extra lives
    started = env.reset()[1]["episode_frame_number"]
    _, _, terminated, _, info = env.step(0)
    assert (terminated, info["lives"], info["episode_frame_number"]) == (False, 5, started + 4)


def test_game_over_is_terminated():
    env = make_environment(settings(env_id="ALE/Breakout-v5"))
    env.reset(seed=0)
    for _ in range(2000):
        _, _, terminated, truncated, info = env.step(1)
        if terminated or truncated:
            break
    assert (terminated, truncated, info["lives"]) == (True, False, 0)


def test_a_start_in_which_the_game_ends_is_drawn_again():
    env = make_environment(settings(env_id="ALE/Breakout-v5", noop_max=100))
    env.ale.setInt("max_num_frames_per_episode", 50)
    for seed in range(5):
        info = env.reset(seed=seed)[1]
        assert info["episode_frame_number"] < 50 and not env.step(0)[2]


# ----------------------------------------------------------------------------------------------------- limits


def test_atari_time_limit_is_truncation():
    env = make_environment(settings())
    assert env.ale.getInt("max_num_frames_per_episode") == 108_000
    env.ale.setInt("max_num_frames_per_episode", 102)
    env.reset(seed=0)
    results = [env.step(0) for _ in range(26)]
    assert [result[2:4] for result in results] == [(False, False)] * 25 + [(False, True)]
    assert results[-1][4]["episode_frame_number"] == 102


def test_time_limit_wrapper_is_truncation():
    env = make_environment(settings(env_id="MountainCar-v0"))
    env.reset(seed=0)
    results = [env.step(1)[2:4] for _ in range(200)]
    assert results == [(False, False)] * 199 + [(False, True)]


# ----------------------------------------------------------------------------------------- other environments


@pytest.mark.parametrize(
    ("env_id", "shape", "dtype", "actions"),
    [
        ("CartPole-v1", (4,), "float32", 2),
        ("Acrobot-v1", (6,), "float32", 3),
        pytest.param("LunarLander-v3", (8,), "float32", 4, marks=NEEDS_BOX2D),
        ("MinAtar/Breakout-v1", (10, 10, 4), "uint8", 3),
        ("MinAtar/Breakout-v0", (10, 10, 4), "uint8", 6),
        ("CliffWalking-v1", (48,), "float32", 4),
        ("Blackjack-v1", (32 + 11 + 2,), "float32", 2),
    ],
)
def test_spec(env_id, shape, dtype, actions):
    config = settings(env_id=env_id)
    spec = describe_environment(config)
    assert spec == EnvironmentSpec(shape, dtype, actions)
    assert type(spec.num_actions) is int
    env = make_environment(config)
    for state in (env.reset(seed=0)[0], env.step(1)[0]):
        assert state in env.observation_space and (state.shape, state.dtype) == (shape, dtype)


def test_minatar_planes_are_zeros_and_ones():
    env = make_environment(settings(env_id="MinAtar/Breakout-v1"))
    state = env.reset(seed=0)[0]
    assert np.unique(state).tolist() == [0, 1]
    assert state.sum() == env.unwrapped.game.state().sum()


class Odd(gymnasium.Env):
    """Actions from 5 on; the observation holds the last one, in the space it is given."""

    def __init__(self, observation_space, action_space=None, render_mode=None):
        self.observation_space = observation_space
        self.action_space = action_space or spaces.Discrete(3, start=5)

    def observe(self, action):
        return np.full(self.observation_space.shape, action, self.observation_space.dtype)

    def reset(self, *, seed=None, options=None):
        return self.observe(0), {}

    def step(self, action):
        assert action in self.action_space
        return self.observe(action), np.float64(action), np.bool_(False), False, {}


@pytest.fixture
def odd():
    """A function registering Odd-v0 with given spaces, and taking it back afterwards."""

    def register(**kwargs):
        gymnasium.register("Ga3cTest/Odd-v0", entry_point=Odd, kwargs=kwargs, max_episode_steps=3)
        return settings(env_id="Ga3cTest/Odd-v0")

    yield register
    gymnasium.registry.pop("Ga3cTest/Odd-v0", None)


def box(shape, dtype, high=255):
    return spaces.Box(0, high, shape, dtype)


@pytest.mark.parametrize(
    ("space", "shape", "dtype", "seven"),
    [
        (box((48, 36), np.uint8), (48, 36, 1), "uint8", 7),
        (box((36, 48, 3), np.uint8), (36, 48, 3), "uint8", 7),
        (box((4, 36, 48), np.uint8), (36, 48, 4), "uint8", 7),
        (box((36, 48, 3), np.uint8, high=15), (36, 48, 3), "uint8", 17 * 7),
        (box((36, 48, 3), np.bool_, high=1), (36, 48, 3), "uint8", 255),
        (box((12, 10, 3), np.bool_, high=1), (12, 10, 3), "uint8", 1),
        (box((4, 3, 36, 48), np.uint8), (36, 48, 12), "uint8", 7),
        (box((12, 10), np.uint8), (12, 10, 1), "float32", 7 / 255),
        (box((2, 6), np.uint8), (12,), "float32", 7 / 255),
        (box((4, 2, 3), np.bool_, high=1), (24,), "float32", 1),
        (box((12, 10, 3), np.uint8, high=9), (12, 10, 3), "float32", 7 / 9),
        (box((128,), np.uint8), (128,), "float32", 7 / 255),
        (box((2, 2, 2, 2), np.uint8), (16,), "float32", 7 / 255),
        (box((2, 3), np.float64), (6,), "float32", 7),
        (box((2, 3, 4), np.float32), (24,), "float32", 7),
        (box((), np.float32), (1,), "float32", 7),
        (box((7,), np.int64), (7,), "float32", 7),
    ],
)
def test_observations_become_states_and_actions_start_at_zero(odd, space, shape, dtype, seven):
    config = odd(observation_space=space)
    assert describe_environment(config) == EnvironmentSpec(shape, dtype, 3)
    env = make_environment(config)
    assert env.reset()[0].shape == shape
    state, reward, terminated, truncated, _ = env.step(2)
    assert state in env.observation_space and np.allclose(state, seven)
    assert (reward, type(reward), type(terminated), truncated) == (7.0, float, bool, False)


class Wrong(gymnasium.Env):
    """Gives what `observe` makes."""

    action_space = spaces.Discrete(2)

    def __init__(self, space, observe):
        self.observation_space = space
        self._observe = observe

    def reset(self, *, seed=None, options=None):
        return self._observe(), {}

    def step(self, action):
        return self._observe(), 0.0, False, False, {}


class Rewarding(Wrong):
    """Gives what `observe` makes as its reward."""

    def reset(self, *, seed=None, options=None):
        return np.zeros(1), {}

    def step(self, action):
        return np.zeros(1), self._observe(), False, False, {}


class Old(Wrong):
    """Has the interface before Gymnasium."""

    def reset(self):
        return self._observe()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: Wrong(spaces.Box(-1, 1, (4,)), lambda: np.zeros(1)),
            r"shape \(1,\) and type float64; its .* \(4,\)",
        ),
        (
            lambda: Wrong(spaces.Box(0, 255, (40, 40, 3), np.uint8), lambda: np.zeros((40, 40, 3))),
            "says .* and uint8",
        ),
        (
            lambda: Wrong(spaces.Box(-1, 1, (4,)), lambda: 1 / 0),
            "does not work as a Gymnasium .*: ZeroDivisionError",
        ),
        (
            lambda: Wrong(spaces.Discrete(3), lambda: 5),
            r"the observation 5; its observation_space is Discrete\(3\)",
        ),
        (
            lambda: Wrong(spaces.Discrete(3), lambda: -1),
            r"the observation -1; its observation_space is Discrete\(3\)",
        ),
        (lambda: Wrong(spaces.MultiDiscrete([2, 2]), lambda: [0, 2]), r"the observation \[0, 2\]; its"),
        (lambda: Wrong(spaces.Dict(a=spaces.Discrete(3)), lambda: {"a": -1}), "the observation -1; its"),
        (
            lambda: Wrong(spaces.Dict(a=spaces.Box(0, 1, (2,))), lambda: {"a": np.zeros(1)}),
            r"shape \(1,\) .* \(2,\)",
        ),
        (lambda: Wrong(spaces.Dict(a=spaces.Discrete(3)), lambda: {"b": 1}), "KeyError: 'a'"),
        (
            lambda: Wrong(spaces.Box(-1, 1, (2,)), lambda: np.array([0, np.nan])),
            "ValueError: .*element that is not finite",
        ),
        (
            lambda: Wrong(spaces.Box(-1, 1, (2,), float), lambda: np.array([0, 1e300])),
            "ValueError: .*not finite",
        ),
        (
            lambda: Rewarding(spaces.Box(-1, 1, (1,)), lambda: np.float64("nan")),
            "gave the reward nan; it must be finite$",
        ),
        (
            lambda: Rewarding(spaces.Box(-1, 1, (1,)), lambda: -math.inf),
            "gave the reward -inf; it must be finite$",
        ),
        (
            lambda: Old(spaces.Box(-1, 1, (4,)), lambda: np.zeros(4)),
            "TypeError: .*unexpected keyword argument 'seed'",
        ),
    ],
)
def test_an_environment_that_does_not_work_is_refused_before_the_training(make, words):
    """A wrong shape would be spread over the state, and fractions of a uint8 image would become black."""
    with pytest.raises(UserError, match=f"^Mine-v0.*{words}"):
        StateEnvironment(make(), "Mine-v0").try_out()


@pytest.mark.parametrize(
    ("space", "wrong"),
    [
        (spaces.Box(0, 255, (40, 40), np.uint8), np.full((40, 40), 256)),
        (spaces.Box(0, 255, (40, 40), np.uint8), np.full((40, 40), -1)),
        (spaces.Box(0, 15, (40, 40), np.uint8), np.full((40, 40), 16, np.uint8)),
        (spaces.Box(0, 1, (10, 10, 2), bool), np.full((10, 10, 2), 2)),
        (spaces.Box(0, 1, (10, 10, 2), np.uint8), np.full((10, 10, 2), 2, np.uint8)),
        (spaces.Box(0, 9, (3,), np.uint8), [10, 0, 0]),
        (spaces.Dict(a=spaces.Box(0, 255, (3,), np.uint8)), {"a": np.array([0, 0, 300])}),
        (spaces.Box(-1, 1, (4,)), np.zeros((2, 2))),
        (spaces.Box(0, 255, (40, 40), np.uint8), np.zeros((1, 40), np.uint8)),
        (spaces.Box(0, 255, (3,), np.uint8), np.array([0.5, 0, 0])),
        (spaces.Discrete(3, start=1), 0),
        (spaces.Tuple([spaces.Discrete(2), spaces.MultiBinary(2)]), (0, np.array([0, 2]))),
    ],
)
def test_an_observation_outside_its_space_is_an_error_at_any_step(space, wrong):
    """It would become another state: 256 becomes 0 as a byte, and -1 the last place of a one-hot vector."""
    given = [space.sample(), wrong]
    env = StateEnvironment(Wrong(space, lambda: given.pop(0)), "Mine-v0")
    env.reset()
    with pytest.raises(ValueError, match=r"the environment gave .*; its observation_space"):
        env.step(0)


def test_bytes_in_a_space_of_parts_are_scaled_as_in_a_box():
    parts = {
        "b": spaces.Box(0, 15, (2,), np.uint8),
        "a": spaces.Discrete(3),
        "c": spaces.Box(-2, 2, (1,), np.float64),
    }
    space = spaces.Dict(
        parts, d=spaces.Tuple([spaces.Box(0, 1, (1, 1), bool), spaces.Box(0, 255, (1,), np.uint8)])
    )
    states, to_state = state_reader(space, "Mine-v0")
    part = {
        "a": 1,
        "b": np.array([3, 15], np.uint8),
        "c": np.array([-1.0]),
        "d": (np.array([[True]]), np.array([51])),
    }
    np.testing.assert_allclose(to_state(part), expected := [0, 1, 0, 0.2, 1, -1, 1, 0.2], rtol=1e-6)
    assert (
        states.shape == (8,)
        and np.array(expected, np.float32) in states
        and to_state(part).dtype == np.float32
    )
    assert states.low.tolist() == [0, 0, 0, 0, 0, -2, 0, 0] and states.high.tolist() == [
        1,
        1,
        1,
        1,
        1,
        2,
        1,
        1,
    ]


def test_an_environment_may_give_numbers_that_fit_its_space():
    fitting = (
        (spaces.Box(-1, 1, (4,)), np.zeros(4)),
        (spaces.Box(-1e30, 1e30, (2,)), np.array([1e30, -1e30])),
        (spaces.Box(0, 9, (3,), np.uint8), [0, 1, 2]),
        (spaces.Box(0, 1, (10, 10, 4), np.uint8), np.ones((10, 10, 4), int)),
        (spaces.Box(0, 255, (40, 40, 3), np.uint8), np.ones((40, 40, 3), int)),
        (spaces.Box(0, 1, (84, 84), bool), np.ones((84, 84), int)),
    )
    for space, given in fitting:
        env = StateEnvironment(Wrong(space, lambda given=given: given), "Mine-v0")
        env.try_out()
        state, _ = env.reset()
        assert state in env.observation_space and state.dtype == env.observation_space.dtype


def test_channels_come_last():
    frames = np.random.default_rng(0).integers(0, 256, (4, 36, 48), np.uint8)
    _, to_state = state_reader(box(frames.shape, np.uint8), "Odd-v0")
    assert np.array_equal(to_state(frames)[..., 2], frames[2])


def test_observations_of_no_size_are_refused(odd):
    with pytest.raises(UserError, match="this needs ones of a fixed size"):
        describe_environment(odd(observation_space=box((0,), np.float32)))


def test_observations_of_varying_size_are_refused(odd):
    with pytest.raises(UserError, match=r"Ga3cTest/Odd-v0 has observations Sequence.*fixed size"):
        describe_environment(odd(observation_space=spaces.Sequence(box((2,), np.float32))))


@pytest.mark.parametrize(
    "action_space",
    [
        spaces.Box(-1, 1, (2,)),
        spaces.Box(np.arange(40, dtype=np.float32), 99, (40,)),
        spaces.MultiDiscrete([2, 3]),
        spaces.MultiBinary(3),
    ],
    ids=lambda space: type(space).__name__,
)
def test_actions_that_are_not_discrete_are_refused(odd, action_space):
    with pytest.raises(UserError) as refusal:
        make_environment(odd(observation_space=box((4,), np.float32), action_space=action_space))
    text = str(refusal.value)
    assert text.startswith(f"Ga3cTest/Odd-v0 has actions {type(action_space).__name__}(")
    assert "Discrete actions" in text and "\n" not in text


def test_continuous_control_is_refused():
    with pytest.raises(
        UserError, match=r"Pendulum-v1 has actions Box\(-2\.0, 2\.0, \(1,\), float32\); .*Discrete"
    ):
        describe_environment(settings(env_id="Pendulum-v1"))


# ------------------------------------------------------------------------------------------------------ seeds


@pytest.mark.parametrize("preprocessing", ["standard", "nvlabs"])
@pytest.mark.parametrize("env_id", ENV_IDS)
def test_seeds(env_id, preprocessing):
    config = settings(env_id=env_id, preprocessing=preprocessing, noop_max=5)
    env, other = make_environment(config), make_environment(config)
    actions = random_actions(env, 80)
    first = play(env, actions, seed=5)
    for again in (play(env, actions, seed=5), play(other, actions, seed=5)):
        assert np.array_equal(first[0], again[0]) and first[1:] == again[1:]
    different = play(env, actions, seed=6)[0]
    assert different.shape != first[0].shape or not np.array_equal(first[0], different)


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_largest_seed(env_id):
    make_environment(settings(env_id=env_id)).reset(seed=2**63 - 1)


# -------------------------------------------------------------------------------------------------------- ids


@pytest.mark.parametrize(
    ("env_id", "today", "meant"),
    [
        ("PongDeterministic-v0", "ALE/Pong-v5", "frame skip 4 and repeat action probability 0.25"),
        ("PongDeterministic-v4", "ALE/Pong-v5", "frame skip 4 and repeat action probability 0,"),
        (
            "SpaceInvadersDeterministic-v4",
            "ALE/SpaceInvaders-v5",
            "frame skip 3 and repeat action probability 0,",
        ),
        ("PongNoFrameskip-v4", "ALE/Pong-v5", "frame skip 1 and repeat action probability 0,"),
        (
            "PongNoFrameskip-v4",
            "ALE/Pong-v5",
            "is --frame-skip 4 --repeat-action-probability 0 --noop-max 30",
        ),
        ("MsPacman-v0", "ALE/MsPacman-v5", "frame skip drawn from 2 to 4 and repeat action probability 0.25"),
        ("Pong-v5", "ALE/Pong-v5", "--frame-skip"),
        ("Pong", "ALE/Pong-v5", "--repeat-action-probability"),
    ],
)
def test_legacy_ids(env_id, today, meant):
    resolved, note = resolve_env_id(env_id)
    assert resolved == today
    assert note.startswith(f"{env_id} is called {today} today;") and meant in note and "\n" not in note
    assert resolve_env_id(resolved) == (today, None)


def test_legacy_id_can_be_played():
    assert describe_environment(settings(env_id="PongDeterministic-v4")) == describe_environment(settings())


@pytest.mark.parametrize(
    "env_id", [*ENV_IDS, "MinAtar/SpaceInvaders-v0", pytest.param("LunarLander-v3", marks=NEEDS_BOX2D)]
)
def test_ids_of_today_stay(env_id):
    assert resolve_env_id(env_id) == (env_id, None)


@pytest.mark.parametrize(
    ("env_id", "close"),
    [
        ("Pnog-v4", "ALE/Pong-v5"),
        ("ALE/Brekout-v5", "ALE/Breakout-v5"),
        ("MinAtar/Brekout-v1", "MinAtar/Breakout-v1"),
        ("pong", "ALE/Pong-v5"),
        ("ALE/Pong-v4", "ALE/Pong-v5"),
        ("CartPole", "CartPole-v1"),
        ("CartPole-v7", "CartPole-v1"),
        ("xyzzy", "ALE/Pong-v5"),
        ("", "ALE/Pong-v5"),
    ],
)
def test_unknown_id_names_close_ones(env_id, close):
    with pytest.raises(UserError) as refusal:
        make_environment(settings(env_id=env_id))
    text = str(refusal.value)
    assert text.startswith(f"unknown environment {env_id!r}; ") and "\n" not in text
    assert text.split("; ", 1)[1].removeprefix("close: ").replace(" ", ",").split(",")[0] == close


def test_module_is_imported_before_its_id(tmp_path, monkeypatch):
    (tmp_path / "ga3c_tf_test_games.py").write_text(
        "import gymnasium\nfrom gymnasium.envs.classic_control import CartPoleEnv\n"
        "gymnasium.register('Ga3cTestMine-v0', entry_point=CartPoleEnv)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    env_id = "ga3c_tf_test_games:Ga3cTestMine-v0"
    assert resolve_env_id(env_id) == (env_id, None)
    assert describe_environment(settings(env_id=env_id)) == EnvironmentSpec((4,), "float32", 2)
    assert resolve_env_id("ale_py:ALE/Pong-v5") == ("ALE/Pong-v5", None)
    with pytest.raises(UserError, match="the module 'no_such_module' cannot be imported"):
        resolve_env_id("no_such_module:Some-v0")


def test_atari_ids():
    ids = atari_ids()
    assert ids == sorted(set(ids)) and len(ids) > 60
    assert {"ALE/Pong-v5", "ALE/Breakout-v5", "ALE/MsPacman-v5", "ALE/SpaceInvaders-v5"} <= set(ids)
    assert not [name for name in ids if "ram" in name.lower().split("-") or not name.endswith("-v5")]


def test_missing_minatar_says_how_to_get_it(monkeypatch):
    for name in [name for name in gymnasium.registry if name.startswith("MinAtar/")]:
        monkeypatch.delitem(gymnasium.registry, name)
    monkeypatch.setattr(minatar.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install '.\[minatar\]'"):
        make_environment(settings(env_id="MinAtar/Breakout-v1"))


def test_missing_box2d_says_how_to_get_it(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("gymnasium.envs.box2d")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "Box2D", None)
    with pytest.raises(UserError, match=r"LunarLander-v3 cannot be made: .*box2d") as refusal:
        make_environment(settings(env_id="LunarLander-v3"))
    assert "\n" not in str(refusal.value)


# --------------------------------------------------------------------------------------- pictures and imports


@pytest.mark.parametrize(
    ("env_id", "shape"),
    [("ALE/Pong-v5", (210, 160, 3)), ("CartPole-v1", (400, 600, 3)), ("MinAtar/Breakout-v1", (160, 160, 3))],
)
def test_pictures_without_a_window(env_id, shape, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    if env_id.startswith("CartPole"):
        pytest.importorskip("pygame")
    env = make_environment(settings(env_id=env_id), render_mode="rgb_array")
    env.reset(seed=0)
    pictures = [env.render()]
    for action in [1, 0] * 4:
        env.step(action)
        pictures.append(env.render())
    assert all((picture.shape, picture.dtype) == (shape, np.uint8) for picture in pictures)
    assert len(np.unique(pictures[0])) > 1 and not np.array_equal(pictures[0], pictures[-1])


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_unknown_render_mode_is_refused(env_id):
    with pytest.raises(UserError, match="smell"):
        make_environment(settings(env_id=env_id), render_mode="smell")


def test_missing_drawing_package_is_a_user_error(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "pygame"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pygame", None)
    env = make_environment(settings(env_id="CartPole-v1"), render_mode="rgb_array")
    env.reset(seed=0)
    with pytest.raises(UserError, match=r"cannot draw: .*pygame"):
        env.render()


def loaded_after(code: str) -> set[str]:
    """The packages in a fresh interpreter after `code`, which must print nothing of its own."""
    script = f"{code}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert result.stderr == "" and result.stdout.count("\n") == 1
    return set(result.stdout.split())


MAKE = (
    "from ga3c_tf.config import Config\nfrom ga3c_tf.environments.environment import make_environment\n"
    "env = make_environment(Config(env_id={env_id!r}))\nenv.reset(seed=0)\nenv.step(0)"
)


@pytest.mark.parametrize(
    ("code", "absent", "present"),
    [
        (
            "import ga3c_tf.environments.environment",
            {"cv2", "ale_py", "PIL", "minatar", "tensorflow"},
            {"gymnasium"},
        ),
        (
            MAKE.format(env_id="CartPole-v1"),
            {"cv2", "ale_py", "PIL", "minatar", "tensorflow", "pygame"},
            set(),
        ),
        (MAKE.format(env_id="CartPole-v0"), {"ale_py"}, set()),
        (
            MAKE.format(env_id="MinAtar/Breakout-v1"),
            {"cv2", "seaborn", "matplotlib", "tensorflow"},
            {"minatar"},
        ),
        (MAKE.format(env_id="ALE/Pong-v5"), {"PIL", "minatar", "tensorflow"}, {"ale_py", "cv2"}),
    ],
    ids=["import", "CartPole-v1", "CartPole-v0", "MinAtar", "Atari"],
)
def test_only_what_is_needed_is_loaded_and_nothing_is_printed(code, absent, present):
    loaded = loaded_after(code)
    assert not loaded & absent
    assert present <= loaded


class Mission(spaces.Space):
    """A space that Gymnasium does not know, as in MiniGrid."""

    def contains(self, x):
        return isinstance(x, str)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (
            spaces.Dict(image=spaces.Box(0, 255, (7, 7, 3), np.uint8), mission=Mission()),
            "needs ones of a fixed size",
        ),
        (None, "cannot be used: AttributeError"),
    ],
)
def test_spaces_that_are_unknown_or_missing_are_told(space, message):
    class Grid(gymnasium.Env):
        action_space = spaces.Discrete(7)

    if space is not None:
        Grid.observation_space = space
    name = name_of(Grid)
    with pytest.raises(UserError, match=message):
        make_environment(Config(env_id=name))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("channels_first", [False, True])
def test_the_frames_of_a_stack_become_channels(channels, channels_first):
    frames = np.arange(4 * 40 * 48 * channels).astype(np.uint8).reshape(4, 40, 48, channels)
    given = np.moveaxis(frames, -1, 1) if channels_first else frames
    states, to_state = state_reader(box(given.shape, np.uint8), "Stacked-v0")
    assert to_state(given).shape == states.shape == (40, 48, 4 * channels)
    for frame in range(4):
        np.testing.assert_array_equal(
            to_state(given)[..., frame * channels : (frame + 1) * channels], frames[frame]
        )


# the resize of what has changed gives the bytes of OpenCV's area resize of the whole screen


def whole(screen):
    return cv2.resize(screen, (84, 84), interpolation=cv2.INTER_AREA)


def with_other_rows(screen, rng):
    """The screen with other pixels in 0 to 8 rows; any row may change, also the first and the last."""
    other = screen.copy()
    for row in rng.integers(-1, len(screen), rng.integers(9)):
        other[row, rng.integers(160, size=3)] = rng.integers(256, size=3)
    return other


@pytest.mark.parametrize("height", [210, 214, 230, 250])
def test_random_screens(height):
    rng = np.random.default_rng(height)
    resize = AreaResize((height, 160))
    screen = np.zeros((height, 160), np.uint8)
    for step in range(300):
        if step % 50 == 25:
            screen = rng.integers(256, size=screen.shape, dtype=np.uint8)
        screen = with_other_rows(screen, rng)
        assert np.array_equal(resize(screen), whole(screen)), step


@pytest.mark.parametrize("game", ["pong", "space_invaders", "beam_rider", "qbert", "carnival", "air_raid"])
def test_screens_of_games_with_resets(game):
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", 1)
    ale.loadROM(ale_py.roms.get_rom_path(game))
    actions = ale.getMinimalActionSet()
    rng = np.random.default_rng(0)
    resize = AreaResize(ale.getScreenDims())
    for step in range(300):
        ale.act(actions[rng.integers(len(actions))])
        if step % 100 == 99:
            ale.reset_game()
        screen = ale.getScreenGrayscale()
        assert np.array_equal(resize(screen), whole(screen)), step

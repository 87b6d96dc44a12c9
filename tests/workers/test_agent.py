"""The agent: the authors' rollouts, its own treatment of episode ends, and how it samples."""

import json
import multiprocessing
import random
from collections import deque
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from ga3c_tf.config import Config
from ga3c_tf.config.presets import PRESETS
from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.columns import COLUMNS, SegmentEnd, Step, along
from ga3c_tf.experience.queues import EPISODE, IndexQueue, RecordQueue
from ga3c_tf.experience.reply_pipes import ADDED
from ga3c_tf.experience.segment import Segment
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.workers.agent import TrainingAgent, sample_action
from ga3c_tf.workers.agent_process import AgentQueues, AgentRunner

SPEC = EnvironmentSpec((1,), "uint8", 4)
ROLLOUTS = json.loads((Path(__file__).parents[1] / "data" / "rollouts.json").read_text())["cases"]


class Tape(gymnasium.Env):
    """Plays given rewards; its state is the number of the step."""

    observation_space = spaces.Box(0, 255, (1,), np.uint8)
    action_space = spaces.Discrete(4)

    def __init__(self, rewards, truncated=False):
        self._rewards = rewards
        self._truncated = truncated

    def reset(self, *, seed=None, options=None):
        self._step = 0
        return np.array([0], np.uint8), {}

    def step(self, action):
        reward = self._rewards[self._step]
        self._step += 1
        done = self._step == len(self._rewards)
        return (
            np.array([self._step], np.uint8),
            reward,
            done and not self._truncated,
            done and self._truncated,
            {},
        )


class Lives(Tape):
    """A game of three lives, each of which is played as an episode."""

    lives = 3

    @property
    def game_continues(self):
        return self.lives > 0

    def reset(self, *, seed=None, options=None):
        self.lives = self.lives or 3
        return super().reset(seed=seed, options=options)

    def step(self, action):
        state, reward, terminated, *rest = super().step(action)
        self.lives -= terminated
        return state, reward, terminated, *rest


def play_one_episode(config, rewards, actions, values, *, truncated=False, kind=Tape):
    """The segments an agent sends, and (length, score), when it is answered with these actions and values."""
    config = config.replace(num_agents=1)
    memory = RolloutBuffers(config, SPEC)
    training = IndexQueue()
    episodes = RecordQueue(EPISODE)
    free_slots = deque(memory.slots_of(0))
    seed = np.random.SeedSequence(0)
    agent = TrainingAgent(0, config, kind(rewards, truncated), memory, training, episodes, free_slots, seed)
    segments = []
    for request in agent.run():
        while len(training):
            slot = int(training.get(1)["index"][0])
            length = memory.lengths[slot]
            segments.append(
                {
                    "states": memory.states[slot, :length, 0].tolist(),
                    "returns": memory.returns[slot, :length].tolist(),
                    "actions": memory.actions[slot, :length].tolist(),
                    "versions": memory.versions[slot, :length].tolist(),
                }
            )
            free_slots.append(slot)
        if len(episodes):
            _, length, score = episodes.get()[0].tolist()
            return segments, (length, score)
        if request is None:
            continue
        step = int(memory.flat_states[request][0])
        memory.policy[0] = np.eye(4, dtype=np.float32)[actions[step] if step < len(actions) else 0]
        memory.value[0] = values[step]
        memory.version[0] = 100 + step
    raise AssertionError("the agent ended")


@pytest.mark.parametrize("case", ROLLOUTS, ids=lambda case: f"{len(case['rewards'])}-steps")
def test_the_authors_preset_sends_the_authors_segments(case):
    config = Config.from_values({**PRESETS["nvlabs"], "gamma": case["discount"], "t_max": case["time_max"]})
    segments, (length, score) = play_one_episode(config, case["rewards"], case["actions"], case["values"])
    assert len(segments) == len(case["chunks"])
    for segment, chunk in zip(segments, case["chunks"], strict=True):
        assert segment["states"] == chunk["states"]
        assert segment["actions"] == chunk["actions"]
        assert segment["returns"] == pytest.approx(chunk["returns"], rel=1e-5, abs=1e-6)
    assert (length, score) == (len(case["rewards"]), pytest.approx(sum(case["rewards"])))


@pytest.mark.parametrize("preset", ["default", "nvlabs"])
def test_an_episode_is_a_whole_game_where_a_lost_life_ends_a_rollout(preset):
    config = Config.from_values(PRESETS[preset])
    dropped = preset == "nvlabs"  # this preset does not train on the last step
    segments, episode = play_one_episode(config, [1.0, 2.0, 4.0], [1, 2, 3], [0.0] * 4, kind=Lives)
    assert episode == (9, 21.0)
    assert joined(segments, "states") == [0, 1, 2][: 3 - dropped] * 3


@pytest.mark.parametrize("preset", ["default", "nvlabs"])
def test_a_lost_life_takes_no_state_out_of_memory(preset):
    """The carry counts the states of the game."""
    config = Config.from_values(PRESETS[preset]).replace(num_agents=1)
    memory = RolloutBuffers(config, SPEC, initial_carry=np.zeros(1, np.float32))
    free_slots = deque(memory.slots_of(0))
    queues = IndexQueue(), RecordQueue(EPISODE)
    environment = Lives([0.0] * 3)
    agent = TrainingAgent(0, config, environment, memory, *queues, free_slots, np.random.SeedSequence(0))
    seen = []
    for request in agent.run():
        if len(queues[1]):
            break
        while len(queues[0]):
            free_slots.append(int(queues[0].get(1)["index"][0]))
        if request is None:
            continue
        seen.append(float(memory.carry[0, 0]))
        memory.next_carry[0] = memory.carry[0] + 1
        memory.policy[0] = 0.25
    assert seen == [*range(9)]


def joined(segments, name):
    return [value for segment in segments for value in segment[name]]


@pytest.mark.parametrize("truncated", [False, True])
@pytest.mark.parametrize("length", [1, 4, 5, 6, 10, 11, 23])
def test_by_default_every_transition_is_sent_with_its_own_bootstrap(length, truncated):
    rng = np.random.default_rng(length)
    rewards = rng.normal(0, 2, length).tolist()
    actions = rng.integers(4, size=length).tolist()
    values = rng.normal(size=length + 1).tolist()
    segments, episode = play_one_episode(Config(gamma=0.9), rewards, actions, values, truncated=truncated)
    assert episode == (length, pytest.approx(sum(rewards)))
    assert joined(segments, "states") == list(range(length))
    assert joined(segments, "actions") == actions
    assert joined(segments, "versions") == [100 + step for step in range(length)]
    for number, segment in enumerate(segments):
        start = 5 * number
        end = min(start + 5, length)
        following = values[end] if end < length or truncated else 0.0
        expected = [
            sum(0.9 ** (k - step) * np.clip(rewards[k], -1, 1) for k in range(step, end))
            + 0.9 ** (end - step) * following
            for step in range(start, end)
        ]
        assert segment["returns"] == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_a_segment_fills_its_columns_by_name():
    memory = RolloutBuffers(Config(num_agents=1), SPEC)
    segment = Segment(memory, 0, np.array([0], np.uint8))
    step = {"actions": 2, "rewards": 0.5, "mu_values": 3.0, "mu_log_probabilities": -1.0, "versions": 7}
    end = {"terminated": False, "truncated": True, "bootstrap_values": 4.0, "bootstrap_versions": 8}
    segment.append(Step(**step), np.array([1], np.uint8))
    segment.close(SegmentEnd(**end), Config(gamma=0.5))
    assert {name: column[0, 0] for name, column in memory.step_columns.items()} == {
        **step,
        "returns": 0.5 + 0.5 * 4,
    }
    assert {name: column[0] for name, column in memory.segment_columns.items()} == {**end, "lengths": 1}


@pytest.mark.parametrize(("axis", "record"), [("step", Step), ("segment", SegmentEnd)])
def test_agents_fill_every_column_that_a_segment_does_not(axis, record):
    names = {column.name for column in along(COLUMNS, axis)}
    assert names - {"returns", "lengths"} == set(record._fields)


def test_rewards_are_clipped_for_training_only_when_asked():
    segments, (_, score) = play_one_episode(Config(clip_rewards=False), [3.0, -2.0], [0, 1], [0, 0, 0])
    assert segments[0]["returns"] == pytest.approx([3 - 0.99 * 2, -2.0]) and score == 1.0
    segments, (_, score) = play_one_episode(Config(), [3.0, -2.0], [0, 1], [0, 0, 0])
    assert segments[0]["returns"] == pytest.approx([1 - 0.99, -1.0]) and score == 1.0


def global_draws(seed, stream):
    """What an environment draws from the global generators in the process of an agent of this stream."""
    config = Config(env_id="CartPole-v1", num_agents=1, seed=seed)
    memory = RolloutBuffers(config, EnvironmentSpec((4,), "float32", 2))
    memory.streams[0] = stream
    _, errors = multiprocessing.Pipe()
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - as processes that are copies of one
    queues = AgentQueues(IndexQueue(), IndexQueue(), RecordQueue(EPISODE), errors)
    AgentRunner(0, config, memory, queues, TrainingAgent).handle([ADDED])
    return random.random(), np.random.random()  # noqa: NPY002


def test_the_global_random_generators_of_a_process_are_its_own_and_follow_the_seed():
    draws = [global_draws(seed, stream) for seed, stream in ((1, 0), (1, 1), (2, 0))]
    assert len({draw for pair in draws for draw in pair}) == 6
    assert global_draws(1, 1) == draws[1]


def test_actions_are_drawn_with_the_policys_probabilities():
    rng = np.random.default_rng(0)
    policy = np.array([0.1, 0.0, 0.6, 0.3], np.float32)
    draws = np.bincount([sample_action(policy, rng) for _ in range(20_000)], minlength=4) / 20_000
    assert draws[1] == 0
    assert draws == pytest.approx(policy, abs=0.015)


def test_rounding_never_draws_an_action_that_is_not_there():
    class One:
        def random(self):
            return np.nextafter(1.0, 0.0)

    for size in range(1, 19):
        policy = np.full(size, 1 / size, np.float32)
        assert sample_action(policy, One()) == size - 1

"""The replay memory: nothing lost, repeated or mixed; its tree, returns and states against slow versions."""

import errno
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.replay import files, room, sum_tree
from ga3c_tf.experience.replay.memory import CollectedSegment, ReplayMemory, Sampling
from ga3c_tf.experience.replay.replay import Replay
from ga3c_tf.experience.replay.sum_tree import SumTree
from ga3c_tf.experience.replay.targets import GOES_ON, TERMINATED, TRUNCATED, nstep_returns
from ga3c_tf.experience.spec import EnvironmentSpec

GAMMA = 0.9
PRIORITIES = st.one_of(st.just(0.0), st.floats(1e-6, 1e6))


@given(st.lists(PRIORITIES, min_size=1, max_size=70), st.data())
def test_a_sum_tree_finds_what_a_running_sum_finds(priorities, data):
    tree = SumTree(len(priorities))
    for _ in range(3):
        places = data.draw(st.lists(st.integers(0, len(priorities) - 1), min_size=1, max_size=9))
        changed = data.draw(st.lists(PRIORITIES, min_size=len(places), max_size=len(places)))
        for place, priority in zip(places, changed, strict=True):
            priorities[place] = priority
        tree.set(np.arange(len(priorities)), np.array(priorities))
        tree.set(np.array(places), np.array([priorities[place] for place in places]))
        assert tree.total == pytest.approx(sum(priorities))
        np.testing.assert_array_equal(tree.priorities(np.arange(len(priorities))), priorities)
    if tree.total > 0:
        shares = np.array(data.draw(st.lists(st.floats(0, 0.999999), min_size=1, max_size=9)))
        ends = np.cumsum(priorities)
        for place, mass in zip(tree.find(shares * tree.total), shares * tree.total, strict=True):
            assert priorities[place] > 0
            assert ends[place] - priorities[place] <= mass + 1e-9 * tree.total
            assert mass < ends[place] + 1e-9 * tree.total


def test_places_are_drawn_in_proportion_to_their_priorities():
    tree = SumTree(5)
    tree.set(np.arange(5), np.array([1.0, 0.0, 4.0, 2.0, 3.0]))
    drawn = np.bincount(tree.find(np.arange(1000) / 100), minlength=5)
    np.testing.assert_array_equal(drawn, [100, 0, 400, 200, 300])


def test_changes_of_priorities_do_not_pile_up_while_nothing_is_sampled():
    tree = SumTree(5)
    for number in range(3 * sum_tree.MOST_CHANGES):
        tree.set(np.array([number % 5]), 1.0)
    assert len(tree._changed) <= sum_tree.MOST_CHANGES and tree.total == 5


def slow_return(rewards, ends):
    """The sum, the discount and the length of one n-step return, step by step."""
    total, discount = 0.0, 1.0
    steps = 0
    for reward, end in zip(rewards, ends, strict=True):
        total += discount * reward
        discount *= GAMMA
        steps += 1
        if end != GOES_ON:
            break
    return total, 0.0 if end == TERMINATED else discount, steps


@given(st.integers(1, 5), st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_nstep_returns_are_those_of_a_loop(steps, size, seed):
    random = np.random.default_rng(seed)
    rewards = random.normal(size=(size, steps)).astype(np.float32)
    ends = random.choice([GOES_ON, GOES_ON, TERMINATED, TRUNCATED], size=(size, steps)).astype(np.uint8)
    result = nstep_returns(rewards, ends, GAMMA)
    for row in range(size):
        expected = slow_return(rewards[row], ends[row])
        assert [values[row] for values in result] == pytest.approx(expected, rel=1e-5, abs=1e-6)


class Player:
    """Plays invented episodes, and remembers every step: its state, and what its return must be."""

    def __init__(self, agent, stacked, random):
        self.agent = agent
        self.generation = 0
        self.position = -1  # of the newest state in the lane, where every frame and step has one
        self.steps = []  # state, reward, position and end of every step, and the state after it
        self._stacked = stacked
        self._random = random
        self._frame = 0
        self._in_episode = False

    def segment(self, most):
        """Plays up to `most` steps; returns what goes to the replay memory."""
        random = self._random
        if not self._in_episode:
            self._stack = [self._new_frame() for _ in range(self._stacked)]
            is_overwritten = bool(self.steps) and self.steps[-1][4] == TERMINATED  # the last state so far
            self.position += self._stacked - is_overwritten
        self._in_episode = True
        length = int(random.integers(1, most + 1))
        how = random.choice([GOES_ON, GOES_ON, TERMINATED, TRUNCATED])
        states = [self._state()]
        rewards = random.normal(size=length).astype(np.float32)
        for number, reward in enumerate(rewards):
            self._stack = [*self._stack[1:], self._new_frame()]
            states.append(self._state())
            end = how if number == length - 1 else GOES_ON
            self.steps.append([*states[-2:], float(reward), self.position, end])
            self.position += 1
        if how != GOES_ON:
            self._in_episode = False
        states = np.array(states)
        newest = states[..., -1] if self._stacked > 1 else states
        return CollectedSegment(
            agent=self.agent,
            generation=self.generation,
            older=np.moveaxis(states[0], -1, 0)[:-1] if self._stacked > 1 else states[:0],
            frames=newest,
            actions=np.arange(len(self.steps) - length, len(self.steps), dtype=np.int32),
            rewards=rewards,
            versions=np.arange(length),
            terminated=how == TERMINATED,
            truncated=how == TRUNCATED,
        )

    def begin_anew(self):
        """What a replaced process does: its steps so far have no next ones."""
        self.generation += 1
        self._in_episode = False
        if self.steps and self.steps[-1][4] == GOES_ON:
            self.steps[-1][4] = TRUNCATED

    def sampled_steps(self, lane_size, n_step):
        """The numbers of the steps that can be sampled."""
        end = len(self.steps)
        while len(self.steps) - end < n_step - 1 and end and self.steps[end - 1][4] == GOES_ON:
            end -= 1
        oldest = self.position - lane_size + self._stacked
        return {number for number in range(end) if self.steps[number][3] >= oldest}

    def check(self, number, state, after, reward, discount, n_step):
        """A sample is that step, with its state and its return."""
        part = self.steps[number : number + n_step]
        ends = [step[4] for step in part]
        total, factor, span = slow_return([step[2] for step in part], ends)
        np.testing.assert_array_equal(state, part[0][0])
        assert (reward, discount) == pytest.approx((total, factor), rel=1e-5, abs=1e-6)
        if discount:
            np.testing.assert_array_equal(after, part[span - 1][1])

    def _new_frame(self):
        self._frame += 1
        return np.array([[self.agent, self._frame], [self._frame // 256, 7]], np.int64).astype(np.uint8)

    def _state(self):
        return np.stack(self._stack, axis=-1) if self._stacked > 1 else self._stack[0]


AGENTS = 3
LANE_SIZE = 40


def empty_memory(stacked, n_step, priority_exponent, random):
    shape = (2, 2, stacked) if stacked > 1 else (2, 2)
    sampling = Sampling(n_step, GAMMA, priority_exponent, importance_exponent=0.5)
    spec = EnvironmentSpec(shape, "uint8", 5, stacked)
    return ReplayMemory(LANE_SIZE * AGENTS + 2, AGENTS, spec, sampling, random)


def play(memory, players, segments, random):
    """Adds segments of the players, one of whom begins anew now and then, and checks samples after each."""
    for _ in range(segments):
        player = players[random.integers(AGENTS)]
        if random.random() < 0.1:
            player.begin_anew()
        memory.add(player.segment(most=6))
        if not memory.can_sample:
            continue
        batch = memory.sample(32)
        for row, agent in enumerate(batch.agents):
            columns = batch.states[row], batch.next_states[row], batch.returns[row], batch.discounts[row]
            players[agent].check(batch.actions[row], *columns, memory.sampling.n_step)
        memory.set_errors(batch, random.normal(size=32))


def check_what_can_be_sampled(memory, players):
    """All steps that should, and no others."""
    for agent, player in enumerate(players):
        expected = player.sampled_steps(LANE_SIZE, memory.sampling.n_step)
        lane = slice(agent * LANE_SIZE, (agent + 1) * LANE_SIZE)
        can_sample = memory.priorities(lane) > 0
        assert set(memory.steps["actions"][lane][can_sample].tolist()) == expected


@pytest.mark.parametrize("priority_exponent", [0.0, 0.6])
@pytest.mark.parametrize(("stacked", "n_step"), [(1, 1), (4, 1), (4, 3), (1, 5), (2, 2)])
def test_samples_are_the_agents_steps_and_states(stacked, n_step, priority_exponent):
    random = np.random.default_rng(stacked + 10 * n_step)
    memory = empty_memory(stacked, n_step, priority_exponent, random)
    players = [Player(agent, stacked, random) for agent in range(AGENTS)]
    play(memory, players, 150, random)
    check_what_can_be_sampled(memory, players)


@pytest.mark.parametrize("segments", [1, 8, 100])
def test_a_saved_memory_is_continued_by_new_agents(tmp_path, monkeypatch, segments):
    monkeypatch.setattr(files, "PART_BYTES", 100)
    random = np.random.default_rng(segments)
    saved = empty_memory(4, 3, 0.6, random)
    players = [Player(agent, 4, random) for agent in range(AGENTS)]
    play(saved, players, segments, random)
    assert not files.has_replay(tmp_path)
    files.save_replay(saved, tmp_path)
    assert files.has_replay(tmp_path)

    memory = empty_memory(4, 3, 0.6, random)
    files.load_replay(memory, tmp_path)
    everywhere = slice(0, AGENTS * LANE_SIZE)
    np.testing.assert_array_equal(memory.priorities(everywhere), saved.priorities(everywhere))
    assert (memory.collected, memory.highest) == (saved.collected, saved.highest)
    for player in players:
        player.begin_anew()
        player.generation = 0
        memory.add(player.segment(most=6))
    play(memory, players, 30, random)
    check_what_can_be_sampled(memory, players)
    files.remove_replay(tmp_path)
    assert not list(tmp_path.iterdir())


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-100])


def overwrite(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def say_that_it_is_encrypted(path):
    """Change the flags of the first array in the directory of a zip file; the first byte of JSON."""
    content = bytearray(path.read_bytes())
    content[content.find(b"PK\x01\x02") + 8 if path.suffix == ".npz" else 0] ^= 0xFF
    path.write_bytes(content)


def leave_no_object(file):
    file.write_text("null")


@pytest.mark.parametrize(
    "damage", [cut_short, overwrite, say_that_it_is_encrypted, leave_no_object, Path.unlink]
)
@pytest.mark.parametrize("name", ["replay.json", "replay-00000.npz"])
def test_a_damaged_replay_memory_is_noticed(tmp_path, name, damage):
    random = np.random.default_rng(0)
    memory = empty_memory(1, 1, 0.0, random)
    memory.add(Player(0, 1, random).segment(most=6))
    files.save_replay(memory, tmp_path)
    damage(tmp_path / name)
    with pytest.raises(files.ReplayUnreadable, match="cannot be read"):
        files.load_replay(empty_memory(1, 1, 0.0, random), tmp_path)


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.EMFILE, "Too many open files")])
def test_a_memory_that_cannot_be_read_now_is_not_taken_for_damaged(tmp_path, monkeypatch, error):
    random = np.random.default_rng(0)
    memory = empty_memory(1, 1, 0.0, random)
    memory.add(Player(0, 1, random).segment(most=6))
    files.save_replay(memory, tmp_path)

    def fail(*_):
        raise error

    monkeypatch.setattr(files.np, "load", fail)
    with pytest.raises(UserError, match=r"cannot be read now: .*; nothing has been changed"):
        files.load_replay(empty_memory(1, 1, 0.0, random), tmp_path)


def test_a_wrong_number_of_a_lane_is_noticed(tmp_path):
    random = np.random.default_rng(0)
    memory = empty_memory(1, 1, 0.0, random)
    memory.add(Player(0, 1, random).segment(most=6))
    files.save_replay(memory, tmp_path)
    text = (tmp_path / "replay.json").read_text()
    head = memory.lanes[0].head
    (tmp_path / "replay.json").write_text(text.replace(f'"head": {head},', f'"head": {head + 1},', 1))
    with pytest.raises(files.ReplayUnreadable, match="is damaged"):
        files.load_replay(empty_memory(1, 1, 0.0, random), tmp_path)


@pytest.mark.parametrize(("n_step", "priority_exponent"), [(3, 0.0), (1, 0.6)])
def test_a_replay_memory_of_other_settings_is_not_loaded(tmp_path, n_step, priority_exponent):
    random = np.random.default_rng(0)
    files.save_replay(empty_memory(1, 1, 0.0, random), tmp_path)
    with pytest.raises(files.ReplayUnreadable, match="is of other settings"):
        files.load_replay(empty_memory(1, n_step, priority_exponent, random), tmp_path)


def filled(steps=10, **sampling):
    """A memory with so many steps of one agent's endless episode."""
    given_sampling = {"n_step": 1, "gamma": GAMMA, "priority_exponent": 0.5, "importance_exponent": 0.4}
    random = np.random.default_rng(1)
    spec = EnvironmentSpec((3,), "float32", 2)
    memory = ReplayMemory(20, 1, spec, Sampling(**given_sampling | sampling), random)
    memory.add(segment_of(steps))
    return memory


def segment_of(steps):
    return CollectedSegment(
        agent=0,
        generation=0,
        older=np.zeros((0, 3), np.float32),
        frames=np.ones((steps + 1, 3), np.float32),
        actions=np.arange(steps, dtype=np.int32),
        rewards=np.ones(steps, np.float32),
        versions=np.zeros(steps, np.int64),
        terminated=False,
        truncated=False,
    )


def test_priorities_and_weights_follow_from_the_errors():
    memory = filled()
    batch = memory.sample(10)
    assert sorted(batch.actions) == list(range(10))  # a stratum for each step: new ones are equally likely
    np.testing.assert_array_equal(batch.weights, 1)
    errors = np.where(batch.actions == 3, -16.0, 1.0)
    memory.set_errors(batch, errors)
    again = memory.sample(1300)
    drawn = np.bincount(again.actions, minlength=10)
    np.testing.assert_allclose(drawn, [400 if action == 3 else 100 for action in range(10)], atol=1)
    expected = np.where(again.actions == 3, 4**-0.4, 1)
    np.testing.assert_allclose(again.weights, expected, rtol=1e-5)
    memory.add(segment_of(1))  # a new step is as likely as the likeliest
    drawn = np.bincount(memory.sample(1700).actions, minlength=10)
    assert drawn[0] == pytest.approx(500, abs=1)  # the new step's action is 0 too


def test_uniform_sampling_takes_no_notice_of_errors():
    memory = filled(priority_exponent=0.0)
    batch = memory.sample(10)
    memory.set_errors(batch, np.arange(10.0))
    assert sorted(memory.sample(10).actions) == list(range(10))


def test_errors_of_overwritten_steps_change_nothing():
    memory = filled()
    batch = memory.sample(10)
    for _ in range(2):
        memory.add(segment_of(10))
    before = memory.priorities(slice(0, 20))
    memory.set_errors(batch, np.full(10, 100.0))
    np.testing.assert_array_equal(memory.priorities(slice(0, 20)), before)


def test_the_age_of_a_sample_is_the_number_of_steps_since():
    memory = filled()
    memory.add(segment_of(4))
    batch = memory.sample(30)
    np.testing.assert_array_equal(batch.ages[batch.numbers == 2], 12)
    assert set(batch.ages) == set(range(1, 15))


@pytest.mark.parametrize("intensity", [0.25, 1.0, 8.0])
def test_the_training_intensity_is_held(intensity):
    settings = {"replay_batch": 32, "replay_start": 100, "replay_size": 1000, "training_intensity": intensity}
    config = Config(seed=1, num_agents=1, algorithm="dqn", **settings)
    buffers = RolloutBuffers(config, EnvironmentSpec((4,), "float32", 2))
    buffers.lengths[:] = 3
    replay = Replay(config, buffers)
    trained = 0
    for _ in range(1000):
        replay.copy(buffers.slots_of(0)[0], generation=0)
        replay.add()
        while replay.due() is not None:
            assert replay.states > 100
            trained += 32
    allowed = intensity * (3000 - 100)
    assert allowed - 32 < trained <= allowed


PONG = EnvironmentSpec((84, 84, 4), "uint8", 6, stacked=4)


def test_a_million_steps_of_atari_need_at_most_seven_and_a_half_gib():
    assert room.replay_bytes(10**6, PONG) <= 7.5 * 2**30


def test_the_memory_is_that_of_its_arrays():
    spec = EnvironmentSpec((5, 4, 2), "uint8", 3, stacked=2)
    memory = ReplayMemory(1000, 1, spec, Sampling(1, 0.9, 0, 0), np.random.default_rng(0))
    arrays = [memory.store.frames, *memory._tree._levels, *memory.steps.values()]
    assert room.replay_bytes(1000, spec) == sum(array.nbytes for array in arrays)


def test_a_replay_memory_that_does_not_fit_is_refused(monkeypatch):
    """A GiB is left to the agents and to training."""
    monkeypatch.setattr(room, "available_bytes", lambda: 2 * 2**30)
    assert room.check_room(100_000, PONG, 100) == room.replay_bytes(100_000, PONG)
    with pytest.raises(UserError, match=r"needs 6\.\d GiB, and 1\.0 GiB can be given to it here") as refused:
        room.check_room(10**6, PONG, 100)
    fitting = int(str(refused.value).split("--replay-size ")[1].split()[0])
    assert 0.99 * 2**30 < room.check_room(fitting, PONG, 100) <= 2**30
    with pytest.raises(UserError, match="it needs more free memory"):
        room.check_room(10**6, PONG, fitting + 1)

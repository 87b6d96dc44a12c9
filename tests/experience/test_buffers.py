"""The arrays that agents and server share: shapes, indices, another process, too little memory; and which of
their segments are too old to be trained on.
"""

import multiprocessing
import re
import subprocess
import sys

import numpy as np
import pytest

from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.lag_limit import LagLimit
from ga3c_tf.experience.queues import INDEX
from ga3c_tf.experience.shared_memory import SharedMemory
from ga3c_tf.experience.spec import EnvironmentSpec


def _memory(**settings):
    config = Config(num_agents=3, t_max=5, max_training_queue=6, **settings)
    return RolloutBuffers(config, EnvironmentSpec((2, 3, 1), "uint8", 4))


def test_arrays_are_apart_and_have_their_shapes():
    memory = _memory()
    slots = 3 * 3
    shapes = {
        "states": (slots, 6, 2, 3, 1),
        "actions": (slots, 5),
        "returns": (slots, 5),
        "versions": (slots, 5),
        "lengths": (slots,),
        "policy": (3, 4),
        "value": (3,),
        "version": (3,),
        "steps": (3,),
    }
    for number, (name, shape) in enumerate(shapes.items(), 1):
        assert getattr(memory, name).shape == shape
        getattr(memory, name)[...] = number
    for number, name in enumerate(shapes, 1):
        assert (getattr(memory, name) == number).all()


def test_state_indices_lead_back_to_state_and_agent():
    memory = _memory()
    for agent in range(3):
        for slot in memory.slots_of(agent):
            for step in range(6):
                index = memory.state_index(slot, step)
                memory.states[slot, step] = index % 251
                assert memory.agents_of(np.array([index], INDEX)).tolist() == [agent]
                assert (memory.flat_states[index] == index % 251).all()


def _write_state(memory):
    memory.states[4, 2] = 77
    memory.steps[1] += 3


def test_another_process_writes_into_the_same_memory():
    memory = _memory()
    process = multiprocessing.get_context("forkserver").Process(target=_write_state, args=(memory,))
    process.start()
    process.join()
    assert (memory.states[4, 2] == 77).all() and memory.steps.tolist() == [0, 3, 0]


def test_too_little_memory_names_the_size_needed(monkeypatch):
    monkeypatch.setattr("ga3c_tf.experience.shared_memory.available_bytes", lambda: 50 * 2**20)
    with pytest.raises(
        UserError, match=r"need 100 MiB of shared memory, and 50 MiB are left here; less of all"
    ):
        SharedMemory(100 * 2**20, "less of all")
    assert SharedMemory(2**20, "").size == 2**20


@pytest.mark.parametrize(
    ("adjustment", "advice"), [("off", "fewer --agents, "), ("fast", "--adjustment off, ")]
)
def test_what_is_said_to_need_less_memory_does(monkeypatch, adjustment, advice):
    """With adjustment there is room for 128 agents, however few the run begins with."""
    monkeypatch.setattr("ga3c_tf.experience.shared_memory.available_bytes", lambda: 2**20)

    def needed(**changes) -> int:
        settings = {"num_agents": 8, "adjustment": adjustment, "t_max": 20, **changes}
        with pytest.raises(UserError, match=advice if not changes else "need less") as refused:
            RolloutBuffers(Config(**settings), EnvironmentSpec((84, 84, 4), "uint8", 6))
        return int(re.search(r"need (\d+) MiB", str(refused.value))[1])

    assert needed(t_max=10) < needed()
    if adjustment == "off":
        assert (
            needed(num_agents=4, max_training_queue=50) < needed()
            and needed(max_training_queue=20) < needed()
        )
    else:
        assert needed(num_agents=4) == needed()
        assert max(needed(adjustment="off"), needed(max_agents=64)) < needed()


@pytest.mark.parametrize("settings", [{"system": "a2c"}, {"num_agents": 64}])
def test_a_smaller_queue_is_no_advice_where_each_agent_has_one_segment(monkeypatch, settings):
    monkeypatch.setattr("ga3c_tf.experience.shared_memory.available_bytes", lambda: 2**20)
    with pytest.raises(UserError, match="; fewer --agents or a smaller --t-max need less"):
        RolloutBuffers(Config(**settings), EnvironmentSpec((84, 84, 4), "uint8", 6))


def test_more_memory_than_the_machine_has_is_refused_before_it_is_taken():
    config = Config(num_agents=4096, t_max=1000, max_training_queue=10_000)
    with pytest.raises(UserError, match=r"need \d+ MiB of shared memory"):
        RolloutBuffers(config, EnvironmentSpec((840, 840, 4), "uint8", 6))


def test_memory_and_pipes_need_no_room_in_dev_shm():
    code = """
import subprocess, sys
from ga3c_tf.config import Config
from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.spec import EnvironmentSpec
before = set(__import__("os").listdir("/dev/shm"))
memory = RolloutBuffers(Config(), EnvironmentSpec((84, 84, 4), "uint8", 6))
memory.states[...] = 1
assert set(__import__("os").listdir("/dev/shm")) == before
print(memory.states.nbytes)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 32 * 4 * 6 * 84 * 84 * 4


def limit_of(most, *segments):
    """A limit with a model of version 10 and segments with steps chosen by these versions, from slot 0 on."""
    memory = RolloutBuffers(Config(num_agents=1, t_max=3), EnvironmentSpec((1,), "uint8", 2))
    for slot, versions in enumerate(segments):
        memory.lengths[slot] = len(versions)
        memory.versions[slot, : len(versions)] = versions
    return LagLimit(most, memory, lambda: 10)


@pytest.mark.parametrize(
    ("most", "versions", "dropped"),
    [
        (2, [8, 9, 10], False),
        (2, [7, 9, 10], True),
        (2, [10, 9, 7], True),
        (0, [10, 10, 10], False),
        (0, [9, 10, 10], True),
        (2, [9], False),
        (None, [0, 0, 0], False),
    ],
)
def test_a_segment_is_dropped_if_its_oldest_step_is_more_than_the_limit_behind(most, versions, dropped):
    assert limit_of(most, versions).drops(0) == dropped


def test_the_steps_of_dropped_segments_are_counted():
    limit = limit_of(2, [1, 2, 3], [9, 9])
    for slot in (0, 1, 0):
        limit.drops(slot)
    assert limit.dropped_steps == 6

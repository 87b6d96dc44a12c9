"""Queues with none, one, many, more than the maximum; stopped; closed; the way back; the shared arrays."""

import fcntl
import multiprocessing
import os
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.rollouts import queues
from ga3c_tf.rollouts.queues import (
    ADDED,
    ENDED,
    EPISODE,
    INDEX,
    KIND,
    RELEASED,
    REMOVED,
    IndexQueue,
    NewestFirstQueue,
    RecordQueue,
    ReplyPipes,
    RolloutBuffers,
)


def test_one_record_comes_back():
    queue = IndexQueue()
    queue.put(7)
    assert len(queue) == 1
    assert queue.get(10).tolist() == [7]
    assert len(queue) == 0


def test_one_read_returns_all_that_wait_in_order():
    queue = IndexQueue()
    for index in range(5):
        queue.put(index)
    queue.put([5, 6])
    assert queue.get(100).tolist() == list(range(7))


def test_a_read_returns_at_most_the_maximum_and_leaves_the_rest():
    queue = IndexQueue()
    queue.put(np.arange(10))
    assert queue.get(4).tolist() == [0, 1, 2, 3]
    assert len(queue) == 6
    assert queue.get(100).tolist() == [4, 5, 6, 7, 8, 9]


def test_a_read_waits_for_the_first_record():
    queue = IndexQueue()
    got = []
    reader = threading.Thread(target=lambda: got.append(queue.get(10).tolist()))
    reader.start()
    reader.join(0.1)
    assert reader.is_alive() and not got
    queue.put(3)
    reader.join(5)
    assert got == [[3]]


def test_what_waits_is_handed_out_before_a_stop():
    queue = IndexQueue()
    queue.put([1, 2])
    queue.stop()
    assert queue.get(10).tolist() == [1, 2]
    assert len(queue.get(10)) == 0
    assert len(queue) == 0


def test_each_stop_ends_one_reader():
    queue = IndexQueue()
    ended = []

    def read():
        while len(queue.get(10)):
            pass
        ended.append(1)

    readers = [threading.Thread(target=read, daemon=True) for _ in range(4)]
    for reader in readers:
        reader.start()
    queue.stop(3)
    for _ in range(100):
        if len(ended) == 3:
            break
        time.sleep(0.05)
    assert len(ended) == 3
    queue.stop(1)
    for reader in readers:
        reader.join(5)
    assert len(ended) == 4


def test_the_newest_comes_first():
    queue = NewestFirstQueue()
    queue.put([1, 2])
    queue.put(3)
    assert len(queue) == 3
    assert queue.get().tolist() == [3]
    queue.put(4)
    assert [queue.get().item() for _ in range(3)] == [4, 2, 1]
    assert len(queue) == 0


def test_what_was_sent_before_the_end_of_a_process_is_handed_out_before_it():
    queue = NewestFirstQueue()
    queue.put([1, 2, 7 | ENDED, 3, 8 | ENDED, 4])
    assert [queue.get().item() for _ in range(4)] == [2, 1, 7 | ENDED, 3]
    queue.put(5)
    assert [queue.get().item() for _ in range(3)] == [8 | ENDED, 5, 4]


def test_a_stop_ends_a_reader_of_the_newest_first():
    queue = NewestFirstQueue()
    queue.put(1)
    queue.stop()
    assert queue.get().tolist() == [1]
    assert len(queue.get()) == 0


def test_a_queue_whose_writers_are_closed_ends_its_readers():
    queue = IndexQueue()
    queue.put(1)
    queue.writer.close()
    assert queue.get(10).tolist() == [1]
    assert len(queue.get(10)) == 0


def test_writing_to_a_queue_nobody_reads_is_an_error():
    queue = IndexQueue()
    queue.reader.close()
    with pytest.raises(queues.ServerGone):
        queue.put(1)


def test_a_queue_has_the_room_that_it_was_given():
    queue = RecordQueue(np.dtype(np.uint64), 2**20)
    room = fcntl.fcntl(queue.writer.fileno(), fcntl.F_GETPIPE_SZ)
    if room < 2**20:
        pytest.skip("the system gives no more room")
    for _ in range(256):
        queue.put(np.arange(512))  # 1 MiB in all, which nobody reads
    assert len(queue) == 2**17


def test_records_of_many_fields():
    queue = RecordQueue(EPISODE)
    queue.put((3, 1000, -20.5))
    queue.put((4, 1, 2.0**60))
    assert queue.get(10).tolist() == [(3, 1000, -20.5), (4, 1, 2.0**60)]


def _put_many(queue, first, count):
    for index in range(first, first + count):
        queue.put(index)


def test_many_processes_write_whole_records_and_each_in_its_order():
    queue = IndexQueue()
    count = 2000
    context = multiprocessing.get_context("forkserver")
    writers = [context.Process(target=_put_many, args=(queue, number * 10_000, count)) for number in range(3)]
    for writer in writers:
        writer.start()
    got: list[int] = []
    while len(got) < 3 * count:
        got += queue.get(64).tolist()
    for writer in writers:
        writer.join()
    for number in range(3):
        mine = [index for index in got if index // 10_000 == number]
        assert mine == list(range(number * 10_000, number * 10_000 + count))


def test_an_index_never_looks_like_another_kind_of_record():
    memory = RolloutBuffers(Config(num_agents=4096, max_training_queue=10_000, t_max=1000), (1,), "uint8", 2)
    for kind in (RELEASED, ADDED, REMOVED):
        assert memory.flat_states.shape[0] < kind and kind & ~KIND == 0
    assert len({0, RELEASED, ADDED, REMOVED}) == 4


def _memory(**settings):
    config = Config(num_agents=3, t_max=5, max_training_queue=6, **settings)
    return RolloutBuffers(config, (2, 3, 1), "uint8", 4)


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
    monkeypatch.setattr(queues, "available_bytes", lambda: 50 * 2**20)
    with pytest.raises(UserError, match=r"need 100 MiB of shared memory, and 50 MiB are left here; less of all"):
        queues.SharedMemory(100 * 2**20, "less of all")
    assert queues.SharedMemory(2**20, "").size == 2**20


@pytest.mark.parametrize(("adjustment", "advice"), [("off", "fewer --agents, "), ("fast", "--adjustment off, ")])
def test_what_is_said_to_need_less_memory_does(monkeypatch, adjustment, advice):
    """With adjustment there is room for 128 agents, however few the run begins with."""
    monkeypatch.setattr(queues, "available_bytes", lambda: 2**20)

    def needed(**changes) -> int:
        settings = {"num_agents": 8, "adjustment": adjustment, "t_max": 20, **changes}
        with pytest.raises(UserError, match=advice if not changes else "need less") as refused:
            queues.RolloutBuffers(Config(**settings), (84, 84, 4), "uint8", 6)
        return int(re.search(r"need (\d+) MiB", str(refused.value))[1])

    assert needed(t_max=10) < needed()
    if adjustment == "off":
        assert needed(num_agents=4, max_training_queue=50) < needed() and needed(max_training_queue=20) < needed()
    else:
        assert needed(num_agents=4) == needed()
        assert max(needed(adjustment="off"), needed(max_agents=64)) < needed()


def test_more_memory_than_the_machine_has_is_refused_before_it_is_taken():
    config = Config(num_agents=4096, t_max=1000, max_training_queue=10_000)
    with pytest.raises(UserError, match=r"need \d+ MiB of shared memory"):
        RolloutBuffers(config, (840, 840, 4), "uint8", 6)


def test_answers_reach_the_right_process_in_one_message():
    memory = RolloutBuffers(Config(num_agents=5, max_training_queue=5), (2,), "float32", 2)
    answers = ReplyPipes(memory, np.array([0, 1, 2, 0, 1]))
    readers = [answers.open(process) for process in range(3)]
    answers.predicted(np.array([4, 0, 3, 1], np.uint32))
    answers.released(memory.slots_of(1)[1])
    answers.added(2)
    answers.removed(3)
    read = [np.frombuffer(os.read(reader.fileno(), 4096), INDEX).tolist() for reader in readers]
    assert read == [[0, 3, REMOVED | 3], [4, 1, RELEASED | 3], [ADDED | 2]]


def test_answers_to_a_process_that_has_ended_are_dropped():
    memory = RolloutBuffers(Config(num_agents=2), (2,), "float32", 2)
    answers = ReplyPipes(memory, np.array([0, 1]))
    gone = answers.open(0)
    here = answers.open(1)
    gone.close()
    answers.predicted(np.array([0, 1], np.uint32))
    assert os.read(here.fileno(), 100) == np.array([1], INDEX).tobytes()
    answers.close(1)
    answers.predicted(np.array([1], np.uint32))
    assert os.read(here.fileno(), 100) == b""


def test_memory_and_pipes_need_no_room_in_dev_shm():
    code = """
import subprocess, sys
from ga3c_tf.config import Config
from ga3c_tf.rollouts.queues import RolloutBuffers
before = set(__import__("os").listdir("/dev/shm"))
memory = RolloutBuffers(Config(), (84, 84, 4), "uint8", 6)
memory.states[...] = 1
assert set(__import__("os").listdir("/dev/shm")) == before
print(memory.states.nbytes)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 32 * 4 * 6 * 84 * 84 * 4


def test_a_reader_ends_though_more_keeps_coming():
    queue = IndexQueue()
    queue.put([1, 2])
    queue.stop()
    assert queue.get(10).tolist() == [1, 2]
    queue.put([3])
    assert len(queue.get(10)) == 0
    assert queue.get(10).tolist() == [3]  # another reader's

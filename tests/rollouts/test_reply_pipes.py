"""Replies to the agents: the right process, processes that have ended, and the kinds of records."""

import os

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.rollouts.buffers import RolloutBuffers
from ga3c_tf.rollouts.queues import INDEX
from ga3c_tf.rollouts.reply_pipes import ADDED, KIND, RELEASED, REMOVED, ReplyPipes


def test_an_index_never_looks_like_another_kind_of_record():
    memory = RolloutBuffers(Config(num_agents=4096, max_training_queue=10_000, t_max=1000), (1,), "uint8", 2)
    for kind in (RELEASED, ADDED, REMOVED):
        assert memory.flat_states.shape[0] < kind and kind & ~KIND == 0
    assert len({0, RELEASED, ADDED, REMOVED}) == 4


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

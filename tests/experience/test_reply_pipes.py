"""Replies to the agents: the right process, processes that have ended, and the kinds of records."""

import os

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.contracts import Prediction
from ga3c_tf.experience.queues import INDEX, MESSAGE
from ga3c_tf.experience.reply_pipes import ADDED, KIND, RELEASED, REMOVED, ReplyPipes
from ga3c_tf.experience.spec import EnvironmentSpec

SPEC = EnvironmentSpec((2,), "float32", 2)


def test_an_index_never_looks_like_another_kind_of_record():
    config = Config(num_agents=4096, max_training_queue=10_000, t_max=1000)
    memory = RolloutBuffers(config, EnvironmentSpec((1,), "uint8", 2))
    for kind in (RELEASED, ADDED, REMOVED):
        assert memory.flat_states.shape[0] < kind and kind & ~KIND == 0
    assert len({0, RELEASED, ADDED, REMOVED}) == 4


def requests_of(memory, agents, generation=0):
    requests = np.zeros(len(agents), MESSAGE)
    requests["index"] = [memory.state_index(memory.slots_of(agent)[0], 0) for agent in agents]
    requests["generation"] = generation
    return requests


def prediction_of(agents, version=1):
    """A prediction that says for which agent it is."""
    policy = np.array([[agent / 10, 1 - agent / 10] for agent in agents], np.float32)
    return Prediction(policy, np.array(agents, np.float32), version)


def test_answers_reach_the_right_process_in_one_message():
    memory = RolloutBuffers(Config(num_agents=5, max_training_queue=5), SPEC)
    replies = ReplyPipes(memory, np.array([0, 1, 2, 0, 1]))
    readers = [replies.open(process) for process in range(3)]
    agents = [4, 0, 3, 1]
    replies.answer(requests_of(memory, agents), prediction_of(agents))
    replies.released(memory.slots_of(1)[1], 0)
    replies.added(2)
    replies.removed(3)
    read = [np.frombuffer(os.read(reader.fileno(), 4096), INDEX).tolist() for reader in readers]
    assert read == [[0, 3, REMOVED | 3], [4, 1, RELEASED | 3], [ADDED | 2]]
    assert memory.value.tolist() == [0, 1, 0, 3, 4] and memory.version.tolist() == [1, 1, 0, 1, 1]


def test_answers_to_a_process_that_has_ended_are_dropped():
    memory = RolloutBuffers(Config(num_agents=2), SPEC)
    replies = ReplyPipes(memory, np.array([0, 1]))
    gone = replies.open(0)
    here = replies.open(1)
    gone.close()
    replies.answer(requests_of(memory, [0, 1]), prediction_of([0, 1]))
    assert os.read(here.fileno(), 100) == np.array([1], INDEX).tobytes()
    replies.close(1)
    replies.answer(requests_of(memory, [1]), prediction_of([1]))
    assert os.read(here.fileno(), 100) == b""


def test_messages_of_a_dead_process_are_not_answered_to_its_successor():
    memory = RolloutBuffers(Config(num_agents=2), SPEC)
    replies = ReplyPipes(memory, np.array([0, 1]))
    replies.open(0)
    other = replies.open(1)
    replies.close(0)
    successor = replies.open(0)
    slot = memory.slots_of(0)[0]
    assert replies.generation_of(0) == 1 and not replies.is_valid(slot, 0) and replies.is_valid(slot, 1)
    replies.answer(requests_of(memory, [0, 1]), prediction_of([0, 1], version=5))
    replies.released(slot, 0)
    assert not successor.poll(0)  # it has all slots
    assert memory.version.tolist() == [0, 5]  # the row of the successor's agent is not touched
    assert os.read(other.fileno(), 100) == np.array([1], INDEX).tobytes()
    replies.answer(requests_of(memory, [0], generation=1), prediction_of([0], version=6))
    assert os.read(successor.fileno(), 100) == np.array([0], INDEX).tobytes()
    assert memory.version.tolist() == [6, 5]

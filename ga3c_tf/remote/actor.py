"""The agents of one Ray actor: stepped on their own machine, in batches. Knows nothing of Ray, nor of TensorFlow."""

from __future__ import annotations

from multiprocessing import connection
from typing import NamedTuple

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.rollouts.queues import ADDED, EPISODE, INDEX, KIND, RecordQueue, RolloutBuffers
from ga3c_tf.workers.agent import Agent
from ga3c_tf.workers.agent_process import AgentQueues, AgentRunner


class Orders(NamedTuple):
    """What lets agents go on. Agents and slots are counted from those of the actor.

    Attributes:
        records: uint32 [n], of the kinds that `queues.ReplyPipes` writes.
        policy: float32 [p, num_actions], for each record that says that a prediction is there.
        value: float32 [p].
        version: int64 [p].
        streams: int64 [a], the random stream for each record that adds an agent.
    """

    records: np.ndarray
    policy: np.ndarray
    value: np.ndarray
    version: np.ndarray
    streams: np.ndarray


class Outcome(NamedTuple):
    """What came of one call.

    Attributes:
        requests: int64 [r], indices into the memory's `flat_states` of states that want a prediction.
        states: [r, *state_shape], those states: each crosses the network once, and is trained on from where it lands.
        slots: uint32 [s], of the segments that are whole.
        columns: [s, ...] each, the columns of those segments as the memory has them, by name.
        episodes: EPISODE [e], those that ended.
        steps: int64 [agents], taken by each agent so far.
    """

    requests: np.ndarray
    states: np.ndarray
    slots: np.ndarray
    columns: dict[str, np.ndarray]
    episodes: np.ndarray
    steps: np.ndarray


class RemoteAgents:
    """Several agents, which work as those of a local agent process do, on memory of their own.

    Args:
        config: the run's settings.
        agents: how many.
        state_shape, state_dtype, num_actions: as the server's memory has them.
    """

    def __init__(self, config: Config, agents: int, state_shape: tuple[int, ...], state_dtype: str, num_actions: int):
        own = config.replace(
            num_agents=agents, max_training_queue=agents * config.segments_per_agent, adjustment="off", remote_agents=0
        )
        self._memory = RolloutBuffers(own, state_shape, state_dtype, num_actions)
        self._segments = _Sent(INDEX)
        self._episodes = _Sent(EPISODE)
        nowhere, _ = connection.Pipe()
        queues = AgentQueues(_Sent(INDEX), self._segments, self._episodes, nowhere)
        self._process = AgentRunner(0, own, self._memory, queues, Agent)

    def step(self, orders: Orders) -> Outcome:
        """Let the agents go on that `orders` concern, each until it needs another prediction or slot."""
        memory = self._memory
        records = orders.records
        predicted = records[(records & KIND) == 0]
        memory.policy[predicted] = orders.policy
        memory.value[predicted] = orders.value
        memory.version[predicted] = orders.version
        memory.streams[records[(records & KIND) == ADDED] & ~np.uint32(KIND)] = orders.streams
        requests = np.array(self._process.handle(records.tolist()), np.int64)
        slots = self._segments.take()
        return Outcome(
            requests,
            memory.flat_states[requests],
            slots,
            {name: column[slots] for name, column in memory.columns.items()},
            self._episodes.take(),
            memory.steps.copy(),
        )


class _Sent(RecordQueue):
    """Keeps what agents write to a queue, instead of a pipe: it leaves with the outcome of the call."""

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype
        self._records: list = []

    def put(self, record) -> None:
        self._records.append(record)

    def take(self) -> np.ndarray:
        """Return all records since the last call."""
        records = np.array(self._records, self.dtype)
        self._records.clear()
        return records

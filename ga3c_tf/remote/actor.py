"""The agents of a Ray actor, stepped in batches on their own machine. Imports neither Ray nor TensorFlow."""

from __future__ import annotations

from multiprocessing import connection
from typing import NamedTuple

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.contracts import NO_CARRY
from ga3c_tf.experience.queues import EPISODE, INDEX, RecordQueue
from ga3c_tf.experience.reply_pipes import ADDED, KIND
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.workers.agent import TrainingAgent
from ga3c_tf.workers.agent_process import AgentQueues, AgentRunner


class Orders(NamedTuple):
    """Input of one call: records that let agents continue. Agents and slots are counted from the actor's
    first ones.

    Attributes:
        records: uint32 [n], of the kinds that `ReplyPipes` writes.
        policy: float32 [p, num_actions], policy for each record that announces a prediction.
        value: float32 [p], value of each of these predictions.
        version: int64 [p], version of the model that made each of them.
        next_carry: float32 [p, H], carry of the network after the state of each of them.
        streams: int64 [a], random stream for each record that adds an agent.
    """

    records: np.ndarray
    policy: np.ndarray
    value: np.ndarray
    version: np.ndarray
    next_carry: np.ndarray
    streams: np.ndarray


class Outcome(NamedTuple):
    """Result of one call.

    Attributes:
        requests: int64 [r], indices of the states that need a prediction in `flat_states` of the actor's
            memory.
        states: [r, *state_shape], those states. Each crosses the network once: the server also trains on this
            copy.
        carry: float32 [r, H], carry of the network before each of these states.
        slots: uint32 [s], slots of the segments that are complete.
        columns: by name, [s, ...] each, the columns of those segments as in the memory.
        episodes: EPISODE [e], episodes that have ended.
        steps: int64 [agents], steps taken by each agent so far.
    """

    requests: np.ndarray
    states: np.ndarray
    carry: np.ndarray
    slots: np.ndarray
    columns: dict[str, np.ndarray]
    episodes: np.ndarray
    steps: np.ndarray


class RemoteAgents:
    """Several agents that work like those of a local agent process, but on memory of their own.

    Args:
        config: settings of the run.
        agents: number of agents.
        spec, initial_carry: as in the server's memory.
    """

    def __init__(
        self,
        config: Config,
        agents: int,
        spec: EnvironmentSpec,
        initial_carry: np.ndarray = NO_CARRY,
    ):
        actor_config = config.replace(
            num_agents=agents,
            max_training_queue=agents * config.segments_per_agent,
            adjustment="off",
            remote_agents=0,
        )
        self._memory = RolloutBuffers(actor_config, spec, initial_carry=initial_carry)
        self._segments = _Sent(INDEX)
        self._episodes = _Sent(EPISODE)
        nowhere, _ = connection.Pipe()
        queues = AgentQueues(_Sent(INDEX), self._segments, self._episodes, nowhere)
        self._process = AgentRunner(0, actor_config, self._memory, queues, TrainingAgent)

    def step(self, orders: Orders) -> Outcome:
        """Resume the agents that `orders` concern, each until it needs another prediction or slot."""
        memory = self._memory
        records = orders.records
        predicted = records[(records & KIND) == 0]
        memory.policy[predicted] = orders.policy
        memory.value[predicted] = orders.value
        memory.version[predicted] = orders.version
        memory.next_carry[predicted] = orders.next_carry
        memory.streams[records[(records & KIND) == ADDED] & ~np.uint32(KIND)] = orders.streams
        requests = np.array(self._process.handle(records.tolist()), np.int64)
        slots = self._segments.take()
        return Outcome(
            requests,
            memory.flat_states[requests],
            memory.carry[memory.agents_of(requests)],
            slots,
            {name: column[slots] for name, column in memory.columns.items()},
            self._episodes.take(),
            memory.steps.copy(),
        )


class _Sent(RecordQueue):
    """Keeps the records that agents write, instead of a pipe, until sent with the outcome of a call."""

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype
        self._records: list = []

    def put(self, record) -> None:
        self._records.append(record)

    def take(self) -> np.ndarray:
        """Return all records written since the last call."""
        records = np.array(self._records, self.dtype)
        self._records.clear()
        return records

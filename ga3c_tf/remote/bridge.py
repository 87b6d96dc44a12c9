"""The bridge: an agent process of the server whose agents live in a Ray actor, on another machine.

To the server it is an agent process like any other: it reads the same records, fills the same shared memory, writes to
the same queues, and is replaced, with a new actor, when it ends by itself.
"""

from __future__ import annotations

import os
import select
import time
from collections import deque
from multiprocessing import connection
from typing import Any

import numpy as np

from ga3c_tf.agent import AgentQueues, errors_told
from ga3c_tf.config import Config
from ga3c_tf.queues import ADDED, INDEX, KIND, RELEASED, AgentMemory
from ga3c_tf.remote.actor import Orders, Outcome, RemoteAgents
from ga3c_tf.remote.cluster import connect

IN_FLIGHT = 2
"""Calls of an actor at a time: while one travels, the actor works on the other."""


class Bridge:
    """Carries orders to an actor and what came of them back.

    Args:
        number: of this agent process.
        memory: the server's.
        queues: the server's.
        agents: the agents that live in the actor, one after another.
        call: sends orders to the actor; returns a reference to the outcome.
        wait: waits for the outcome of a reference.
    """

    def __init__(self, number: int, memory: AgentMemory, queues: AgentQueues, agents: range, call, wait):
        self._number, self._memory, self._queues, self._agents = number, memory, queues, agents
        self._call, self._wait = call, wait
        self._first_slot = agents.start * memory.slots_per_agent
        self._newest = np.full(len(agents), -1, np.int64)  # state that each agent asked about last
        self._steps = np.zeros(len(agents), np.int64)
        self._calls: deque = deque()

    def run(self, answers: connection.Connection) -> None:
        """Works until the pipe is closed."""
        half = -(-len(self._agents) // IN_FLIGHT) * INDEX.itemsize
        while True:
            if self._calls and (len(self._calls) == IN_FLIGHT or not select.select([answers], [], [], 0)[0]):
                self._take()
                continue
            if not (records := np.frombuffer(os.read(answers.fileno(), half), INDEX)).size:
                return
            self._calls.append((self._call(self._orders(records)), time.monotonic()))
            self._tell_busy()

    def _tell_busy(self) -> None:
        self._memory.busy_since[self._number] = self._calls[0][1] if self._calls else 0.0

    def _orders(self, records: np.ndarray) -> Orders:
        memory, first = self._memory, self._agents.start
        kinds, numbers = records & KIND, records & ~np.uint32(KIND)
        predicted, added = numbers[kinds == 0], numbers[kinds == ADDED]
        own = numbers - np.where(kinds == RELEASED, self._first_slot, first).astype(INDEX)
        return Orders(
            own | kinds,
            memory.policy[predicted],
            memory.value[predicted],
            memory.version[predicted],
            memory.streams[added],
        )

    def _take(self) -> None:
        """Waits for the oldest call, and does what the agents would have done here."""
        reference, began = self._calls.popleft()
        outcome: Outcome = self._wait(reference)
        memory, queues = self._memory, self._queues
        memory.round_trips[self._number] += time.monotonic() - began, 1
        self._tell_busy()
        requests = outcome.requests + self._first_slot * (memory.t_max + 1)
        slots = outcome.slots + INDEX.type(self._first_slot)
        self._store_states(slots, requests, outcome.states)
        memory.lengths[slots], memory.actions[slots] = outcome.lengths, outcome.actions
        memory.returns[slots], memory.versions[slots] = outcome.returns, outcome.versions
        here = slice(self._agents.start, self._agents.stop)
        np.add.at(memory.sent, slots // memory.slots_per_agent, outcome.lengths)
        memory.steps[here] += outcome.steps - self._steps
        self._steps = outcome.steps
        for slot in slots:
            queues.training.put(slot)
        for agent, length, score in outcome.episodes.tolist():
            queues.episodes.put((agent + self._agents.start, length, score))
        if len(requests):
            queues.prediction.put(requests)

    def _store_states(self, slots: np.ndarray, requests: np.ndarray, states: np.ndarray) -> None:
        """Puts each state where its agent would have written it.

        A segment that follows another begins with the state that the other ended in: that came with an earlier request.
        Such a segment may be whole without a request of its own, where its first step ends the episode.
        """
        memory, slot_states = self._memory, self._memory.t_max + 1
        later = requests[requests % slot_states > 0]
        for slot in {*slots.tolist(), *(later // slot_states).tolist()}:
            before = self._newest[slot // memory.slots_per_agent - self._agents.start]
            if before // slot_states != slot:
                memory.states[slot, 0] = memory.flat_states[before]
        memory.flat_states[requests] = states
        self._newest[memory.agents_of(requests) - self._agents.start] = requests


def run_bridge(
    number: int,
    config: Config,
    memory: AgentMemory,
    queues: AgentQueues,
    agents: range,
    address: str,
    answers: connection.Connection,
) -> None:
    """Agent process `number`, whose agents live in an actor of the cluster at `address`. Target of a Process.

    An error, the loss of the actor's machine included, ends the process as `run_agents` says.
    """
    with errors_told(queues.errors):
        connect(address)
        import ray

        states, policy = memory.states, memory.policy
        actor: Any = (
            ray.remote(RemoteAgents)
            .options(num_cpus=1, scheduling_strategy="SPREAD")
            .remote(config, len(agents), states.shape[2:], states.dtype.name, policy.shape[1])
        )
        memory.nodes[number] = ray.get(actor.__ray_call__.remote(_node))
        Bridge(number, memory, queues, agents, actor.step.remote, ray.get).run(answers)


def _node(agents: RemoteAgents) -> bytes:
    """Address and id of the machine that the actor is on."""
    import ray

    return f"{ray.util.get_node_ip_address()}-{ray.get_runtime_context().get_node_id()[:8]}".encode()

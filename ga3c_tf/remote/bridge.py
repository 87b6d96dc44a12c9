"""The bridge: an agent process of the server whose agents live in a Ray actor, on another machine.

To the server it is an agent process like any other: it reads the same records, fills the same shared memory, writes to
the same queues, and is replaced, with a new actor, when it ends by itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from multiprocessing import connection
from typing import Any

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.remote.actor import Orders, Outcome, RemoteAgents
from ga3c_tf.remote.cluster import connect
from ga3c_tf.rollouts.queues import ADDED, INDEX, KIND, RELEASED, RolloutBuffers
from ga3c_tf.workers.agent_process import AgentQueues, errors_told


class Bridge:
    """Carries orders to an actor and what came of them back.

    Args:
        number: of this agent process.
        memory: the server's.
        queues: the server's.
        agents: the agents that live in the actor, one after another.
        call: has the actor carry out orders; returns the outcome.
    """

    def __init__(
        self,
        number: int,
        memory: RolloutBuffers,
        queues: AgentQueues,
        agents: range,
        call: Callable[[Orders], Outcome],
    ):
        self._number = number
        self._memory = memory
        self._queues = queues
        self._agents = agents
        self._call = call
        self._first_slot = agents.start * memory.slots_per_agent
        self._newest = np.full(len(agents), -1, np.int64)  # state that each agent asked about last
        self._steps = np.zeros(len(agents), np.int64)
        self._asked = np.zeros(memory.num_agents, bool)  # agents that wait for a prediction

    def run(self, answers: connection.Connection) -> None:
        """Work until the pipe is closed.

        One call at a time: two would hide the network's delay, but split the agents between them, and a call costs the
        processors more than the states in it (docs/scaling.md).
        """
        memory = self._memory
        number = self._number
        kept = np.empty(0, INDEX)
        while (records := np.frombuffer(os.read(answers.fileno(), 4096), INDEX)).size:
            records = np.concatenate([kept, records])
            if not self._lets_somebody_go_on(records):
                kept = records
                continue
            kept = kept[:0]
            began = time.monotonic()
            memory.busy_since[number] = began
            outcome = self._call(self._orders(records))
            memory.busy_since[number] = 0.0
            memory.round_trips[number, 0] += time.monotonic() - began
            memory.round_trips[number, 1] += 1
            self._take(outcome)

    def _lets_somebody_go_on(self, records: np.ndarray) -> bool:
        """Return whether an agent can go on: free slots for agents that wait for a prediction can wait with them."""
        slots = records[(records & KIND) == RELEASED] & ~np.uint32(KIND)
        return len(slots) < len(records) or not self._asked[slots // self._memory.slots_per_agent].all()

    def _orders(self, records: np.ndarray) -> Orders:
        memory = self._memory
        first = self._agents.start
        kinds = records & KIND
        numbers = records & ~np.uint32(KIND)
        predicted = numbers[kinds == 0]
        added = numbers[kinds == ADDED]
        self._asked[predicted] = False
        own = numbers - np.where(kinds == RELEASED, self._first_slot, first).astype(INDEX)
        return Orders(
            own | kinds,
            memory.policy[predicted],
            memory.value[predicted],
            memory.version[predicted],
            memory.streams[added],
        )

    def _take(self, outcome: Outcome) -> None:
        """Do what the agents would have done here."""
        memory = self._memory
        queues = self._queues
        requests = outcome.requests + self._first_slot * (memory.t_max + 1)
        slots = outcome.slots + INDEX.type(self._first_slot)
        self._store_states(slots, requests, outcome.states)
        for name, column in memory.columns.items():
            column[slots] = outcome.columns[name]
        here = slice(self._agents.start, self._agents.stop)
        np.add.at(memory.sent, slots // memory.slots_per_agent, outcome.columns["lengths"])
        memory.steps[here] += outcome.steps - self._steps
        self._steps = outcome.steps
        for slot in slots:
            queues.training.put(slot)
        for agent, length, score in outcome.episodes.tolist():
            queues.episodes.put((agent + self._agents.start, length, score))
        if len(requests):
            self._asked[memory.agents_of(requests)] = True
            queues.prediction.put(requests)

    def _store_states(self, slots: np.ndarray, requests: np.ndarray, states: np.ndarray) -> None:
        """Put each state where its agent would have written it.

        A segment that follows another begins with the state that the other ended in: that came with an earlier request.
        Such a segment may be whole without a request of its own, where its first step ends the episode.
        """
        memory = self._memory
        slot_states = self._memory.t_max + 1
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
    memory: RolloutBuffers,
    queues: AgentQueues,
    agents: range,
    address: str,
    answers: connection.Connection,
) -> None:
    """Run agent process `number`, whose agents live in an actor of the cluster at `address`. Target of a Process.

    An error, the loss of the actor's machine included, ends the process as `run_agents` says.
    """
    with errors_told(queues.errors):
        connect(address)
        import ray

        states = memory.states
        policy = memory.policy
        actor: Any = (
            ray.remote(RemoteAgents)
            .options(num_cpus=1, scheduling_strategy="SPREAD")
            .remote(config, len(agents), states.shape[2:], states.dtype.name, policy.shape[1])
        )
        memory.nodes[number] = ray.get(actor.__ray_call__.remote(_node))
        Bridge(number, memory, queues, agents, lambda orders: ray.get(actor.step.remote(orders))).run(answers)


def _node(agents: RemoteAgents) -> bytes:
    """Address and id of the machine that the actor is on."""
    import ray

    return f"{ray.util.get_node_ip_address()}-{ray.get_runtime_context().get_node_id()[:8]}".encode()

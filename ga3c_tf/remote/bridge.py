"""The bridge: an agent process of the server whose agents run in a Ray actor, on another machine.

To the server it is an agent process like any other: it reads the same records, fills the same shared memory
and writes to the same queues. If it ends unexpectedly, it is replaced, with a new actor.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from multiprocessing import connection
from typing import Any

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.queues import INDEX
from ga3c_tf.experience.reply_pipes import ADDED, KIND, RELEASED
from ga3c_tf.remote.actor import Orders, Outcome, RemoteAgents
from ga3c_tf.remote.cluster import connect
from ga3c_tf.workers.agent_process import AgentQueues, errors_told


class Bridge:
    """Sends orders to an actor, and stores the outcome in the server's memory and queues.

    Args:
        number: number of this agent process.
        memory: buffers of the server.
        queues: queues of the server.
        agents: numbers of the agents that run in the actor.
        call: lets the actor carry out orders, and returns the outcome.
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
        self._newest = np.full(len(agents), -1, np.int64)  # index of each agent's last requested state
        self._steps = np.zeros(len(agents), np.int64)
        self._asked = np.zeros(memory.num_agents, bool)  # agents that wait for a prediction

    def run(self, answers: connection.Connection) -> None:
        """Pass records to the actor until the pipe is closed.

        There is one call at a time. Two would hide the network's delay, but each would have only a part of
        the agents, and a call takes more processor time than the states in it (docs/scaling.md).
        """
        memory = self._memory
        number = self._number
        pending = np.empty(0, INDEX)
        while (records := np.frombuffer(os.read(answers.fileno(), 4096), INDEX)).size:
            records = np.concatenate([pending, records])
            if not self._lets_somebody_go_on(records):
                pending = records
                continue
            pending = pending[:0]
            began = time.monotonic()
            memory.busy_since[number] = began
            outcome = self._call(self._orders(records))
            memory.busy_since[number] = 0.0
            memory.round_trips[number, 0] += time.monotonic() - began
            memory.round_trips[number, 1] += 1
            self._take(outcome)

    def _lets_somebody_go_on(self, records: np.ndarray) -> bool:
        """Return whether these records let an agent continue.

        Free slots for agents that wait for a prediction do not: they can be sent later, with the prediction.
        """
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
        local_numbers = numbers - np.where(kinds == RELEASED, self._first_slot, first).astype(INDEX)
        return Orders(
            local_numbers | kinds,
            memory.policy[predicted],
            memory.value[predicted],
            memory.version[predicted],
            memory.next_carry[predicted],
            memory.streams[added],
        )

    def _take(self, outcome: Outcome) -> None:
        """Write the outcome to memory and queues, as agents on this machine would have done."""
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
            asking = memory.agents_of(requests)
            self._asked[asking] = True
            memory.carry[asking] = outcome.carry
            queues.prediction.put(requests)

    def _store_states(self, slots: np.ndarray, requests: np.ndarray, states: np.ndarray) -> None:
        """Write each state to the place where its agent would have written it.

        A segment that follows another begins with the last state of the other, which came with an earlier
        request. If its first step ends the episode, such a segment is complete without a request of its own.
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
    """Run agent process `number`, whose agents run in an actor of the cluster at `address`. Target of a
    Process.

    An error, including the loss of the actor's machine, ends the process as described in `run_agents`.
    """
    with errors_told(queues.errors):
        connect(address)
        import ray

        actor: Any = (
            ray.remote(RemoteAgents)
            .options(num_cpus=1, scheduling_strategy="SPREAD")
            .remote(config, len(agents), memory.spec, memory.initial_carry)
        )
        memory.nodes[number] = ray.get(actor.__ray_call__.remote(_node))
        Bridge(number, memory, queues, agents, lambda orders: ray.get(actor.step.remote(orders))).run(answers)


def _node(agents: RemoteAgents) -> bytes:
    """Return the address and the id of the machine that runs the actor."""
    import ray

    return f"{ray.util.get_node_ip_address()}-{ray.get_runtime_context().get_node_id()[:8]}".encode()

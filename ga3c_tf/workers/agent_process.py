"""The process that runs agents: resumes each agent when its request is answered. Never imports TensorFlow."""

from __future__ import annotations

import contextlib
import os
import select
import time
import traceback
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from multiprocessing import connection

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.environments.environment import make_environment
from ga3c_tf.environments.random_streams import AGENTS, random_stream, seed_global_generators
from ga3c_tf.errors import Diverged
from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.queues import INDEX, ServerGone, Writable
from ga3c_tf.experience.reply_pipes import ADDED, KIND, RELEASED, REMOVED
from ga3c_tf.host.scheduling import schedule_as
from ga3c_tf.workers.agent import TrainingAgent
from ga3c_tf.workers.supervisor import DIVERGED


@dataclass(frozen=True)
class AgentQueues:
    """Queues that agents write to (pictured in docs/architecture.md), and a pipe for an error's traceback."""

    prediction: Writable
    training: Writable
    episodes: Writable
    errors: connection.Connection


class AgentRunner:
    """Drives the agents of one process, according to the records on its pipe (`ReplyPipes`)."""

    def __init__(
        self,
        number: int,
        config: Config,
        memory: RolloutBuffers,
        queues: AgentQueues,
        kind: type[TrainingAgent],
    ):
        self._number = number
        self._kind = kind
        self._config = config
        self._memory = memory
        self._queues = queues
        self._runs: dict[int, Generator[int | None, None, None]] = {}
        self._free_slots: dict[int, deque[int]] = {}
        self._without_slot: set[int] = set()
        self._leaving: set[int] = set()

    def run(self, answers: connection.Connection) -> None:
        """Handle records until the pipe is closed."""
        while records := np.frombuffer(os.read(answers.fileno(), 4096), INDEX).tolist():
            if requests := self.handle(records):
                self._queues.prediction.put(requests)

    def handle(self, records: list[int]) -> list[int]:
        """Resume the agents of these records; return the indices of the states that need a prediction."""
        busy_since = self._memory.busy_since
        requests = []
        for record in records:
            busy_since[self._number] = time.monotonic()
            agent = self._agent_to_run(record & KIND, record & ~KIND)
            if agent is None:
                continue
            request = next(self._runs[agent])
            if request is None:
                self._without_slot.add(agent)
            else:
                requests.append(request)
        busy_since[self._number] = 0.0
        return requests

    def _agent_to_run(self, kind: int, index: int) -> int | None:
        """Handle one record; return the agent that can now continue, if any."""
        if kind == RELEASED:
            agent = index // self._memory.slots_per_agent
            self._free_slots[agent].append(index)
            if agent not in self._without_slot:
                return None
            self._without_slot.remove(agent)
            return agent
        if kind == ADDED:
            return self._add(index)
        if kind == REMOVED:
            self._leaving.add(index)
            if index in self._without_slot:
                self._without_slot.remove(index)
                self._remove(index)
            return None
        if index in self._leaving:  # it could not be removed before, while its prediction was pending
            self._remove(index)
            return None
        return index

    def _add(self, agent: int) -> int | None:
        if agent in self._leaving:
            self._leaving.remove(agent)
            return None
        queues = self._queues
        free_slots = self._free_slots.setdefault(agent, deque(self._memory.slots_of(agent)))
        self._runs[agent] = new_agent(
            self._kind, agent, self._config, self._memory, queues.training, queues.episodes, free_slots
        ).run()
        return agent

    def _remove(self, agent: int) -> None:
        self._leaving.remove(agent)
        self._runs.pop(agent).close()


def new_agent(
    kind: type[TrainingAgent],
    number: int,
    config: Config,
    memory: RolloutBuffers,
    training_queue: Writable,
    episode_queue: Writable,
    free_slots: deque[int],
) -> TrainingAgent:
    """Return agent `number` with a new environment, and the random stream that the memory has for it."""
    stream = int(memory.streams[number])
    seed_global_generators(config.seed, AGENTS, stream)
    environment = make_environment(config)
    seed = random_stream(config, stream)
    return kind(number, config, environment, memory, training_queue, episode_queue, free_slots, seed)


def run_agents(
    number: int,
    config: Config,
    memory: RolloutBuffers,
    queues: AgentQueues,
    kind: type[TrainingAgent],
    answers: connection.Connection,
) -> None:
    """Run agent process `number`, with agents of class `kind`. Target of a Process.

    An error ends the process with exit code 1, after its traceback was sent through the error pipe.
    """
    with errors_told(queues.errors):
        # The forkserver may come from an earlier training with another scheduling.
        schedule_as(config.scheduling)
        AgentRunner(number, config, memory, queues, kind).run(answers)


@contextlib.contextmanager
def errors_told(errors: connection.Connection) -> Iterator[None]:
    """Send the traceback of an error in the block through this pipe, and end the process with exit code 1.

    Of too many skipped updates only the message is sent, and the exit code is `DIVERGED`. `ServerGone` only
    ends the block, because nobody is left to read a traceback.
    """
    try:
        yield
    except ServerGone:
        pass
    except Diverged as error:
        errors.send_bytes(str(error).encode())
        raise SystemExit(DIVERGED) from None
    except BaseException:
        errors.send_bytes(traceback.format_exc().encode()[-select.PIPE_BUF + 64 :])
        raise SystemExit(1) from None

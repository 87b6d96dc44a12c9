"""The way back from the server to the agents: one pipe for replies per agent process."""

from __future__ import annotations

import contextlib
import os
import threading
from multiprocessing import connection

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.contracts import Prediction
from ga3c_tf.experience.queues import INDEX

RELEASED = 1 << 30
ADDED = 2 << 30
REMOVED = 3 << 30
"""Kinds of records on a reply pipe: a segment slot is free again, an agent begins, an agent ends. A record
without these bits is the number of an agent whose prediction is ready."""
KIND = 3 << 30


def assigned_processes(config: Config, processes: int) -> np.ndarray:
    """Return the number of each agent's process, int64 [num_agents].

    Agents on this machine are spread evenly over its processes. Remote agents have one process per actor.

    Args:
        config: settings of the run.
        processes: number of processes with agents on this machine, as returned by `Config.processes`.
    """
    homes = [np.arange(config.most_agents) % processes]
    homes += [np.full(len(agents), processes + number) for number, agents in enumerate(config.remote_actors)]
    return np.concatenate(homes)


class ReplyPipes:
    """Pipes for replies, one per agent process, which tell it of predictions, free slots, and agents to add
    or remove.

    A process ends when its pipe is closed, or when the server ends for any reason. Its successor is of the
    next generation. Messages of an older generation are dropped where they are received, so nobody has to
    wait until those of a dead process have been taken.

    Args:
        memory: buffers shared with the agents.
        homes: int [num_agents], number of each agent's process.
    """

    def __init__(self, memory: RolloutBuffers, homes: np.ndarray):
        self._memory = memory
        self._homes = homes
        self._writers: dict[int, connection.Connection] = {}
        self._generations = np.full(int(homes.max()) + 1, -1)  # by process; the first is of generation 0
        # So that a message is checked and answered in one generation. Also, the descriptor of a closed pipe
        # may soon belong to another file.
        self._lock = threading.Lock()

    def process_of(self, agent: int) -> int:
        """Return the number of an agent's process."""
        return int(self._homes[agent])

    def open(self, process: int) -> connection.Connection:
        """Open a pipe for the next process of this number; return its reading end.

        Messages of the process before it are not valid any more.
        """
        reader, writer = connection.Pipe(duplex=False)
        with self._lock:
            self._writers[process] = writer
            self._generations[process] += 1
        return reader

    def close(self, process: int) -> None:
        """End the process reading this pipe. What its agents are sent is dropped until a pipe opens again."""
        with self._lock:
            self._writers.pop(process).close()

    def generation_of(self, process: int) -> int:
        """Return the generation of the process that reads this pipe."""
        return int(self._generations[process])

    def is_valid(self, slot: int, generation: int) -> bool:
        """Return whether the process that owns a segment slot is still of this generation."""
        agent = slot // self._memory.slots_per_agent
        return bool(self._generations[self._homes[agent]] == generation)

    def answer(self, requests: np.ndarray, prediction: Prediction) -> None:
        """Write predictions to the rows of the agents that asked for them, and tell these agents.

        Requests of a process that has been replaced since are dropped, since its successor may have asked
        already.

        Args:
            requests: MESSAGE [n], indices of states in `memory.flat_states`.
            prediction: the prediction for these states.
        """
        agents = self._memory.agents_of(requests["index"])
        homes = self._homes[agents]
        with self._lock:
            valid = self._generations[homes] == requests["generation"]
            if not valid.all():
                agents = agents[valid]
                homes = homes[valid]
                prediction = prediction.of(valid)
            self._memory.write_predictions(agents, prediction)
            self._write_to_each(homes, agents)

    def released(self, slot: int, generation: int) -> None:
        """Hand a slot back to its agent, unless the process was replaced: its successor has all slots."""
        with self._lock:
            if self.is_valid(slot, generation):
                self._send(slot // self._memory.slots_per_agent, slot | RELEASED)

    def added(self, agent: int) -> None:
        """Let an agent begin, with its random stream in `memory.streams`."""
        with self._lock:
            self._send(agent, agent | ADDED)

    def removed(self, agent: int) -> None:
        """Let an agent end; it gives up its segment and episode."""
        with self._lock:
            self._send(agent, agent | REMOVED)

    def _send(self, agent: int, record: int) -> None:
        """Send a record to an agent's process; the caller holds the lock."""
        self._write(int(self._homes[agent]), np.array(record, INDEX))

    def _write_to_each(self, homes: np.ndarray, records: np.ndarray) -> None:
        """Write each record to the pipe of its process; the caller holds the lock."""
        for process in set(homes.tolist()):
            self._write(process, records[homes == process])

    def _write(self, process: int, records: np.ndarray) -> None:
        if process in self._writers:
            # the system notices by itself when a process has ended
            with contextlib.suppress(BrokenPipeError):
                os.write(self._writers[process].fileno(), records.tobytes())

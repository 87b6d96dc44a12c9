"""The way back from the server to the agents: one pipe for replies per agent process."""

from __future__ import annotations

import contextlib
import os
import threading
from multiprocessing import connection

import numpy as np
from numpy.typing import ArrayLike

from ga3c_tf.config import Config
from ga3c_tf.rollouts.buffers import RolloutBuffers
from ga3c_tf.rollouts.queues import INDEX

RELEASED = 1 << 30
ADDED = 2 << 30
REMOVED = 3 << 30
"""Kinds of records on a reply pipe: a segment slot is free again, an agent begins, an agent ends. A record without
these bits is the number of an agent whose prediction is ready."""
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
    """Pipes for replies, one per agent process, which tell it of predictions, free slots, and agents to add or remove.

    A process ends when its pipe is closed, or when the server ends for any reason.

    Args:
        memory: buffers shared with the agents.
        homes: int [num_agents], number of each agent's process.
    """

    def __init__(self, memory: RolloutBuffers, homes: np.ndarray):
        self._memory = memory
        self._homes = homes
        self._writers: dict[int, connection.Connection] = {}
        self._lock = threading.Lock()  # the descriptor of a closed pipe may soon belong to another file

    def process_of(self, agent: int) -> int:
        """Return the number of an agent's process."""
        return int(self._homes[agent])

    def open(self, process: int) -> connection.Connection:
        """Open a new pipe for process number `process`; return its reading end."""
        reader, self._writers[process] = connection.Pipe(duplex=False)
        return reader

    def close(self, process: int) -> None:
        """End the process that reads this pipe. Records for its agents are dropped until the pipe is opened again."""
        with self._lock:
            self._writers.pop(process).close()

    def predicted(self, agents: np.ndarray) -> None:
        """Tell each of these agents (uint32 [n]) that its prediction is ready."""
        self._send(agents, agents)

    def released(self, slot: int) -> None:
        """Hand a segment slot back to its agent."""
        self._send(slot // self._memory.slots_per_agent, slot | RELEASED)

    def added(self, agent: int) -> None:
        """Let an agent begin, with its random stream in `memory.streams`."""
        self._send(agent, agent | ADDED)

    def removed(self, agent: int) -> None:
        """Let an agent end; it gives up its segment and episode."""
        self._send(agent, agent | REMOVED)

    def _send(self, agents: ArrayLike, records: ArrayLike) -> None:
        """Send each agent's record to its process."""
        records = np.atleast_1d(np.asarray(records, INDEX))
        homes = self._homes[np.atleast_1d(agents)]
        with self._lock:
            for process in set(homes.tolist()):
                if process in self._writers:
                    # the system notices by itself when a process has ended
                    with contextlib.suppress(BrokenPipeError):
                        os.write(self._writers[process].fileno(), records[homes == process].tobytes())

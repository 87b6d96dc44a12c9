"""What agents and server share: states and columns in memory, and pipes of small records that serve as queues.

A pipe of fixed-size records is a queue that any process or thread can write to and read from without a lock. Linux
writes and reads records of up to PIPE_BUF bytes whole, and one `os.read` returns every waiting record.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import struct
import termios
import threading
from collections import deque
from multiprocessing import connection, reduction

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.host.memory import available_bytes
from ga3c_tf.rollouts.columns import SEGMENT_COLUMNS, STEP_COLUMNS, SegmentEnd, Step, in_order_of

INDEX = np.dtype(np.uint32)
EPISODE = np.dtype([("agent", np.int64), ("length", np.int64), ("score", np.float64)])
STOP = 0xFFFFFFFF
"""Record that ends one reader of an index queue."""
ENDED = 1 << 31
"""Bit that marks the record after the last segment of a dead agent process in the training queue."""
RELEASED = 1 << 30
ADDED = 2 << 30
REMOVED = 3 << 30
"""Kinds of records on a reply pipe: a segment slot is free again, an agent begins, an agent ends. A record without
these bits is the number of an agent whose prediction is ready."""
KIND = 3 << 30
PIPE_RECORDS = 16_384
"""Number of indices that a pipe can hold."""


class ServerGone(Exception):
    """No process reads a queue any more.

    This is not a BrokenPipeError, because an environment may raise that for its own reasons.
    """


class RecordQueue:
    """A pipe of records of one dtype. Another process that receives the queue can only write to it.

    Args:
        dtype: dtype of a record.
        room: size of the pipe in bytes, if the system allows it; otherwise, and for 0, it is 64 KiB.
    """

    def __init__(self, dtype: np.dtype, room: int = 0):
        self.dtype = dtype
        self.reader, self.writer = connection.Pipe(duplex=False)
        if room:
            with contextlib.suppress(OSError):  # the size may exceed what a user is allowed
                fcntl.fcntl(self.writer.fileno(), fcntl.F_SETPIPE_SZ, room)

    def __getstate__(self):
        # a process that also held the reading end would never notice that the server has died
        return {"dtype": self.dtype, "writer": self.writer}

    def put(self, record) -> None:
        """Write one record, or an array of records, completely; block only while the pipe is full.

        Raises:
            ServerGone: no process reads this queue any more.
        """
        try:
            os.write(self.writer.fileno(), np.asarray(record, self.dtype).tobytes())
        except BrokenPipeError:
            raise ServerGone from None

    def get(self, maximum: int = 1) -> np.ndarray:
        """Wait for a record, then return up to `maximum` waiting records, oldest first; none if the queue is closed."""
        return np.frombuffer(os.read(self.reader.fileno(), maximum * self.dtype.itemsize), self.dtype)

    def __len__(self) -> int:
        """Return the number of waiting records."""
        buffer = fcntl.ioctl(self.reader.fileno(), termios.FIONREAD, b"\0" * 4)
        return struct.unpack("i", buffer)[0] // self.dtype.itemsize


class IndexQueue(RecordQueue):
    """A queue of indices that several threads read. Each STOP record ends one of these threads."""

    def __init__(self):
        super().__init__(INDEX)
        self._reader = threading.local()

    def get(self, maximum: int = 1) -> np.ndarray:
        """Return indices like `RecordQueue.get`, but none if this reader should end.

        Indices before a STOP record are returned first.
        """
        if getattr(self._reader, "ends", False):
            self._reader.ends = False
            return np.empty(0, INDEX)
        records = super().get(maximum)
        stops = int(np.count_nonzero(records == STOP))
        if stops == 0:
            return records
        self.stop(stops - 1)  # put back those that are for other readers
        indices = records[records != STOP]
        self._reader.ends = len(indices) > 0
        return indices

    def stop(self, readers: int = 1) -> None:
        """End `readers` of the threads that read this queue."""
        if readers:
            self.put(np.full(readers, STOP, INDEX))


class NewestFirstQueue(IndexQueue):
    """A training queue that returns the newest slot first. Threads that read it must take turns.

    All slots sent before an `ENDED` record are returned before it, so that the process that it names can be replaced.
    """

    def __init__(self):
        super().__init__()
        self._ready: list[int] = []
        self._later: deque[int] = deque()  # from the first `ENDED` record on

    def get(self, maximum: int = 1) -> np.ndarray:
        """Wait for a slot, then return the newest one, or an `ENDED` record; nothing if this reader should end."""
        if len(self) == 0 or super().__len__():
            records = super().get(PIPE_RECORDS)
            if not len(records):
                return records
            self._later.extend(records.tolist())
        while self._later and not self._later[0] & ENDED:
            self._ready.append(self._later.popleft())
        return np.array([self._ready.pop() if self._ready else self._later.popleft()], INDEX)

    def __len__(self) -> int:
        return super().__len__() + len(self._ready) + len(self._later)


class SharedMemory:
    """Memory that exists as long as a process maps it, so nothing is left behind however the processes end.

    It comes from the kernel's anonymous memory files, to which no limit on /dev/shm applies.

    Args:
        size: size in bytes.
        advice: settings that need less memory, for the error message.

    Raises:
        UserError: there is not enough memory; the message gives the size needed.
    """

    def __init__(self, size: int, advice: str):
        room = available_bytes()
        if size > room:  # otherwise the kernel would later kill a process
            raise UserError(
                f"agents and server need {size / 2**20:.0f} MiB of shared memory, and {room / 2**20:.0f} MiB are left "
                f"here; {advice} need less"
            )
        self.size = size
        self._fd = os.memfd_create("ga3c_tf", os.MFD_CLOEXEC)
        os.posix_fallocate(self._fd, 0, size)
        self.buffer = mmap.mmap(self._fd, size)

    def __getstate__(self):
        return {"size": self.size, "descriptor": reduction.DupFd(self._fd)}

    def __setstate__(self, state):
        self.size = state["size"]
        self._fd = state["descriptor"].detach()
        self.buffer = mmap.mmap(self._fd, self.size)

    def __del__(self):
        if hasattr(self, "_fd"):
            os.close(self._fd)


class RolloutBuffers:
    """The arrays that agents and server share.

    There is room for `config.most_agents` agents and, after them, the remote agents. Each agent owns `slots_per_agent`
    segment slots: it fills one of them while the others wait for training. A state is written into its segment's slot,
    from which both predictions and training read it.

    Attributes:
        states: [slots, t_max + 1, *state_shape]; the last state is the one from which a full segment bootstraps.
        flat_states: [slots * (t_max + 1), *state_shape], the same memory; requests for predictions are indices into it.
        step_columns: [slots, t_max] each, by the names of `STEP_COLUMNS`; also attributes, such as `actions`.
        segment_columns: [slots] each, by the names of `SEGMENT_COLUMNS`; also attributes, such as `lengths`.
        columns: step columns and segment columns together.
        of_step: the step columns that a `Step` fills, in the order of its fields.
        of_end: the segment columns that a `SegmentEnd` fills, in the order of its fields.
        policy: float32 [num_agents, num_actions], policy of the newest prediction for each agent.
        value: float32 [num_agents], value of that prediction.
        version: int64 [num_agents], version of the model that made it.
        steps: int64 [num_agents], environment steps taken by each agent.
        streams: int64 [num_agents], number of the random stream with which each agent begins.
        sent: int64 [num_agents], steps of each agent in segments that it has sent to training.
        busy_since: float64 [num_agents], by process: time at which its current step, reset or start began
            (`time.monotonic`), or 0 while it waits.
        nodes: bytes [num_agents], by process: machine that runs its agents, or empty for this one.
        round_trips: float64 [num_agents, 2], by process: total seconds of calls to that machine, and number of calls.
    """

    states: np.ndarray
    mu_values: np.ndarray
    returns: np.ndarray
    lengths: np.ndarray
    policy: np.ndarray
    value: np.ndarray
    version: np.ndarray
    steps: np.ndarray
    streams: np.ndarray
    sent: np.ndarray
    busy_since: np.ndarray
    nodes: np.ndarray
    round_trips: np.ndarray

    def __init__(self, config: Config, state_shape: tuple[int, ...], state_dtype: str, num_actions: int):
        self.num_agents = config.most_agents + config.remote_agents
        self.t_max = config.t_max
        self.slots_per_agent = config.segments_per_agent + 1
        slots = self.num_agents * self.slots_per_agent
        self._layout: dict[str, tuple[tuple[int, ...], DTypeLike]] = {
            "steps": ((self.num_agents,), np.int64),
            "streams": ((self.num_agents,), np.int64),
            "sent": ((self.num_agents,), np.int64),
            "busy_since": ((self.num_agents,), np.float64),
            "nodes": ((self.num_agents,), "S64"),
            "round_trips": ((self.num_agents, 2), np.float64),
            "version": ((self.num_agents,), np.int64),
            "policy": ((self.num_agents, num_actions), np.float32),
            "value": ((self.num_agents,), np.float32),
            **{name: ((slots, self.t_max), dtype) for name, dtype in STEP_COLUMNS.items()},
            **{name: ((slots,), dtype) for name, dtype in SEGMENT_COLUMNS.items()},
            "states": ((slots, self.t_max + 1, *state_shape), np.dtype(state_dtype)),
        }
        fewer = "fewer --agents" if config.adjustment == "off" else "--adjustment off, fewer --max-agents"
        advice = f"{fewer}, a smaller --t-max or a smaller --max-training-queue"
        self._memory = SharedMemory(sum(_nbytes(*entry) for entry in self._layout.values()), advice)
        self._map()

    def __getstate__(self):
        kept = ("num_agents", "t_max", "slots_per_agent", "_layout", "_memory")
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._map()

    def _map(self) -> None:
        offset = 0
        for name, (shape, dtype) in self._layout.items():
            setattr(self, name, np.ndarray(shape, dtype, self._memory.buffer, offset))
            offset += _nbytes(shape, dtype)
        self.flat_states = self.states.reshape(-1, *self.states.shape[2:])
        self.step_columns = {name: getattr(self, name) for name in STEP_COLUMNS}
        self.segment_columns = {name: getattr(self, name) for name in SEGMENT_COLUMNS}
        self.columns = self.step_columns | self.segment_columns
        self.of_step = in_order_of(Step, self.step_columns, "returns")
        self.of_end = in_order_of(SegmentEnd, self.segment_columns, "lengths")

    def state_index(self, slot: int, step: int) -> int:
        """Return the index of a slot's state in `flat_states`, as used in the prediction queue."""
        return slot * (self.t_max + 1) + step

    def agents_of(self, state_indices: np.ndarray) -> np.ndarray:
        """Return the agents to which the states with these indices belong."""
        return state_indices // ((self.t_max + 1) * self.slots_per_agent)

    def slots_of(self, agent: int) -> range:
        """Return the segment slots that an agent owns."""
        return range(agent * self.slots_per_agent, (agent + 1) * self.slots_per_agent)


def _nbytes(shape: tuple[int, ...], dtype: DTypeLike) -> int:
    """Return the size of an array in bytes, rounded up so that the next array is aligned."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    return -(-size // 64) * 64


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

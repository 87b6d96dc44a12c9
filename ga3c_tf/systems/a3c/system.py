"""A3C on the CPU, the system with which the paper compares GA3C (Mnih et al. 2016, arXiv 1602.01783)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from multiprocessing import connection

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.environments.environment import modules_used
from ga3c_tf.errors import UserError
from ga3c_tf.experience.contracts import UpdateRecord, UpdateResult
from ga3c_tf.experience.divergence import Divergence, SegmentLag
from ga3c_tf.experience.queues import RecordQueue
from ga3c_tf.host.resources import available_bytes
from ga3c_tf.systems.a3c.process import A3CShared, run_agent, update_type
from ga3c_tf.systems.a3c.shared_weights import SharedWeights
from ga3c_tf.systems.session import Session
from ga3c_tf.systems.system import Counts, System
from ga3c_tf.workers.supervisor import STOP_SECONDS, AgentSupervisor

NO_AGENTS = np.empty(0, np.int64)
POLL_SECONDS = 0.05
UPDATE_BYTES = 2**20
"""Size in bytes of the pipe for records of updates. It is read every POLL_SECONDS and so suffices for 200,000
updates per second in all."""
PROCESS_BYTES = 100 * 2**20
"""Estimated memory of an agent process beside the network. With 16 agents on Pong (small network) each had 62
to 68 MiB of its own and its share of the 130 MiB that all have from the forkserver (TensorFlow 2.21, PSS of
/proc)."""
REPLICAS = 4
"""Number of arrays of the network's size in a process: replica, gradients, and temporaries of an update."""


class A3C(System):
    """Each agent process predicts and computes gradients on its own replica, and applies them to shared
    weights.

    The server only counts, logs and saves. A checkpoint is a copy of the shared weights. Like an agent's own
    copy, it is taken while other processes may be writing.
    """

    device = "cpu"
    rests_while_paused = False

    def __init__(self, session: Session):
        super().__init__(session)
        config = session.config
        # The state of random generators is not among them.
        if others := session.model.network.non_trainable_weights:
            raise UserError(
                f"--system a3c shares trainable weights only, and the network has {len(others)} others "
                f"({others[0].path}); another system or network has to do"
            )
        objects = self._objects()
        self._check_memory(sum(variable.shape.num_elements() * 4 for variable in objects["weights"]))
        shapes = {
            group: [tuple(variable.shape) for variable in variables] for group, variables in objects.items()
        }
        self._weights = SharedWeights(shapes, config.num_agents)
        self._update_queue = RecordQueue(update_type(len(session.model.metrics)), UPDATE_BYTES)
        self._processes = AgentSupervisor(
            ["ga3c_tf.systems.a3c.process", *modules_used(config)],
            [config.env_id, config.network, config.loss],
            training=True,
        )
        self._pipes: list[connection.Connection] = []
        self._stopped = False

    @classmethod
    def num_processes(cls, config: Config) -> int:
        return config.num_agents

    def start(self) -> None:
        session = self.session
        config = session.config
        weights = self._weights
        for group, variables in self._objects().items():
            for array, variable in zip(weights.groups[group], variables, strict=True):
                array[...] = variable.numpy()
        weights.updates[-1] = session.model.version.numpy()
        queues = (self._update_queue, session.episode_queue, self._processes.errors)
        shared = A3CShared(session.memory, weights, *queues)
        began = time.monotonic() - session.time_s
        for agent in range(config.num_agents):
            session.memory.streams[agent] = session.new_stream()
            reader, writer = connection.Pipe(duplex=False)
            self._pipes.append(writer)
            before = (session.steps_before, began)
            self._processes.start(agent, run_agent, config, agent, shared, *before, pipe=reader)

    def poll(self, seconds: float) -> None:
        self._raise_error_within(min(seconds, POLL_SECONDS))
        self._collect_updates()

    def check(self) -> None:
        if not self._stopped:
            self._raise_error_within(0.0)

    def keep_up(self) -> None:
        super().keep_up()
        self._collect_updates()

    def stop(self) -> None:
        self._stopped = True
        for pipe in self._pipes:
            pipe.close()
        self._processes.join(self._collect, STOP_SECONDS)
        self._collect()

    def kill(self) -> None:
        self._processes.kill()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Return a context in which the model has a copy of the shared weights. Agents continue meanwhile."""
        weights = self._weights
        if weights.version:  # else there was no update yet, and the arrays may still be empty
            for group, variables in self._objects().items():
                for array, variable in zip(weights.groups[group], variables, strict=True):
                    variable.assign(array)
            self.session.model.version.assign(weights.version)
            self._collect_updates()  # after reading the version, so that a checkpoint's counts are as new
        yield

    def counts(self) -> Counts:
        return Counts(agents=self.session.config.num_agents)

    def _raise_error_within(self, seconds: float) -> None:
        """Raise the error of the first process that ends within `seconds`."""
        sentinels = self._processes.sentinels()
        for sentinel in connection.wait([*sentinels], seconds):
            raise self._processes.error_of(sentinels[sentinel])  # type: ignore[index]

    def _objects(self) -> dict:
        """Return the groups of variables that are shared: everything in a checkpoint except the version."""
        objects = self.session.model.checkpoint_objects()
        return {group: trackable for group, trackable in objects.items() if group != "version"}

    def _collect(self) -> None:
        self._collect_updates()
        self.session.collect_episodes()

    def _collect_updates(self) -> None:
        session = self.session
        while len(self._update_queue):
            for record in self._update_queue.get(1000).tolist():
                predictions, states, lag, metrics, moved, within = record
                if not states:
                    session.stats.skips.count += 1  # the agent ends the run when there are too many
                    continue
                for _ in range(predictions):
                    session.stats.predicted(1)
                by_name = dict(zip(session.model.metrics, metrics, strict=True))
                result = UpdateResult(by_name, Divergence(*moved), version=0, applied=True)
                lags = np.full(states, lag)
                session.stats.updated(UpdateRecord(lags, NO_AGENTS, result, SegmentLag(*within)))

    def _check_memory(self, network_bytes: int) -> None:
        """Raise a UserError if all processes need too much memory. Else the kernel would kill one later."""
        agents = self.session.config.num_agents
        room = available_bytes()
        bytes_per_agent = PROCESS_BYTES + REPLICAS * network_bytes
        if agents * bytes_per_agent > room:
            fit = int(room // bytes_per_agent)
            raise UserError(
                f"--system a3c has TensorFlow and the network in every agent's process: {agents} agents need "
                f"about {agents * bytes_per_agent / 2**20:.0f} MiB, and {room / 2**20:.0f} MiB are left "
                f"here; {f'--agents {fit} fit' if fit else 'not even one agent fits'}"
            )

"""A3C on the CPU, the system that the paper measures GA3C against (Mnih et al. 2016, arXiv 1602.01783)."""

from __future__ import annotations

from multiprocessing import connection
from pathlib import Path

import numpy as np

from ga3c_tf.environments.environment import modules_used
from ga3c_tf.errors import UserError
from ga3c_tf.host.memory import available_bytes
from ga3c_tf.rollouts.queues import RecordQueue
from ga3c_tf.systems.a3c.process import UPDATE, A3CShared, run_agent
from ga3c_tf.systems.a3c.shared_weights import SharedWeights
from ga3c_tf.systems.training import Training
from ga3c_tf.workers.supervisor import AgentSupervisor

POLL_SECONDS = 0.05
PROCESS_BYTES = 100 * 2**20
"""Memory an agent process is reckoned with beside the network: with 16 agents on Pong (small network) each had 62 to 68
MiB of its own and its share of 130 MiB that all have from the forkserver (TensorFlow 2.21, PSS of /proc)."""
REPLICAS = 4
"""Times that a process has the network's weights: the replica, gradients, and what an update works with."""


class A3C(Training):
    """Each agent process predicts and computes gradients on its own replica, and applies them to shared weights.

    The server only counts, logs and saves. A checkpoint is a copy of the shared weights, taken like an agent's own copy
    while others may be writing.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if others := self.model.network.non_trainable_variables:
            raise UserError(
                f"--system a3c shares trainable weights only, and the network has {len(others)} others "
                f"({others[0].path}); another system or network has to do"
            )
        objects = self._objects()
        self._check_memory(sum(variable.shape.num_elements() * 4 for variable in objects["weights"]))
        shapes = {group: [tuple(variable.shape) for variable in variables] for group, variables in objects.items()}
        self._weights = SharedWeights(shapes, self.config.num_agents)
        self._update_queue = RecordQueue(UPDATE)
        config = self.config
        self._processes = AgentSupervisor(
            ["ga3c_tf.systems.a3c.process", *modules_used(config)], [config.env_id, config.network, config.loss]
        )
        self._pipes: list[connection.Connection] = []

    def start_workers(self) -> None:
        config = self.config
        weights = self._weights
        for group, variables in self._objects().items():
            for array, variable in zip(weights.groups[group], variables, strict=True):
                array[...] = variable.numpy()
        weights.updates[-1] = self.model.version.numpy()
        shared = A3CShared(self.memory, weights, self._update_queue, self._episode_queue, self._processes.errors)
        for agent in range(config.num_agents):
            self.memory.streams[agent] = self._new_stream()
            reader, writer = connection.Pipe(duplex=False)
            self._pipes.append(writer)
            self._processes.start(agent, run_agent, config, agent, shared, self._steps_before, pipe=reader)

    def work(self, seconds: float) -> None:
        self.check(min(seconds, POLL_SECONDS))
        self._collect_updates()

    def check(self, seconds: float = 0.0) -> None:
        sentinels = self._processes.sentinels()
        for sentinel in connection.wait([*sentinels], seconds):
            raise self._processes.error_of(sentinels[sentinel])  # type: ignore[index]

    def stop_workers(self) -> None:
        for pipe in self._pipes:
            pipe.close()
        self._processes.join(self._collect)
        self._collect()

    def kill(self) -> None:
        self._processes.kill()

    def _save(self) -> Path:
        weights = self._weights
        if weights.version:  # else no agent has started
            for group, variables in self._objects().items():
                for array, variable in zip(weights.groups[group], variables, strict=True):
                    variable.assign(array)
            self.model.version.assign(weights.version)
        return super()._save()

    def _objects(self) -> dict:
        """Return the groups of variables that are shared: all that a checkpoint holds but the version."""
        return {group: found for group, found in self.model.checkpoint_objects().items() if group != "version"}

    def _collect(self) -> None:
        self._collect_updates()
        self._collect_episodes()

    def _collect_updates(self) -> None:
        while len(self._update_queue):
            for predictions, states, lag, *losses in self._update_queue.get(1000).tolist():
                if not states:
                    self.refused.count += 1  # the agent itself ends the run when there are too many, and says why
                    continue
                for _ in range(predictions):
                    self.stats.predicted(1)
                self.stats.trained(np.full(states, lag), *losses)

    def _check_memory(self, network_bytes: int) -> None:
        """Refuse to start more processes than there is memory for; the kernel would end one of them, later."""
        agents = self.config.num_agents
        room = available_bytes()
        each = PROCESS_BYTES + REPLICAS * network_bytes
        if agents * each > room:
            raise UserError(
                f"--system a3c has TensorFlow and the network in every agent's process: {agents} agents need about "
                f"{agents * each / 2**20:.0f} MiB, and {room / 2**20:.0f} MiB are left here; --agents "
                f"{int(room // each)} fit"
            )

"""Synchronous batched advantage actor-critic: the control without policy lag (Stooke & Abbeel, arXiv 1803.02811)."""

from __future__ import annotations

import time
from multiprocessing import connection

import numpy as np

from ga3c_tf.environments.environment import modules_used
from ga3c_tf.host.machine import usable_cores
from ga3c_tf.host.scheduling import schedule_as
from ga3c_tf.rollouts.columns import Batch
from ga3c_tf.rollouts.queues import INDEX, IndexQueue, ReplyPipes, homes_of
from ga3c_tf.systems.training import Training
from ga3c_tf.workers.agent import AgentQueues, run_agents
from ga3c_tf.workers.fresh_agents import RoundAgent
from ga3c_tf.workers.predictor import answer
from ga3c_tf.workers.supervisor import AgentSupervisor
from ga3c_tf.workers.trainer import BatchBuilder, train


class A2C(Training):
    """All agents step, on one prediction for all of them; after t_max steps, one update on all their segments.

    A round is t_max steps of every agent. What an agent sends of it, one segment or, where episodes end, several, is
    chosen, bootstrapped and trained on by one version of the model. An agent that has sent t_max steps waits for the
    update; one that must know the value of a time limit's last state asks once more, and the others wait for it.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        config = self.config
        self._processes = AgentSupervisor(["ga3c_tf.workers.fresh_agents", *modules_used(config)], [config.env_id])
        self._prediction_queue = IndexQueue()
        self._num_processes = config.processes(usable_cores())
        self._answers = ReplyPipes(self.memory, homes_of(config, self._num_processes))
        round_steps = config.num_agents * config.t_max
        self._builder = BatchBuilder(self.memory, round_steps - 1)
        self._batch: Batch | None = None
        self._asked = np.full(config.num_agents, -1, np.int64)  # each agent's waiting request
        self._sent = np.zeros(config.num_agents, np.int64)  # steps of this round that are in sent segments

    def start_workers(self) -> None:
        config = self.config
        schedule_as(config.scheduling)
        queues = AgentQueues(self._prediction_queue, self.training_queue, self._episode_queue, self._processes.errors)
        for number in range(self._num_processes):
            answers = self._answers.open(number)
            self._processes.start(number, run_agents, number, config, self.memory, queues, RoundAgent, pipe=answers)
        for agent in range(config.num_agents):
            self.memory.streams[agent] = self._new_stream()
            self._answers.added(agent)

    def work(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        sentinels = self._processes.sentinels()
        readers: list[connection.Connection | int] = [
            self._prediction_queue.reader,
            self.training_queue.reader,
            *sentinels,
        ]
        while (left := deadline - time.monotonic()) > 0 and not self._ended():
            for sentinel in sentinels.keys() & set(connection.wait(readers, left)):
                raise self._processes.error_of(sentinels[sentinel])
            self._take_in()
            if self._asked.min() >= 0:
                self._answer()
                self._collect_episodes()

    def stop_workers(self) -> None:
        for number in self._processes:
            self._answers.close(number)
        self._processes.join(self._collect_episodes)

    def kill(self) -> None:
        self._processes.kill()

    def prediction_queue_length(self) -> int:
        return int(np.count_nonzero(self._asked >= 0))

    def _take_in(self) -> None:
        """Note requests and copy segments. Requests first: whoever asks has sent its segments before."""
        if len(self._prediction_queue):
            requests = self._prediction_queue.get(self.config.num_agents)
            self._asked[self.memory.agents_of(requests)] = requests
        while len(self.training_queue):
            slot = int(self.training_queue.get(1)[0])
            self._sent[slot // self.memory.slots_per_agent] += self.memory.lengths[slot]
            self._batch = self._builder.add(slot)
            self._answers.released(slot)

    def _answer(self) -> None:
        """Predict for all agents that are to step, after the update if the round is over."""
        if self._batch is not None:
            train(self._batch, self.model, self.stats, self.refused, *self.rates())
            self._batch = None
            self._sent[:] = 0
        agents = np.flatnonzero(self._sent < self.config.t_max)
        requests = self._asked[agents].astype(INDEX)
        self._asked[agents] = -1
        answer(requests, self.model, self.memory, self.stats)
        self._answers.predicted(agents)

"""The serial mode: agents, prediction and training in turn, in one process, so that a seed fixes every weight."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator

import numpy as np

from ga3c_tf.environments.environment import make_environment
from ga3c_tf.rollouts.queues import INDEX
from ga3c_tf.systems.training import Training
from ga3c_tf.workers.agent import Agent, random_stream
from ga3c_tf.workers.predictor import answer
from ga3c_tf.workers.trainer import BatchBuilder, train


class SerialServer(Training):
    """GA3C without processes and threads: each round every agent takes one step."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._runs: list[Generator[int | None, None, None]] = []

    def start_workers(self) -> None:
        config = self.config
        memory = self.memory
        self._free_slots = [deque(memory.slots_of(agent)) for agent in range(config.num_agents)]
        self._runs = [self._new_run(agent) for agent in range(config.num_agents)]
        self._builder = BatchBuilder(memory, config.min_training_batch)

    def work(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self._ended():
            self._round()

    def states_gathered(self) -> int:
        return self._builder.states

    def stop_workers(self) -> None:
        for run in self._runs:
            run.close()

    def _new_run(self, agent: int) -> Generator[int | None, None, None]:
        return Agent(
            agent,
            self.config,
            make_environment(self.config),
            self.memory,
            self.training_queue,
            self._episode_queue,
            self._free_slots[agent],
            random_stream(self.config, self._new_stream()),
        ).run()

    def _round(self) -> None:
        requests: dict[int, int] = {}
        while len(requests) < len(self._runs):  # an agent may first need a segment slot back
            for number, run in enumerate(self._runs):
                if number not in requests and (request := next(run)) is not None:
                    requests[number] = request
            self._train_on_waiting_segments()
        states = np.array([requests[number] for number in range(len(self._runs))], INDEX)
        for start in range(0, len(states), self.config.max_prediction_batch):
            answer(states[start : start + self.config.max_prediction_batch], self.model, self.memory, self.stats)
        self._collect_episodes()

    def _train_on_waiting_segments(self) -> None:
        while len(self.training_queue):
            slot = int(self.training_queue.get(1)[0])
            batch = self._builder.add(slot)
            self._free_slots[slot // self.memory.slots_per_agent].append(slot)
            if batch is not None:
                train(batch, self.model, self.stats, self.refused, *self.rates())

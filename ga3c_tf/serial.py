"""The serial mode: agents, prediction and training in turn, in one process, so that a seed fixes every weight."""

from __future__ import annotations

import time

import numpy as np

from ga3c_tf.agent import Agent
from ga3c_tf.environment import make_environment
from ga3c_tf.predictor import answer
from ga3c_tf.queues import INDEX
from ga3c_tf.trainer import BatchBuilder, train
from ga3c_tf.training import Training


class SerialServer(Training):
    """GA3C without processes and threads: each round every agent takes one step."""

    def start_workers(self) -> None:
        config, memory = self.config, self.memory
        self._agents = [
            Agent(number, config, make_environment(config), memory, self.training_queue, self._episode_queue, seed)
            for number, seed in self._new_seeds(range(config.num_agents)).items()
        ]
        self._runs = [agent.run() for agent in self._agents]
        self._builder = BatchBuilder(config, memory)

    def work(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self._ended():
            self._round()

    def stop_workers(self) -> None:
        for run in self._runs:
            run.close()

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
            self._agents[slot // self.memory.slots_per_agent].free_slots.append(slot)
            if batch is not None:
                train(batch, self.model, self.stats, *self.rates())

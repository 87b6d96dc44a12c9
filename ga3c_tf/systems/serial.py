"""System `serial`: agents, prediction and training take turns in one process, so a seed fixes all weights."""

from __future__ import annotations

import time
from collections.abc import Generator

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.experience.queues import INDEX
from ga3c_tf.experience.segments import FreeSlots, Segments
from ga3c_tf.host.process_state import WorkingFolder
from ga3c_tf.systems.session import Session
from ga3c_tf.systems.system import Counts, System
from ga3c_tf.workers.agent import TrainingAgent
from ga3c_tf.workers.agent_process import new_agent

COLLECTED = 1_000
"""Number of agents after which ended episodes are collected: a pipe has room for about 2,700 unread ones."""


class SerialGA3C(System):
    """GA3C without processes and threads: in each round every agent takes one step."""

    is_deterministic = True

    def __init__(self, session: Session):
        super().__init__(session)
        self._slots = FreeSlots(session.memory)
        source = session.new_source(session.config.min_training_batch)
        self._segments = Segments(session.training_queue, self._slots, source, session.lag_limit)
        self._runs: list[Generator[int | None, None, None]] = []
        self._folder = WorkingFolder()

    @classmethod
    def num_processes(cls, config: Config) -> int:
        return 0

    def start(self) -> None:
        with self._folder:
            self._runs = [self._new_run(agent) for agent in range(self.session.config.num_agents)]

    def poll(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        with self._folder:
            while time.monotonic() < deadline and not self.session.ended():
                self._round()

    def stop(self) -> None:
        with self._folder:
            for run in self._runs:
                run.close()

    def counts(self) -> Counts:
        return Counts(agents=self.session.config.num_agents, gathered=self._segments.gathered)

    def _new_run(self, agent: int) -> Generator[int | None, None, None]:
        session = self.session
        session.memory.streams[agent] = session.new_stream()
        return new_agent(
            TrainingAgent,
            agent,
            session.config,
            session.memory,
            session.training_queue,
            session.episode_queue,
            self._slots.of_agent[agent],
        ).run()

    def _round(self) -> None:
        session = self.session
        requests: dict[int, int] = {}
        while len(requests) < len(self._runs):  # an agent may first have to get a segment slot back
            for number, run in enumerate(self._runs):
                if number not in requests and (request := next(run)) is not None:
                    requests[number] = request
                if number % COLLECTED == 0:
                    session.collect_episodes()
            for batch in self._segments.waiting():
                session.updater.train_on([batch])
        states = np.array([requests[number] for number in range(len(self._runs))], INDEX)
        most = session.config.max_prediction_batch
        for start in range(0, len(states), most):
            session.inference.answer(states[start : start + most])
        session.collect_episodes()

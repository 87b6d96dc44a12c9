"""The server: one model, its predictors and trainers, and the agent processes they serve (section 4 of the paper)."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from multiprocessing import connection
from typing import TypeVar

import numpy as np

from ga3c_tf.adjustment import SEARCHES, DynamicAdjustment, Setting
from ga3c_tf.agent import Agent, AgentQueues, random_stream, run_agents
from ga3c_tf.agent_processes import STOP_SECONDS, AgentProcesses
from ga3c_tf.environment import modules_used
from ga3c_tf.memory import available_bytes
from ga3c_tf.predictor import Predictor
from ga3c_tf.queues import Answers, IndexQueue
from ga3c_tf.run_folder import usable_cores
from ga3c_tf.scheduling import schedule_as_batch
from ga3c_tf.trainer import BatchBuilder, Trainer
from ga3c_tf.training import Training
from ga3c_tf.worker import Worker

AGENT_BYTES = 40 * 2**20
"""Memory an agent process is reckoned with, where the adjustment asks how many there is room for."""
MOST_THREADS = 16
"""Most predictors, and most trainers, that the adjustment starts: the most that the paper tried (figure 3)."""
W = TypeVar("W", bound=Worker)


class Server(Training):
    """GA3C: agent processes, predictor threads and trainer threads around one model."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._num_agents = self._num_predictors = self._num_trainers = 0
        self._processes = AgentProcesses(["ga3c_tf.agent", *modules_used(self.config)])
        self._predictors: list[Predictor] = []
        self._trainers: list[Trainer] = []
        self._adjustment: DynamicAdjustment | None = None
        self._prediction_queue = IndexQueue()
        self._answers = Answers(self.memory, self.config.processes(usable_cores()))
        self._at_once = threading.Semaphore(updates_at_once(self._device, usable_cores()))
        self._builder = BatchBuilder(self.config, self.memory)

    def start_workers(self) -> None:
        config = self.config
        schedule_as_batch()
        self._queues = AgentQueues(
            self._prediction_queue, self.training_queue, self._episode_queue, self._processes.errors
        )
        start = Setting(*self._setting_kept or (config.num_agents, config.num_predictors, config.num_trainers))
        self.set_workers(*start)
        if config.adjustment != "off":
            self._adjustment = self._new_adjustment(start)
            self._adjustment.start()

    def set_workers(self, agents: int, predictors: int, trainers: int) -> None:
        """Brings N_A, N_P and N_T to these numbers. Ending a worker does not wait for it.

        Agents that end give up their segment and episode; what a trainer had gathered goes to the next one.
        """
        self._predictors = _still_needed(self._predictors)
        self._predictors += [self._new_predictor() for _ in range(predictors - self._num_predictors)]
        self._prediction_queue.stop(max(0, self._num_predictors - predictors))
        self._trainers = _still_needed(self._trainers)
        self._trainers += [self._new_trainer() for _ in range(trainers - self._num_trainers)]
        self.training_queue.stop(max(0, self._num_trainers - trainers))
        self._num_predictors, self._num_trainers = predictors, trainers
        while self._num_agents < agents:
            self._add_agent()
        while self._num_agents > agents:
            self._num_agents -= 1
            self._answers.removed(self._num_agents)

    def work(self, seconds: float) -> None:
        sentinels = self._processes.sentinels()
        ready = connection.wait([self._episode_queue.reader, self._wake.reader, *sentinels], seconds)
        if self._wake.reader in ready:
            self._wake.get(1000)
        self.check()
        if self._stop_reason is None:
            for sentinel in sentinels.keys() & set(ready):
                self._processes.raise_error(sentinels[sentinel])

    def check(self) -> None:
        for worker in [self._adjustment, *self._predictors, *self._trainers]:
            if worker is not None and worker.error is not None:
                raise worker.error

    def stop_workers(self) -> None:
        if self._adjustment:
            self._adjustment.stop()
            self._adjustment.join(STOP_SECONDS)
        for number in self._processes:
            self._answers.close(number)
        self._processes.join(self._collect_episodes)
        self._prediction_queue.stop(self._num_predictors)
        self._builder.closed = True
        self.training_queue.stop(self._num_trainers)
        deadline = time.monotonic() + STOP_SECONDS
        for worker in [*self._predictors, *self._trainers]:
            worker.join(max(0.0, deadline - time.monotonic()))

    def kill(self) -> None:
        self._processes.kill()

    def paused(self):
        stack = ExitStack()
        for trainer in self._trainers:
            stack.enter_context(trainer.updating)
        return stack

    def prediction_queue_length(self) -> int:
        return len(self._prediction_queue)

    def workers(self) -> dict[str, int]:
        return {"agents": self._num_agents, "predictors": self._num_predictors, "trainers": self._num_trainers}

    def setting_to_keep(self) -> list[int] | None:
        return list(self._adjustment.search.accepted) if self._adjustment else None

    def _new_adjustment(self, start: Setting) -> DynamicAdjustment:
        config, authors = self.config, self.config.adjustment == "nvlabs"
        room = start.agents + available_bytes() / AGENT_BYTES
        limits = Setting(int(min(config.most_agents, room)), MOST_THREADS, MOST_THREADS)
        random = np.random.default_rng(random_stream(config, self._new_stream()))
        return DynamicAdjustment(
            SEARCHES[config.adjustment](start, limits, random),
            lambda setting: self.set_workers(*setting),
            (lambda: self.stats.updates) if authors else (lambda: self.stats.trained_samples),
            self._log.adjustment,
            self._wake_up,
            clock=lambda: self.time_s,
            period=config.adjustment_seconds,
            warm_up=0.0 if authors else 0.25,
        )

    def _new_predictor(self) -> Predictor:
        worker = Predictor(
            self.config,
            self.model,
            self.memory,
            self._prediction_queue,
            self._answers,
            self.stats,
            self._trainers_are_behind,
            self._wake_up,
        )
        worker.start()
        return worker

    def _new_trainer(self) -> Trainer:
        worker = Trainer(
            self._builder,
            self.model,
            self.training_queue,
            self._answers,
            self.stats,
            self.rates,
            self._at_once,
            self._wake_up,
        )
        worker.start()
        return worker

    def _add_agent(self) -> None:
        agent = self._num_agents
        self.memory.streams[agent] = self._new_stream()
        process = self._answers.process_of(agent)
        if process not in self._processes:
            self._start_process(process)
        self._answers.added(agent)
        self._num_agents += 1

    def _start_process(self, number: int) -> None:
        answers = self._answers.open(number)
        self._processes.start(number, run_agents, self.config, self.memory, self._queues, Agent, pipe=answers)

    def _trainers_are_behind(self) -> bool:
        """Whether more than half of the segments that may wait for training do."""
        return 2 * len(self.training_queue) > self._num_agents * self.config.segments_per_agent

    def _wake_up(self) -> None:
        self._wake.put(0)


def updates_at_once(device: str, cores: int) -> int:
    """How many trainers may update side by side.

    On a CPU half the cores. An update of few states moves all weights, gradients and RMSProp's slots through the memory
    that the cores share: two at once, each on a core of its own, take 2.0 ms of processor time each instead of 1.4
    (5 states, small network, 2-core EPYC), where one beside an agent takes no longer than alone.
    """
    return MOST_THREADS if "GPU" in device else max(1, cores // 2)


def _still_needed(workers: list[W]) -> list[W]:
    """Without those that have ended as they were asked to."""
    return [worker for worker in workers if worker.is_alive() or worker.error is not None]

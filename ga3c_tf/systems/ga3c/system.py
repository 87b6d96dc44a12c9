"""The GA3C system: one model, its predictors and trainers, and the agents they serve (paper, section 4)."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import AbstractContextManager
from multiprocessing import connection

import numpy as np

from ga3c_tf.environments.random_streams import random_stream
from ga3c_tf.experience.segments import Segments
from ga3c_tf.host.machine import usable_cores
from ga3c_tf.host.resources import available_bytes
from ga3c_tf.host.scheduling import schedule_as
from ga3c_tf.remote.nodes import NodeRates
from ga3c_tf.systems.ga3c.agents import AgentProcesses
from ga3c_tf.systems.ga3c.batch_queue import BatchQueue
from ga3c_tf.systems.ga3c.predictor import Predictor
from ga3c_tf.systems.ga3c.request_queue import RequestQueue
from ga3c_tf.systems.ga3c.trainer import Trainer
from ga3c_tf.systems.ga3c.update_limit import UpdateLimit, updates_at_once
from ga3c_tf.systems.session import Session
from ga3c_tf.systems.system import Counts, System
from ga3c_tf.workers.adjustment import DynamicAdjustment
from ga3c_tf.workers.adjustment_rules import SEARCHES, WorkerCounts
from ga3c_tf.workers.supervisor import STOP_SECONDS
from ga3c_tf.workers.thread import Worker

AGENT_BYTES = 40 * 2**20
"""Estimated memory of an agent process, from which the adjustment computes how many agents have room."""
MOST_THREADS = 16
"""Largest number of predictors, and of trainers, that the adjustment tries unless the run begins with more.

The paper tried no more (figure 3).
"""


class GA3C(System):
    """Agent processes, predictor threads and trainer threads around one model.

    Args:
        session: session of the training.
        ray: address of the Ray cluster that runs the remote agents.

    Attributes:
        agents: agents and their processes.
        adjustment: thread that searches for the best N_A, N_P and N_T; None before `start`, and if adjustment
            is off.
    """

    def __init__(self, session: Session, ray: str = ""):
        super().__init__(session)
        config = session.config
        self.agents = AgentProcesses(session, ray)
        self.adjustment: DynamicAdjustment | None = None
        self._workers: list[Worker] = []  # predictors and trainers
        permits = sys.maxsize
        if config.scheduling == "tuned":
            permits = updates_at_once(session.device, usable_cores())
        source = session.new_source(config.min_training_batch)
        self._segments = Segments(session.training_queue, self.agents.replies, source, session.lag_limit)
        most = 1 if config.has_minibatches else session.model.updates_per_call
        self._batches = BatchQueue(config, self._segments, permits, session.errors, most)
        self._requests = RequestQueue(config, self.agents.prediction_queue, self._batches)
        self._update_limit = UpdateLimit()
        self._changing = threading.RLock()

    # the contract

    def start(self) -> None:
        config = self.session.config
        schedule_as(self.session.server_scheduling)
        counts_before = self.session.workers_before if config.adjustment != "off" else None
        start = WorkerCounts(
            *counts_before or (config.num_agents, config.num_predictors, config.num_trainers)
        )
        start = start._replace(agents=min(start.agents, config.most_agents))  # kept with other settings
        self.set_workers(*start)
        self._node_rates = NodeRates(self.session.memory, self.agents.replies.process_of)
        self.agents.start_remote()
        if config.adjustment != "off":
            self.adjustment = self._new_adjustment(start)
            self.adjustment.start()

    def poll(self, seconds: float) -> None:
        session = self.session
        sentinels = self.agents.processes.sentinels()
        ready = connection.wait([session.episode_queue.reader, session.wake.reader, *sentinels], seconds)
        if session.wake.reader in ready:
            session.wake.get(1000)
        self.check()
        if session.stopping:
            return
        for sentinel in sentinels.keys() & set(ready):
            with self._changing:
                self.agents.replace(sentinels[sentinel])
        self.agents.end_hung()

    def stop(self) -> None:
        try:
            if self.adjustment:
                self.adjustment.stop()
                self.adjustment.join(STOP_SECONDS)
            self.agents.stop()  # an adjustment that is still running starts no agents after this
        finally:  # also after a second Ctrl-C, because threads that wait would keep the model in memory
            self._batches.close()  # first, since it frees predictors that are held
            self.agents.prediction_queue.stop()
        deadline = time.monotonic() + STOP_SECONDS
        for worker in self._workers:
            worker.join(max(0.0, deadline - time.monotonic()))

    def kill(self) -> None:
        self.agents.processes.kill()

    def paused(self) -> AbstractContextManager[None]:
        return self._batches.paused()

    def counts(self) -> Counts:
        return Counts(
            agents=len(self.agents.all()),
            predictors=self.agents.prediction_queue.readers,
            trainers=self.session.training_queue.readers,
            requests=len(self.agents.prediction_queue),
            gathered=self._segments.gathered,
            workers_to_keep=self._workers_to_keep(),
        )

    def _workers_to_keep(self) -> list[int] | None:
        """Return the N_A, N_P and N_T accepted by adjustment; before it starts, an earlier session's."""
        if self.adjustment:
            return list(self.adjustment.search.accepted)
        return self.session.workers_before if self.session.config.adjustment != "off" else None

    def before_row(self) -> None:
        session = self.session
        if session.config.remote_agents:
            lags = session.stats.lags_of(session.memory.num_agents)
            for row in self._node_rates.rows(self.agents.all(), *lags):
                session.log.node({"time_s": session.time_s, "agent_steps": session.agent_steps, **row})
        self._raise_update_limit()

    # numbers of workers

    def set_workers(self, agents: int, predictors: int, trainers: int) -> None:
        """Change N_A, N_P and N_T to these numbers, without waiting for workers that end.

        Agents that end give up their segment and episode. Segments that a trainer has gathered go to the next
        trainer.
        """
        prediction_queue = self.agents.prediction_queue
        training_queue = self.session.training_queue
        with self._changing:
            started: list[Worker] = []
            for _ in range(predictors - prediction_queue.readers):
                started.append(self._new_predictor())
            for _ in range(trainers - training_queue.readers):
                started.append(self._new_trainer())
            prediction_queue.set_readers(predictors)
            training_queue.set_readers(trainers)
            for worker in started:
                worker.start()
            self._workers = [worker for worker in self._workers if worker.is_alive()] + started
            self.agents.resize(agents)
            self._batches.num_agents = len(self.agents.all())

    def _new_adjustment(self, start: WorkerCounts) -> DynamicAdjustment:
        session = self.session
        config = session.config
        authors = config.adjustment == "nvlabs"
        room = start.agents + available_bytes() / AGENT_BYTES
        limits = WorkerCounts(
            int(min(config.most_agents, room)),
            max(MOST_THREADS, start.predictors),
            max(MOST_THREADS, start.trainers),
        )
        random = np.random.default_rng(random_stream(config, session.new_stream()))
        return DynamicAdjustment(
            SEARCHES[config.adjustment](start, limits, random),
            lambda setting: self.set_workers(*setting),
            (lambda: session.stats.updates) if authors else (lambda: session.stats.trained_samples),
            session.log.adjustment,
            session.errors,
            clock=lambda: session.time_s,
            period=config.adjustment_seconds,
            warm_up=0.0 if authors else 0.25,
        )

    def _new_predictor(self) -> Predictor:
        session = self.session
        return Predictor(self._requests, session.inference, self.agents.replies, session.errors)

    def _new_trainer(self) -> Trainer:
        return Trainer(self._batches, self.session.updater, self.session.errors)

    # scheduling

    def _raise_update_limit(self) -> None:
        is_due = self._update_limit.should_rise(self._requests.waited())
        if is_due and self._batches.permits < usable_cores():
            self._batches.permit_one_more()

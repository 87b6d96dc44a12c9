"""The GA3C system: one model, its predictors and trainers, and the agents they serve (section 4 of the paper)."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from contextlib import AbstractContextManager
from multiprocessing import connection
from typing import TypeVar

import numpy as np

from ga3c_tf.environments.random_streams import random_stream
from ga3c_tf.host.machine import usable_cores
from ga3c_tf.host.memory import available_bytes
from ga3c_tf.host.scheduling import IdleCores, schedule_as
from ga3c_tf.remote.nodes import NodeRates
from ga3c_tf.rollouts.queues import ENDED, IndexQueue
from ga3c_tf.systems.ga3c.agents import AgentProcesses
from ga3c_tf.systems.session import Session
from ga3c_tf.systems.system import Counts, System
from ga3c_tf.workers.adjustment import DynamicAdjustment
from ga3c_tf.workers.adjustment_rules import SEARCHES, WorkerCounts
from ga3c_tf.workers.predictor import Predictor
from ga3c_tf.workers.supervisor import STOP_SECONDS
from ga3c_tf.workers.thread import Worker
from ga3c_tf.workers.trainer import BatchBuilder, Trainer, UpdateGate

AGENT_BYTES = 40 * 2**20
"""Estimated memory of an agent process, from which the adjustment computes how many agents there is room for."""
IDLE = 0.1
"""Idle share of the cores' time above which they count as idle."""
JOIN_SECONDS = 0.1
"""Seconds between two checks for errors while waiting for predictors to end."""
MOST_THREADS = 16
"""Largest number of predictors, and of trainers, that the adjustment tries unless the run begins with more.

The paper tried no more (figure 3).
"""
W = TypeVar("W", bound=Worker)


class GA3C(System):
    """Agent processes, predictor threads and trainer threads around one model.

    Args:
        session: session of the training.
        ray: address of the Ray cluster that runs the remote agents.

    Attributes:
        agents: agents and their processes.
        adjustment: thread that searches for the best N_A, N_P and N_T; None before `start`, and if adjustment is off.
    """

    def __init__(self, session: Session, ray: str = ""):
        super().__init__(session)
        config = session.config
        self._prediction_queue = IndexQueue()
        self.agents = AgentProcesses(session, self._prediction_queue, ray)
        self.adjustment: DynamicAdjustment | None = None
        self._num_predictors = self._num_trainers = 0
        self._predictors: list[Predictor] = []
        self._trainers: list[Trainer] = []
        self._tuned = config.scheduling == "tuned"
        self._gate = UpdateGate(updates_at_once(session.device, usable_cores()) if self._tuned else sys.maxsize)
        self._idle = IdleCores()
        self._behind = False
        self._changing = threading.RLock()
        self._drained = deque[int]()
        self._builder = BatchBuilder(session.memory, config.min_training_batch, session.lag_limit.drops)

    # the contract

    def start(self) -> None:
        config = self.session.config
        schedule_as(config.scheduling)
        kept = self.session.workers_before if config.adjustment != "off" else None
        start = WorkerCounts(*kept or (config.num_agents, config.num_predictors, config.num_trainers))
        start = start._replace(agents=min(start.agents, config.most_agents))  # kept with other settings
        self.set_workers(*start)
        self._node_rates = NodeRates(self.session.memory, self.agents.answers.process_of)
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
            self._discard_messages_of(sentinels[sentinel])
        while self._drained:
            self._replace(self._drained.popleft())
        self.agents.end_hung()

    def check(self) -> None:
        for worker in [self.adjustment, *self._predictors, *self._trainers]:
            if worker is not None and worker.error is not None:
                raise worker.error

    def stop(self) -> None:
        try:
            if self.adjustment:
                self.adjustment.stop()
                self.adjustment.join(STOP_SECONDS)
            self.agents.stop()  # an adjustment that is still running starts no agents after this
        finally:  # also after a second Ctrl-C, because threads that wait would keep the model in memory
            self._prediction_queue.stop(self._num_predictors)
            self._builder.closed = True
            self.session.training_queue.stop(self._num_trainers)
        deadline = time.monotonic() + STOP_SECONDS
        for worker in [*self._predictors, *self._trainers]:
            worker.join(max(0.0, deadline - time.monotonic()))

    def kill(self) -> None:
        self.agents.processes.kill()

    def paused(self) -> AbstractContextManager[None]:
        return self._gate.closed()

    def counts(self) -> Counts:
        return Counts(
            agents=len(self.agents.all()),
            predictors=self._num_predictors,
            trainers=self._num_trainers,
            requests=len(self._prediction_queue),
            gathered=self._builder.states,
            workers_to_keep=self._workers_to_keep(),
        )

    def _workers_to_keep(self) -> list[int] | None:
        """Return the N_A, N_P and N_T accepted by dynamic adjustment; before it starts, those of an earlier session."""
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

        Agents that end give up their segment and episode. Segments that a trainer has gathered go to the next trainer.
        """
        with self._changing:
            self._predictors = _still_needed(self._predictors)
            self._predictors += [self._new_predictor() for _ in range(predictors - self._num_predictors)]
            self._prediction_queue.stop(max(0, self._num_predictors - predictors))
            self._trainers = _still_needed(self._trainers)
            self._trainers += [self._new_trainer() for _ in range(trainers - self._num_trainers)]
            self.session.training_queue.stop(max(0, self._num_trainers - trainers))
            self._num_predictors = predictors
            self._num_trainers = trainers
            self.agents.resize(agents)

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
            session.wake_up,
            clock=lambda: session.time_s,
            period=config.adjustment_seconds,
            warm_up=0.0 if authors else 0.25,
        )

    def _new_predictor(self) -> Predictor:
        session = self.session
        worker = Predictor(
            session.config,
            session.model,
            session.memory,
            self._prediction_queue,
            self.agents.answers,
            session.stats,
            self._predictors_should_wait,
            session.wake_up,
            self._agents_are_to_wait,
        )
        worker.start()
        return worker

    def _new_trainer(self) -> Trainer:
        session = self.session
        worker = Trainer(
            self._builder,
            session.model,
            session.training_queue,
            self.agents.answers,
            session.stats,
            session.rates,
            self._gate,
            session.skipped,
            session.minibatches,
            self._process_drained,
            session.wake_up,
        )
        worker.start()
        return worker

    # processes that die

    def _discard_messages_of(self, number: int) -> None:
        """Let all messages of a dead agent process be taken, so that none is mistaken for one of its successor.

        The predictors are replaced by new ones. When the old ones have ended, all requests of the process have been
        taken, and nobody receives the answers. An `ENDED` record in the training queue follows the last segment of the
        process. Once a trainer reads it, all slots are free and the successor can start.
        """
        with self._changing:
            self.agents.lose(number)
            self._prediction_queue.stop(self._num_predictors)
            for predictor in self._predictors:
                while predictor.is_alive():  # it may be held, even forever if a trainer has failed
                    predictor.join(JOIN_SECONDS)
                    self.check()
            self.check()  # an error from before the loss would otherwise be lost with its predictor
            self._predictors = [self._new_predictor() for _ in range(self._num_predictors)]
        self.session.training_queue.put(number | ENDED)

    def _process_drained(self, number: int) -> None:
        """Note that all segments of a dead process have been taken; called by a trainer."""
        self._drained.append(number)
        self.session.wake_up()

    def _replace(self, number: int) -> None:
        with self._changing:
            self.agents.replace(number)

    # scheduling

    def _raise_update_limit(self) -> None:
        """Allow one more simultaneous update if trainers were behind and cores idle since the last call.

        This happens with large networks: agents wait, and the running update does not use the cores that they free.
        """
        idle = self._idle.share()
        was_behind = self._behind
        self._behind = self._trainers_are_behind()
        if idle > IDLE and was_behind and self._behind and self._gate.permits < usable_cores():
            self._gate.permit_one_more()

    def _predictors_should_wait(self) -> bool:
        return self._tuned and self._trainers_are_behind()

    def _agents_are_to_wait(self) -> bool:
        most = self.session.config.waiting_segments
        return most is not None and len(self.session.training_queue) >= most and not self._builder.closed

    def _trainers_are_behind(self) -> bool:
        """Return whether the training queue is more than half full."""
        config = self.session.config
        agents = self.agents.count + config.remote_agents
        room = agents * config.segments_per_agent
        return 2 * len(self.session.training_queue) > min(room, config.waiting_segments or room)


def updates_at_once(device: str, cores: int) -> int:
    """Return how many trainers may update simultaneously at first: as many as half the cores, or any number on a GPU.

    On a CPU even an update of few states moves all weights, gradients and RMSProp's slots through the memory that the
    cores share. Two simultaneous updates, each on its own core, take 2.0 ms of processor time each instead of 1.4
    (5 states, small network, 2-core EPYC). One update beside an agent takes no longer than alone.
    """
    return sys.maxsize if "GPU" in device else max(1, cores // 2)


def _still_needed(workers: list[W]) -> list[W]:
    """Return the workers without those that have ended as requested."""
    return [worker for worker in workers if worker.is_alive() or worker.error is not None]

"""The server: one model, its predictors and trainers, and the agent processes they serve (section 4 of the paper)."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from multiprocessing import connection
from typing import TypeVar

import numpy as np

from ga3c_tf.environments.environment import modules_used
from ga3c_tf.host.machine import usable_cores
from ga3c_tf.host.memory import available_bytes
from ga3c_tf.host.scheduling import IdleCores, schedule_as
from ga3c_tf.remote.bridge import run_bridge
from ga3c_tf.remote.nodes import NodeRates
from ga3c_tf.rollouts.queues import ENDED, IndexQueue, ReplyPipes, homes_of
from ga3c_tf.systems.training import Training
from ga3c_tf.workers.adjustment import SEARCHES, DynamicAdjustment, WorkerCounts
from ga3c_tf.workers.agent import Agent, AgentQueues, random_stream, run_agents
from ga3c_tf.workers.predictor import Predictor
from ga3c_tf.workers.supervisor import STOP_SECONDS, AgentSupervisor, AlsoLostWithForkserver, Watchdog
from ga3c_tf.workers.thread import Worker
from ga3c_tf.workers.trainer import BatchBuilder, Trainer, UpdateGate

AGENT_BYTES = 40 * 2**20
"""Memory an agent process is reckoned with, where the adjustment asks how many there is room for."""
IDLE = 0.1
"""Share of the cores' time from which on they are idle."""
MOST_THREADS = 16
"""Most predictors, and most trainers, that the adjustment goes up to unless the run begins with more.

The paper tried no more (figure 3).
"""
W = TypeVar("W", bound=Worker)


class Server(Training):
    """GA3C: agent processes, predictor threads and trainer threads around one model.

    Args:
        ray: address of the Ray cluster of the remote agents; the others are those of `Training`.
    """

    def __init__(self, *args, ray: str = "", **kwargs):
        super().__init__(*args, **kwargs)
        self._ray = ray
        self._num_agents = self._num_predictors = self._num_trainers = 0
        self._processes = AgentSupervisor(["ga3c_tf.workers.agent", *modules_used(self.config)], [self.config.env_id])
        self._predictors: list[Predictor] = []
        self._trainers: list[Trainer] = []
        self._adjustment: DynamicAdjustment | None = None
        self._prediction_queue = IndexQueue()
        cores = usable_cores()
        # Once: the cores may change while the run goes on, and an agent's process may not.
        self._local_processes = self.config.processes(cores)
        self._answers = ReplyPipes(self.memory, homes_of(self.config, self._local_processes))
        self._tuned = self.config.scheduling == "tuned"
        self._gate = UpdateGate(updates_at_once(self._device, cores) if self._tuned else sys.maxsize)
        self._idle = IdleCores()
        self._behind = False
        self._changing = threading.RLock()
        self._hung = Watchdog(self._patience)
        self._drained = deque[int]()
        self._replacing: set[int] = set()
        self._builder = BatchBuilder(self.memory, self.config.min_training_batch)

    def start_workers(self) -> None:
        config = self.config
        schedule_as(config.scheduling)
        self._queues = AgentQueues(
            self._prediction_queue, self.training_queue, self._episode_queue, self._processes.errors
        )
        kept = self._setting_kept if config.adjustment != "off" else None
        start = WorkerCounts(*kept or (config.num_agents, config.num_predictors, config.num_trainers))
        start = start._replace(agents=min(start.agents, config.most_agents))  # of other settings
        self.set_workers(*start)
        self._node_rates = NodeRates(self.memory, self._answers.process_of)
        for agents in config.remote_actors:
            for agent in agents:
                self._add_agent(agent)
        if config.adjustment != "off":
            self._adjustment = self._new_adjustment(start)
            self._adjustment.start()

    def set_workers(self, agents: int, predictors: int, trainers: int) -> None:
        """Bring N_A, N_P and N_T to these numbers. Ending a worker does not wait for it.

        Agents that end give up their segment and episode; what a trainer had gathered goes to the next one.
        """
        with self._changing:
            self._predictors = _still_needed(self._predictors)
            self._predictors += [self._new_predictor() for _ in range(predictors - self._num_predictors)]
            self._prediction_queue.stop(max(0, self._num_predictors - predictors))
            self._trainers = _still_needed(self._trainers)
            self._trainers += [self._new_trainer() for _ in range(trainers - self._num_trainers)]
            self.training_queue.stop(max(0, self._num_trainers - trainers))
            self._num_predictors = predictors
            self._num_trainers = trainers
            while self._num_agents < agents:
                self._add_agent(self._num_agents)
                self._num_agents += 1
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
                self._lose(sentinels[sentinel])
            while self._drained:
                self._replace(self._drained.popleft())
            self._end_hung()

    def check(self) -> None:
        for worker in [self._adjustment, *self._predictors, *self._trainers]:
            if worker is not None and worker.error is not None:
                raise worker.error

    def states_gathered(self) -> int:
        return self._builder.states

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
        return self._gate.closed()

    def prediction_queue_length(self) -> int:
        return len(self._prediction_queue)

    def workers(self) -> dict[str, int]:
        return {"agents": len(self._agents()), "predictors": self._num_predictors, "trainers": self._num_trainers}

    def setting_to_keep(self) -> list[int] | None:
        return list(self._adjustment.search.accepted) if self._adjustment else None

    def _new_adjustment(self, start: WorkerCounts) -> DynamicAdjustment:
        config = self.config
        authors = self.config.adjustment == "nvlabs"
        room = start.agents + available_bytes() / AGENT_BYTES
        limits = WorkerCounts(
            int(min(config.most_agents, room)),
            max(MOST_THREADS, start.predictors),
            max(MOST_THREADS, start.trainers),
        )
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
            self._predictors_are_patient,
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
            self._gate,
            self.refused,
            self._process_drained,
            self._wake_up,
        )
        worker.start()
        return worker

    def _agents(self) -> list[int]:
        """Return the agents that there are, here and elsewhere."""
        return [*range(self._num_agents), *range(self.config.most_agents, self.memory.num_agents)]

    def _add_agent(self, agent: int) -> None:
        self.memory.streams[agent] = self._new_stream()
        process = self._answers.process_of(agent)
        if process not in self._processes and process not in self._replacing:
            self._start_process(process)
        self._answers.added(agent)

    def _start_process(self, number: int) -> None:
        answers = self._answers.open(number)
        self.memory.busy_since[number] = time.monotonic()
        config = self.config
        memory = self.memory
        queues = self._queues
        if actor := self._actor_of(number):
            memory.nodes[number] = b"connecting"
            self._processes.start(number, run_bridge, number, config, memory, queues, actor, self._ray, pipe=answers)
        else:
            self._processes.start(number, run_agents, number, config, memory, queues, Agent, pipe=answers)

    def _actor_of(self, number: int) -> range | None:
        """Return the remote agents that an agent process is the bridge of; None where its agents live in it."""
        remote = number - self._local_processes
        return self.config.remote_actors[remote] if remote >= 0 else None

    def _end_hung(self) -> None:
        """End the agent processes whose environments take too long; they are then replaced as those that died are."""
        for number in self._hung.hung({number: float(self.memory.busy_since[number]) for number in self._processes}):
            self._tell("hung", f"agent process {number} was at one thing for {self._patience(number):g} s; it is ended")
            self._processes.end(number)
            self.memory.busy_since[number] = 0.0

    def _patience(self, number: int) -> float:
        """Seconds that an agent process may be at one thing: a step, or a call in which all agents of an actor step."""
        return self.config.agent_timeout * len(self._actor_of(number) or [number])

    def _lose(self, number: int) -> None:
        """See to it that nothing that a dead agent process asked for or sent is taken for its successor's.

        The predictors are changed for new ones, so every request that it made has been answered, to nobody. A record in
        the training queue follows its last segment, and lets the successor begin with all its slots free.
        """
        with self._changing:
            self._replacing.add(number)
            error = self._processes.error_of(number)
            self._answers.close(number)
            if isinstance(error, AlsoLostWithForkserver):
                self.lost.count += 1
            else:
                self.lost.add(error)
            first, *rest = str(error).splitlines()
            self._tell("lost", f"{first}{f' ({rest[-1]})' if rest else ''}; its agents begin anew")
            self._prediction_queue.stop(self._num_predictors)
            for predictor in self._predictors:
                predictor.join()
            self.check()
            self._predictors = [self._new_predictor() for _ in range(self._num_predictors)]
        self.training_queue.put(number | ENDED)

    def _process_drained(self, number: int) -> None:
        """All that a process has sent was taken; called by a trainer."""
        self._drained.append(number)
        self._wake_up()

    def _replace(self, number: int) -> None:
        """Start the successor of a process that has died, with agents of new random streams."""
        with self._changing:
            self._replacing.remove(number)
            agents = [agent for agent in self._agents() if self._answers.process_of(agent) == number]
            if agents:
                self._start_process(number)
            for agent in agents:
                self.memory.streams[agent] = self._new_stream()
                self._answers.added(agent)

    def _log_metrics(self) -> None:
        if self.config.remote_agents:
            for row in self._node_rates.rows(self._agents(), *self.stats.lags_of(self.memory.num_agents)):
                self._log.node({"time_s": self.time_s, "agent_steps": self.agent_steps, **row})
        super()._log_metrics()
        self._let_more_update()

    def _let_more_update(self) -> None:
        """One more update at a time where the trainers were behind, and cores idle all the same, since the last call.

        So it is with large networks: the agents wait, and the update that runs does not use the cores that they leave.
        """
        idle = self._idle.share()
        was_behind = self._behind
        self._behind = self._trainers_are_behind()
        if idle > IDLE and was_behind and self._behind and self._gate.permits < usable_cores():
            self._gate.permit_one_more()

    def _predictors_are_patient(self) -> bool:
        return self._tuned and self._trainers_are_behind()

    def _trainers_are_behind(self) -> bool:
        """Whether more than half of the segments that may wait for training do."""
        agents = self._num_agents + self.config.remote_agents
        return 2 * len(self.training_queue) > agents * self.config.segments_per_agent

    def _wake_up(self) -> None:
        self._wake.put(0)


def updates_at_once(device: str, cores: int) -> int:
    """How many trainers may update side by side at first.

    On a CPU half the cores. An update of few states moves all weights, gradients and RMSProp's slots through the memory
    that the cores share: two at once, each on a core of its own, take 2.0 ms of processor time each instead of 1.4
    (5 states, small network, 2-core EPYC), where one beside an agent takes no longer than alone.
    """
    return sys.maxsize if "GPU" in device else max(1, cores // 2)


def _still_needed(workers: list[W]) -> list[W]:
    """Without those that have ended as they were asked to."""
    return [worker for worker in workers if worker.is_alive() or worker.error is not None]

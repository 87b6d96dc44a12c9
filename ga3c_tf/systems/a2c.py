"""Synchronous batched training (A2C of Stooke & Abbeel, arXiv 1803.02811), with the lag that is set."""

from __future__ import annotations

import functools
import time
from multiprocessing import connection

import numpy as np

from ga3c_tf.environments.environment import modules_used
from ga3c_tf.errors import UserError
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.queues import MESSAGE, IndexQueue
from ga3c_tf.experience.reply_pipes import ReplyPipes, assigned_processes
from ga3c_tf.experience.segments import Segments
from ga3c_tf.host.resources import available_bytes
from ga3c_tf.host.scheduling import schedule_as
from ga3c_tf.systems.lagged_batches import LaggedBatches
from ga3c_tf.systems.session import Session
from ga3c_tf.systems.system import Counts, System
from ga3c_tf.workers.agent_process import AgentQueues, run_agents
from ga3c_tf.workers.fresh_agents import RoundAgent
from ga3c_tf.workers.supervisor import STOP_SECONDS, AgentSupervisor

LAST_ROUND_SECONDS = 1.0
"""Seconds that agents have at the end of a run to send a round whose steps they have already taken."""


class A2C(System):
    """All agents step together, on one prediction for all; after t_max steps the model is trained on all
    segments.

    A round is t_max steps of every agent. An agent sends its round as one segment, or as several if episodes
    end. One version of the model chooses the actions of a round, gives the bootstrap values, and is trained
    on the round. An agent that has sent t_max steps waits for the update. An agent that needs the value of
    the last state before a time limit sends one more request, and the others wait for it.

    With `--lag` K the updates after a round use the batch of K rounds ago; all else is the same. There are no
    updates after the first K rounds of a session. Batches that still wait at the end of the session are not
    trained on. With another `--lag-distribution` than 'constant', K is the mean, and none, one or several
    batches are due after a round.
    """

    def __init__(self, session: Session):
        super().__init__(session)
        config = session.config
        self._processes = AgentSupervisor(
            ["ga3c_tf.workers.fresh_agents", *modules_used(config)], [config.env_id]
        )
        self._prediction_queue = IndexQueue()
        self._num_processes = config.processes(session.agent_cores)
        self._answers = ReplyPipes(session.memory, assigned_processes(config, self._num_processes))
        round_steps = config.num_agents * config.t_max
        source = session.new_source(round_steps - 1)
        self._segments = Segments(session.training_queue, self._answers, source)
        columns = [session.memory.states, *session.memory.step_columns.values()]
        if session.replay is None:
            _check_room(config.lag, round_steps * sum(column[0, 0].nbytes for column in columns))
        self._sentinels: dict[int, int] = {}
        self._readers: list[connection.Connection | int] = []
        self._requests = np.zeros(config.num_agents, MESSAGE)  # each agent's newest request
        self._waits = np.zeros(config.num_agents, bool)  # whether it waits for an answer
        # Steps that each agent had sent before this round.
        self._sent_before = np.zeros(config.num_agents, np.int64)
        self._steps_before = np.zeros(config.num_agents, np.int64)  # each agent's steps before this round

    @functools.cached_property
    def _waiting(self) -> LaggedBatches:
        # Made late: the steps of a resumed run are known once it is restored.
        config = self.session.config
        seed = np.random.SeedSequence(config.seed, spawn_key=(0, 2, self.session.steps_before))
        return LaggedBatches(config.lag, config.lag_distribution, np.random.default_rng(seed))

    def start(self) -> None:
        session = self.session
        config = session.config
        schedule_as(session.server_scheduling)
        queues = AgentQueues(
            self._prediction_queue, session.training_queue, session.episode_queue, self._processes.errors
        )
        for number in range(self._num_processes):
            answers = self._answers.open(number)
            self._processes.start(
                number, run_agents, number, config, session.memory, queues, RoundAgent, pipe=answers
            )
        for agent in range(config.num_agents):
            session.memory.streams[agent] = session.new_stream()
            self._answers.added(agent)
        self._sentinels = self._processes.sentinels()
        self._readers = [self._prediction_queue.reader, session.training_queue.reader, *self._sentinels]

    def poll(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and not self.session.ended():
            if self._all_have_asked(left):
                self._update()
                self._answer()
                self.session.collect_episodes()

    def finish(self) -> None:
        deadline = time.monotonic() + LAST_ROUND_SECONDS
        # Without a lost process's agents the round cannot end.
        while len(self._sentinels) == self._num_processes and (left := deadline - time.monotonic()) > 0:
            if self._all_have_asked(left):
                self._update()
                if self._would_step():
                    break
                self._answer()

    def stop(self) -> None:
        for number in self._processes:
            self._answers.close(number)
        self._processes.join(self.session.collect_episodes, STOP_SECONDS)

    def kill(self) -> None:
        self._processes.kill()

    def counts(self) -> Counts:
        requests = int(np.count_nonzero(self._waits))
        return Counts(
            agents=self.session.config.num_agents, requests=requests, gathered=self._segments.gathered
        )

    def _all_have_asked(self, seconds: float) -> bool:
        """Wait up to `seconds` for agents' messages and read them; return whether all wait for an answer."""
        for ended in self._sentinels.keys() & set(connection.wait(self._readers, seconds)):
            raise self._processes.error_of(self._sentinels.pop(ended))
        self._take_in()
        return bool(self._waits.all())

    def _take_in(self) -> None:
        """Note the requests and copy the segments that agents have sent.

        Requests are read first: an agent sends its segments before its request, so none of them is missed.
        """
        session = self.session
        if len(self._prediction_queue):
            requests = self._prediction_queue.get(session.config.num_agents)
            agents = session.memory.agents_of(requests["index"])
            self._requests[agents] = requests
            self._waits[agents] = True
        while len(session.training_queue):
            self._segments.add(session.training_queue.get(1))

    def _update(self) -> None:
        """Train if the round is complete: if every agent has sent t_max steps."""
        session = self.session
        if ((session.memory.sent - self._sent_before) < session.config.t_max).any():
            return
        while (batch := self._segments.due()) is not None:
            self._train_on(batch)
        self._sent_before[:] = session.memory.sent
        self._steps_before[:] = session.memory.steps

    def _train_on(self, batch: Batch) -> None:
        """Train on a batch, or with `--lag` on earlier ones instead."""
        for due in self._waiting.after(batch):
            self.session.updater.train_on([due])

    def _would_step(self) -> bool:
        """Return whether an answer now lets any agent step; others only need their last state's value."""
        steps = self.session.memory.steps - self._steps_before
        return bool((steps < self.session.config.t_max).any())

    def _answer(self) -> None:
        """Answer all agents that have not yet sent t_max steps of this round."""
        session = self.session
        sent = session.memory.sent - self._sent_before
        agents = np.flatnonzero(sent < session.config.t_max)
        requests = self._requests[agents]
        self._waits[agents] = False
        self._answers.answer(requests, session.inference.predict(requests["index"]))


def _check_room(lag: int, batch_bytes: int) -> None:
    """Raise a UserError if there is too little memory for a batch and for those that wait."""
    needed = (lag + 1) * batch_bytes
    if needed > available_bytes():
        raise UserError(
            f"the batches of --lag {lag} take {needed / 2**20:.0f} MiB, and "
            f"{available_bytes() / 2**20:.0f} MiB are left here; "
            "a smaller --lag, fewer --agents or a smaller --t-max need less"
        )

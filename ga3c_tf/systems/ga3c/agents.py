"""The agents of GA3C: in processes of this machine and in actors on others. Dead processes are replaced."""

from __future__ import annotations

import threading
import time

from ga3c_tf.environments.environment import modules_used
from ga3c_tf.experience.queues import IndexQueue, Sender
from ga3c_tf.experience.reply_pipes import ReplyPipes, assigned_processes
from ga3c_tf.remote.bridge import run_bridge
from ga3c_tf.systems.session import Session
from ga3c_tf.workers.agent import TrainingAgent
from ga3c_tf.workers.agent_process import AgentQueues, run_agents
from ga3c_tf.workers.standstill import Standstill
from ga3c_tf.workers.supervisor import STOP_SECONDS, AgentSupervisor, AlsoLostWithForkserver


class AgentProcesses:
    """Starts, ends and replaces the processes that run agents.

    Args:
        session: session of the training.
        ray: address of the Ray cluster that runs the remote agents.

    Attributes:
        count: number of agents on this machine (N_A).
        replies: pipes through which the agents are answered.
        prediction_queue: queue to which the agents write their requests.
        processes: supervisor of the processes.
    """

    def __init__(self, session: Session, ray: str):
        config = session.config
        self._session = session
        self._ray = ray
        self.count = 0
        self.prediction_queue = IndexQueue()
        self.processes = AgentSupervisor(
            ["ga3c_tf.workers.agent_process", *modules_used(config)], [config.env_id]
        )
        # Computed only once: the usable cores may change during the run, but the process of an agent may not.
        self._local_processes = config.processes(session.agent_cores)
        self.replies = ReplyPipes(session.memory, assigned_processes(config, self._local_processes))
        self._stopped = False
        self._starting = threading.Lock()
        """Held while a thread starts a process, so that none is started after `stop` has ended all."""
        self._standstill = Standstill[int]()

    def all(self) -> list[int]:
        """Return the numbers of all agents, on this machine and on others."""
        return [*range(self.count), *range(self._session.config.most_agents, self._session.memory.num_agents)]

    def resize(self, count: int) -> None:
        """Set the number of agents on this machine to `count`. Those that end give up segment and episode."""
        while self.count < count:
            with self._starting:
                if self._stopped:
                    break
                self._add(self.count)
            self.count += 1
        while self.count > count:
            self.count -= 1
            self.replies.removed(self.count)

    def start_remote(self) -> None:
        """Start the agents on other machines."""
        for agents in self._session.config.remote_actors:
            for agent in agents:
                self._add(agent)

    def stop(self) -> None:
        """End all processes within a deadline, and start no more."""
        self._stopped = True
        with self._starting:
            for number in self.processes:
                self.replies.close(number)
        self.processes.join(self._session.collect_episodes, STOP_SECONDS)

    def replace(self, number: int) -> None:
        """Count a process that has died, and start its successor, whose agents get new random streams.

        If its agents go on, what the dead process has sent and nobody has read by then is dropped on receipt.

        Raises:
            AgentError: too many processes have died.
        """
        session = self._session
        error = self.processes.error_of(number)
        self.replies.close(number)
        if isinstance(error, AlsoLostWithForkserver):
            session.lost.count += 1
        else:
            session.lost.add(error)
        first, *rest = str(error).splitlines()
        session.tell("lost", f"{first}{f' ({rest[-1]})' if rest else ''}; its agents begin anew")

        agents = [agent for agent in self.all() if self.replies.process_of(agent) == number]
        if agents:
            self._start(number)
        for agent in agents:
            session.memory.streams[agent] = session.new_stream()
            self.replies.added(agent)

    def end_hung(self) -> None:
        """Kill the processes whose environments take too long. They are replaced like processes that died."""
        busy_since = self._session.memory.busy_since
        # By process, when its step, reset or start began; 0 while it waits.
        began = {number: float(busy_since[number]) for number in self.processes}
        busy = self._standstill.seconds({number: time for number, time in began.items() if time})
        for number, seconds in busy.items():
            if seconds <= self._patience(number):
                continue
            why = (
                f"agent process {number} was ended, since a step or reset of its environment, or its start, "
                f"took more than {self._patience(number):g} s; --agent-timeout sets how long it may take"
            )
            self._session.tell("hung", why)
            self.processes.end(number, why)
            busy_since[number] = 0.0

    def _add(self, agent: int) -> None:
        self._session.memory.streams[agent] = self._session.new_stream()
        process = self.replies.process_of(agent)
        if process not in self.processes:
            self._start(process)
        self.replies.added(agent)

    def _start(self, number: int) -> None:
        config = self._session.config
        memory = self._session.memory
        replies = self.replies.open(number)
        memory.busy_since[number] = time.monotonic()
        common = (number, config, memory, self._queues_of(number))
        if actor := self._actor_of(number):
            memory.nodes[number] = b"connecting"
            self.processes.start(number, run_bridge, *common, actor, self._ray, pipe=replies)
        else:
            self.processes.start(number, run_agents, *common, TrainingAgent, pipe=replies)

    def _queues_of(self, number: int) -> AgentQueues:
        """Return the queues to which the next process of this number writes."""
        generation = self.replies.generation_of(number)
        return AgentQueues(
            Sender(self.prediction_queue, generation),
            Sender(self._session.training_queue, generation),
            self._session.episode_queue,
            self.processes.errors,
        )

    def _actor_of(self, number: int) -> range | None:
        """Return the remote agents that an agent process bridges to, or None if it runs its agents itself."""
        remote = number - self._local_processes
        return self._session.config.remote_actors[remote] if remote >= 0 else None

    def _patience(self, number: int) -> float:
        """Return the seconds that one step, or one call in which all agents of an actor step, may take."""
        return self._session.config.agent_timeout * len(self._actor_of(number) or [number])

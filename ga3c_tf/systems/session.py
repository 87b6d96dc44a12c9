"""The objects that a training and its system share: model, shared memory, counters, curves and budget."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from ga3c_tf.algorithms.factory import new_model
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.batch_builder import BatchBuilder
from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.contracts import BatchSource
from ga3c_tf.experience.lag_limit import LagLimit
from ga3c_tf.experience.queues import EPISODE, INDEX, IndexQueue, RecordQueue
from ga3c_tf.experience.replay.replay import Replay
from ga3c_tf.experience.replay.room import check_room
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.host.machine import agent_cores, usable_cores
from ga3c_tf.runs import outcomes
from ga3c_tf.runs.failures import FailureBudget
from ga3c_tf.runs.log import RunLog
from ga3c_tf.runs.stats import Stats
from ga3c_tf.workers.inference import Inference
from ga3c_tf.workers.minibatches import Minibatches
from ga3c_tf.workers.thread import WorkerErrors
from ga3c_tf.workers.updater import Updater


class Session:
    """One session of a run, from its first step or a checkpoint to its end.

    Args:
        config: settings; the seed must be set.
        spec: result of `describe_environment` for the environment in `config`.
        device: TensorFlow device, as `configure_device` returned it.
        warn: called with one line about a problem that the run survives.

    Attributes:
        model: model that is trained.
        memory: buffers that the agents and the server share.
        stats: counters of episodes, predictions and updates.
        replay: replay memory of the algorithms that have one, else None.
        inference: predicts for states in the shared buffers, with the model.
        updater: makes the updates of the model on a batch.
        lost: counts the agent processes that ended unexpectedly and were replaced.
        lag_limit: decides which segments are too old to be trained on.
        training_queue: messages with the slots of the segments that wait for training.
        errors: errors of the threads.
        episode_queue: ended episodes that `collect_episodes` has not read yet.
        wake: queue whose records wake a system that waits in `poll`; see `wake_up`.
        steps_before: agent steps of earlier sessions.
        workers_before: N_A, N_P and N_T that an earlier session found best, or None.
        log: the curves; set by `open_log`.
        on_episode: called with each row of episodes.csv, inside of `collect_episodes`; must not fail.

    Raises:
        UserError: the network does not fit the environment, or there is too little memory.
        ValueError: the settings have no seed.
    """

    log: RunLog

    def __init__(self, config: Config, spec: EnvironmentSpec, device: str, warn: Callable[[str], None]):
        if config.seed is None:
            raise ValueError("a training needs a seed: draw one and put it into the config")
        self.config = config
        self.device = device
        self.warn = warn
        self.model = new_model(config, spec, config.seed, device, say=warn)
        self.memory = RolloutBuffers(config, spec, initial_carry=self.model.initial_carry)
        self.replay = self._new_replay(spec)
        self.stats = Stats(
            self.model.metrics, config.rolling_episodes, config.remote_agents > 0, config.max_failures
        )
        # a machine that dies ends all actors on it
        self.lost = FailureBudget(config.max_failures + len(config.remote_actors))
        self._minibatches = Minibatches(config)
        epsilons = self.epsilons if config.reads("epsilon") else None
        self.inference = Inference(self.model, self.memory, self.stats, epsilons)
        feedback = self.replay.feedback if self.replay else None
        self.updater = Updater(self.model, self.stats, self._minibatches, self.rates, feedback)
        self.lag_limit = LagLimit(config.max_policy_lag, self.memory, lambda: self.model.updates)
        self.training_queue = IndexQueue()
        self.episode_queue = RecordQueue(EPISODE)
        self.wake = RecordQueue(INDEX)
        self.errors = WorkerErrors(self.wake)
        self.steps_before = 0
        self.workers_before: list[int] | None = None
        self._time_before = 0.0
        self._agents_started = 0
        self.on_episode: Callable[[dict], None] = lambda row: None
        self._stop_reason: str | None = None
        # The time of `begin`, later by what did not count, and the time at which the clock was stopped. One
        # tuple, since other threads read it.
        self._clock: tuple[float, float | None] | None = None

    # the server and its device

    @property
    def agent_cores(self) -> int:
        """Number of cores for the processes of agents."""
        return agent_cores(usable_cores(), "GPU" in self.device)

    @property
    def server_scheduling(self) -> str:
        """How the threads of this process are scheduled, as `schedule_as` takes it.

        A GPU idles until they have taken its results and given it the next work, so that they interrupt
        agents there.
        """
        return "plain" if "GPU" in self.device else self.config.scheduling

    # where the run stands

    @property
    def agent_steps(self) -> int:
        """Environment steps taken by all agents, earlier sessions included."""
        return self.steps_before + int(self.memory.steps.sum())

    @property
    def time_s(self) -> float:
        """Seconds of training, earlier sessions included."""
        return self._time_before + self.seconds

    @property
    def seconds(self) -> float:
        """Seconds since `begin`; 0 before it. Those in `clock_stopped` do not count."""
        if self._clock is None:
            return 0.0
        start, stopped = self._clock
        return (stopped or time.monotonic()) - start

    def rates(self) -> Rates:
        """Return the current rates."""
        return self.config.annealed(self.agent_steps, self.time_s)

    def epsilons(self) -> np.ndarray:
        """Return the current epsilon of each agent, float32 [agents], see `--epsilon-spread`."""
        exponents = np.linspace(1, 1 + self.config.epsilon_spread, self.memory.num_agents, dtype=np.float32)
        return self.rates().epsilon ** exponents

    def begin(self) -> None:
        """Start the clock."""
        self._clock = time.monotonic(), None

    @contextlib.contextmanager
    def clock_stopped(self) -> Iterator[None]:
        """Let the seconds of the block not count as training."""
        seconds = self.seconds
        now = time.monotonic()
        self._clock = now - seconds, now
        try:
            yield
        finally:
            self._clock = time.monotonic() - seconds, None

    def restore(self, counters: dict) -> None:
        """Continue from a checkpoint.

        Args:
            counters: counters in the checkpoint: those that `counters` returned, and in "setting" the N_A,
                N_P and N_T with which the run resumes, or None.
        """
        self.steps_before = counters["agent_steps"]
        self._time_before = counters["time_s"]
        self._agents_started = counters["agents_started"]
        self.workers_before = counters.get("setting")
        self.stats.restore(counters["stats"])
        self._minibatches.resume(self.steps_before)

    def counters(self) -> dict:
        """Return the counters of this session that a checkpoint stores beside the model."""
        return {
            "agent_steps": self.agent_steps,
            "time_s": self.time_s,
            "agents_started": self._agents_started,
            "stats": self.stats.state(),
        }

    # when it ends

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stop_reason is not None

    def stop(self, reason: str) -> None:
        """Ask the training to end; safe in a signal handler and from other threads."""
        self._stop_reason = self._stop_reason or reason
        self.wake_up()

    def ended(self) -> str | None:
        """Return why the training should end (a constant of `runs.outcomes`), or None if it should go on."""
        return self._stop_reason or self.reached()

    def reached(self) -> str | None:
        """Return the setting the training has reached, a budget or the target score; None if it has not."""
        config = self.config
        if self._target_reached():
            return outcomes.TARGET_SCORE
        if config.steps and self.agent_steps >= config.steps:
            return outcomes.STEPS
        if config.minutes and self.time_s >= 60 * config.minutes:
            return outcomes.MINUTES
        if config.episodes and self.stats.episodes >= config.episodes:
            return outcomes.EPISODES
        return None

    def _target_reached(self) -> bool:
        target = self.config.target_score
        return target is not None and self.stats.settled_score >= target

    def progress(self) -> float | None:
        """Return the share of the budget that is used, 0 to 1, or None if there is no budget."""
        return self.config.progress(self.agent_steps, self.time_s, self.stats.episodes)

    def wake_up(self) -> None:
        """Wake a system that waits for its processes; safe in a signal handler and from other threads."""
        self.wake.put(0)

    # what a system calls

    def new_source(self, minimum: int) -> BatchSource:
        """Return what makes batches of segments: the replay memory, or else more states than this minimum."""
        return self.replay or BatchBuilder(self.memory, minimum)

    def new_stream(self) -> int:
        """Return the number of a random stream that no agent of this run has used.

        After a kill, numbers given out since the last checkpoint are used again: the steps taken with them
        are lost.
        """
        self._agents_started += 1
        return self._agents_started - 1

    def _new_replay(self, spec: EnvironmentSpec) -> Replay | None:
        """Return the replay memory, empty, after a line that says how much memory it takes."""
        config = self.config
        if config.algorithm != "dqn":
            return None
        mib = check_room(config.replay_size, spec, config.smallest_replay) / 2**20
        self.warn(f"the replay memory of {config.replay_size:,} states takes {mib:,.0f} MiB")
        return Replay(config, self.memory)

    def open_log(self, path: Path, own_metrics: Iterable[str] = ()) -> None:
        """Open the curves in the run folder `path`; rows from a lost part of the run are dropped.

        Args:
            path: the run folder.
            own_metrics: names of the metrics of callbacks.

        Raises:
            OSError: the curves cannot be written.
        """
        nodes = self.config.remote_agents > 0
        self.log = RunLog(
            path, self.steps_before, self._time_before, self.stats.episodes, self.warn, nodes, own_metrics
        )

    def collect_episodes(self) -> None:
        """Count and log the episodes that have ended since the last call.

        Episodes after the one that reached the target score are not counted, so that the score of the run is
        the one that ended it.
        """
        while len(self.episode_queue):
            for _, length, score in self.episode_queue.get(1000).tolist():
                if self._target_reached():
                    continue
                self.stats.episode(score)
                row = {
                    "time_s": self.time_s,
                    "agent_steps": self.agent_steps,
                    "episode": self.stats.episodes,
                    "score": score,
                    "length": length,
                }
                self.log.episode(row, self.stats.rolling_score)
                self.on_episode(row)

    def tell(self, event: str, why: str) -> None:
        """Warn of a problem that the run survives, and log it as an event."""
        self.warn(why)
        self.log.event({"time_s": self.time_s, "agent_steps": self.agent_steps, "event": event, "why": why})

"""What every way of training shares: the budget, the counters, the curves and the checkpoints."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from ga3c_tf.config import Config
from ga3c_tf.environments.environment import EnvironmentSpec
from ga3c_tf.host.memory import resident_mib
from ga3c_tf.model.model import Model
from ga3c_tf.rollouts.queues import EPISODE, INDEX, IndexQueue, RecordQueue, RolloutBuffers
from ga3c_tf.runs import outcomes
from ga3c_tf.runs.checkpoints import Checkpoints
from ga3c_tf.runs.folder import RunFolder
from ga3c_tf.runs.log import RunLog
from ga3c_tf.runs.stats import Stats
from ga3c_tf.workers.failures import FailureBudget
from ga3c_tf.workers.stall_detector import StallDetector

POLL_SECONDS = 0.25
RETRY_SECONDS = 30.0
"""Until a checkpoint that could not be written is tried again."""
SPEED_SECONDS = 5.0
"""After the first step, until the speed is taken for that of the run."""
RARE_SECONDS = 60.0
"""Between two updates: more is said at the start of a run, since it may be a slip."""


class NotSaved(RuntimeError):
    """What a run has done cannot be written; what was saved before stands. The text is one line."""


class Training:
    """One run, from its first step or a checkpoint to its budget. A subclass has the workers that do the work.

    Args:
        config: settings, with a seed.
        spec: what `describe_environment` says of the config's environment.
        run: the run folder; nothing is written to it before `run`.
        device: TensorFlow device, as `configure_device` returned it.
        warn: called with one line about something that went wrong but was dealt with.

    Raises:
        UserError: the network does not fit the environment, or there is too little memory.
    """

    def __init__(self, config: Config, spec: EnvironmentSpec, run: RunFolder, device: str, warn: Callable[[str], None]):
        if config.seed is None:
            raise ValueError("a training needs a seed: draw one and put it into the config")
        self.config = config
        self._run = run
        self._device = device
        self._warn = warn
        self.model = Model(config, spec.state_shape, spec.state_dtype, spec.num_actions, config.seed, device=device)
        self.memory = RolloutBuffers(config, spec.state_shape, spec.state_dtype, spec.num_actions)
        self.stats = Stats(config.rolling_episodes)
        # a machine that dies takes all its actors along
        self.lost = FailureBudget(config.max_failures + len(config.remote_actors))
        self.refused = FailureBudget(config.max_failures)
        self._refused_seen = 0
        self._stalls = StallDetector()
        self._look_at = 0.0
        self._first_step: tuple[float, int] | None = None  # when it was seen, and the agent steps then
        self._speed_known = False
        self.training_queue = IndexQueue()
        self._episode_queue = RecordQueue(EPISODE)
        self._wake = RecordQueue(INDEX)
        self._stop_reason: str | None = None
        self._steps_before = 0
        self._time_before = 0.0
        self._agents_started = 0
        self._setting_kept: list[int] | None = None
        self._start = time.monotonic()

    # what a subclass gives

    def start_workers(self) -> None:
        """Start whatever trains."""
        raise NotImplementedError

    def work(self, seconds: float) -> None:
        """Let the workers work for about `seconds`, less if something happened; raise the first worker's error."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise the first worker's error, if there is one."""

    def stop_workers(self) -> None:
        """End all workers, within a deadline."""
        raise NotImplementedError

    def kill(self) -> None:
        """End all processes at once, without a word."""

    def paused(self) -> AbstractContextManager:
        """Return a context in which no update happens."""
        return nullcontext()

    def prediction_queue_length(self) -> int:
        """Request that wait for a prediction."""
        return 0

    def workers(self) -> dict[str, int]:
        """How many agents, predictors and trainers there are."""
        return {"agents": self.config.num_agents, "predictors": 0, "trainers": 0}

    def states_gathered(self) -> int:
        """Return the states that have been put into batches so far, those of batches that still grow included."""
        return 0

    def setting_to_keep(self) -> list[int] | None:
        """N_A, N_P and N_T that a resumed run begins with; None for those of the config."""
        return None

    # the run

    @property
    def agent_steps(self) -> int:
        """Environment steps taken by all agents, earlier sessions included."""
        return self._steps_before + int(self.memory.steps.sum())

    @property
    def time_s(self) -> float:
        """Seconds of training, earlier sessions included."""
        return self._time_before + time.monotonic() - self._start

    @functools.cached_property
    def _checkpoints(self) -> Checkpoints:
        return Checkpoints(self._run.path, self.model.checkpoint_objects(), self._warn)

    def rates(self) -> tuple[float, float]:
        """Learning rate and beta of now."""
        return self.config.annealed(self.agent_steps)

    def resume(self) -> float:
        """Restore the newest whole checkpoint; call before `run`.

        Returns:
            Seconds of training before it.
        """
        counters = self._checkpoints.restore("latest")
        self._checkpoints.set_damaged_aside()
        self._steps_before = counters["agent_steps"]
        self._time_before = counters["time_s"]
        self._agents_started = counters["agents_started"]
        self._setting_kept = counters.get("setting")
        self.stats.restore(counters["stats"])
        return self._time_before

    def stop(self, reason: str) -> None:
        """Ask the run to end; safe in a signal handler and from other threads."""
        self._stop_reason = self._stop_reason or reason
        self._wake.put(0)

    def run(self, report: Callable[[dict], None] = lambda row: None) -> dict:
        """Train until the budget is reached or `stop` is called.

        Args:
            report: called with each row of metrics as it is logged, rolling score and progress added.

        Returns:
            The summary: why it ended (of `runs.outcomes`), counters, rates over this session, rolling score and
            checkpoint.

        Raises:
            AgentError: agent processes ended by themselves, more than are replaced.
            FloatingPointError: too many updates were refused, or a weight is not finite; the last checkpoint stands.
            NotSaved: the last checkpoint cannot be written; the one before stands.
            Exception: whatever a predictor or trainer raised.
        """
        self._report = report
        self._start = self._window_start = time.monotonic()
        self._rows = 0
        self._window_steps = self.agent_steps
        before = {"agent_steps": self.agent_steps, "updates": self.stats.updates, "samples": self.stats.trained_samples}
        self._log = self._open_log()
        failed: BaseException | None = None
        try:
            if not self._checkpoints.steps():
                self._save()  # a run that is killed early can be resumed too
            self.start_workers()
            ended = self._train_until_ended()
            trained_s = time.monotonic() - self._start
            speed = {
                "pps": round((self.agent_steps - before["agent_steps"]) / trained_s, 1),
                "tps": round((self.stats.updates - before["updates"]) / trained_s, 1),
            }
        except BaseException as error:
            failed = error
            raise
        finally:
            checkpoint = self._wind_up(failed)
        return {
            "run": str(self._run.path),
            "ended": ended,
            "agent_steps": self.agent_steps,
            "updates": self.stats.updates,
            "episodes": self.stats.episodes,
            "time_s": round(self.time_s, 3),
            **speed,
            "rolling_score": self.stats.rolling_score,
            "rolling_episodes": self.config.rolling_episodes,
            "sent_steps": int(self.memory.sent.sum()),
            "trained_steps": self.stats.trained_samples - before["samples"],
            "replaced_processes": self.lost.count,
            "refused_updates": self.refused.count,
            "checkpoint": str(checkpoint),
            "seed": self.config.seed,
        }

    def _open_log(self) -> RunLog:
        path = self._run.path
        nodes = self.config.remote_agents > 0
        try:
            return RunLog(path, self._steps_before, self._time_before, self.stats.episodes, self._warn, nodes=nodes)
        except OSError as error:
            raise NotSaved(f"cannot write to {path}: {error.strerror}") from None

    def _train_until_ended(self) -> str:
        """Watch over the workers, log and save until the run is to end; return why it is."""
        log_at = self._start + self.config.log_seconds
        save_at = self._start + 60 * self.config.checkpoint_minutes
        while (ended := self._ended()) is None:
            self.work(min(POLL_SECONDS, max(0.0, log_at - time.monotonic())))
            self._collect_episodes()
            self._look_after()
            if time.monotonic() >= log_at:
                self._log_metrics()
                log_at = _next_time(log_at, self.config.log_seconds, time.monotonic())
            if time.monotonic() >= save_at:
                save_at = time.monotonic() + self._save_or_wait()
        if self._rows == 0 or time.monotonic() - self._window_start > self.config.log_seconds / 2:
            self._log_metrics()  # rates over a shorter window would say little
        return ended

    def _wind_up(self, failed: BaseException | None) -> Path | None:
        """End the workers and save what they did, whatever fails on the way, unless that is not finite."""
        try:
            self.stop_workers()
            self._collect_episodes()
            self._tell_refused()
        except BaseException as error:
            failed = failed or error
            raise
        finally:
            checkpoint = self._save_at_the_end(failed)
        return checkpoint

    def _save_at_the_end(self, failed: BaseException | None) -> Path | None:
        """Write the last checkpoint and close the curves.

        Args:
            failed: what has ended the run early; an error of saving is then only told.
        """
        try:
            with self.paused():
                return None if isinstance(failed, FloatingPointError) else self._save()
        except (NotSaved, FloatingPointError) as error:
            if failed is None:
                raise
            self._warn(str(error))  # and `failed` goes on its way
            return None
        finally:
            self._log.close()

    def progress(self) -> float | None:
        """Share of the budget that is used, 0 to 1; None where there is no budget."""
        config = self.config
        shares = [
            done / budget
            for done, budget in (
                (self.agent_steps, config.steps),
                (self.time_s, config.minutes and 60 * config.minutes),
                (self.stats.episodes, config.episodes),
            )
            if budget
        ]
        return min(1.0, max(shares)) if shares else None

    def _ended(self) -> str | None:
        config = self.config
        if self._stop_reason:
            return self._stop_reason
        if config.steps and self.agent_steps >= config.steps:
            return outcomes.STEPS
        if config.minutes and self.time_s >= 60 * config.minutes:
            return outcomes.MINUTES
        if config.episodes and self.stats.episodes >= config.episodes:
            return outcomes.EPISODES
        return None

    def _collect_episodes(self) -> None:
        while len(self._episode_queue):
            for _, length, score in self._episode_queue.get(1000).tolist():
                self.stats.episode(score)
                row = {
                    "time_s": self.time_s,
                    "agent_steps": self.agent_steps,
                    "episode": self.stats.episodes,
                    "score": score,
                    "length": length,
                }
                self._log.episode(row, self.stats.rolling_score)

    def _log_metrics(self) -> None:
        now = time.monotonic()
        seconds = max(now - self._window_start, 1e-9)
        steps = self.agent_steps
        pps = (steps - self._window_steps) / seconds  # not the predictions: some have no step, for a bootstrap alone
        self._window_start = now
        self._window_steps = steps
        self._rows = self._rows + 1
        row = {
            "time_s": self.time_s,
            "agent_steps": steps,
            "updates": self.stats.updates,
            "pps": pps,
            **self.stats.window(seconds),
            "prediction_queue": self.prediction_queue_length(),
            "training_queue": len(self.training_queue),
            **self.workers(),
            "rss_mb": resident_mib(),
        }
        self._log.metrics(row)
        self._report(
            {
                **row,
                "episodes": self.stats.episodes,
                "rolling_score": self.stats.rolling_score,
                "progress": self.progress(),
            }
        )

    def _look_after(self) -> None:
        """Tell of refused updates, and of stages that stand still; a few times a second."""
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + POLL_SECONDS
        self._tell_refused()
        self._tell_rare_updates()
        counters = {
            "step": self.agent_steps,
            "prediction": self.stats.predictions,
            "update": self.stats.updates + self.refused.count + self.states_gathered(),
        }
        for stage, seconds in self._stalls.stalled(counters).items():
            requests = self.prediction_queue_length()
            segments = len(self.training_queue)
            waiting = f"{requests} requests wait for a prediction, {segments} segments for an update"
            self._tell("stall", f"no {stage} for {seconds:.0f} s; {waiting}")

    def _tell_refused(self) -> None:
        if self.refused.count > self._refused_seen:
            count = self.refused.count - self._refused_seen
            self._refused_seen = self.refused.count
            self._tell("refused", f"{count} updates left out: a loss or gradient was not finite")

    def _tell_rare_updates(self) -> None:
        """Say once, as soon as the speed is known, that an update takes very long, where it does."""
        now = time.monotonic()
        steps = self.agent_steps
        if self._first_step is None and steps > self._steps_before:
            self._first_step = now, steps
        if self._speed_known or self._first_step is None or now < self._first_step[0] + SPEED_SECONDS:
            return
        self._speed_known = True
        states = self.config.states_per_update
        speed = (steps - self._first_step[1]) / (now - self._first_step[0])
        if states > RARE_SECONDS * speed:
            about = f"about {states / speed:.0f} s" if speed else "for ever"
            self._warn(
                f"an update trains on {states} states or more: at {speed:.0f} steps per second, {about} for each"
            )

    def _tell(self, event: str, why: str) -> None:
        """Warn of something that was dealt with, and log it."""
        self._warn(why)
        self._log.event({"time_s": self.time_s, "agent_steps": self.agent_steps, "event": event, "why": why})

    def _save_or_wait(self) -> float:
        """Write a checkpoint, or tell that it cannot be; return the seconds until the next one."""
        seconds = 60 * self.config.checkpoint_minutes
        try:
            with self.paused():
                self.check()
                self._save()
        except NotSaved as error:
            self._tell("not saved", f"{error}; the training goes on, the last checkpoint stands")
            return min(seconds, RETRY_SECONDS)
        return seconds

    def _save(self) -> Path:
        agent_steps = self.agent_steps
        counters = {
            "agent_steps": agent_steps,
            "time_s": self.time_s,
            "agents_started": self._agents_started,
            "setting": self.setting_to_keep(),
            "stats": self.stats.state(),
        }
        try:
            self._log.flush()  # or a resumed run would find rows missing
            return self._checkpoints.save(agent_steps, counters, self.stats.settled_score)
        except OSError as error:
            raise NotSaved(f"no checkpoint at {agent_steps} agent steps: {error.strerror or error}") from None

    def _new_stream(self) -> int:
        """Return the number of a random stream that no agent of this run, in any session, has had."""
        self._agents_started += 1
        return self._agents_started - 1


def _next_time(due: float, period: float, now: float) -> float:
    """When something is due again that was due at `due`: in time with before, or a whole period after a delay."""
    return due + period if due + period > now else now + period

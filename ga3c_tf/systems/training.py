"""The loop that drives any training system: budget, curves and checkpoints."""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.errors import Diverged
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.host.memory import resident_mib
from ga3c_tf.runs import outcomes
from ga3c_tf.runs.checkpoint_folders import checkpoint_folders
from ga3c_tf.runs.checkpoints import Checkpoints
from ga3c_tf.runs.folder import RunFolder
from ga3c_tf.runs.trackers import Tracking
from ga3c_tf.systems.callbacks import Callback, Callbacks
from ga3c_tf.systems.health import HealthMonitor
from ga3c_tf.systems.session import Session
from ga3c_tf.systems.system import System
from ga3c_tf.workers.supervisor import AgentError

POLL_SECONDS = 0.25
RETRY_SECONDS = 30.0
"""Most seconds until a checkpoint that could not be written is tried again."""


class NotSaved(RuntimeError):
    """The results of a run cannot be written; what was saved before remains. The message is one line."""


class Training:
    """One run, from its first step or a checkpoint to its end.

    Args:
        system: makes the training system for a session: `GA3C`, `A2C`, `A3C` or your own `System`.
        config: settings; the seed must be set.
        spec: result of `describe_environment` for the environment in `config`.
        run: run folder; nothing is written to it before `run` is called.
        device: TensorFlow device, as `configure_device` returned it.
        warn: called with one line about a problem that the run survives.
        callbacks: called at rows, episodes, checkpoints and the end.

    Attributes:
        session: model, counters and curves.
        system: system that trains.
        config: settings.
        path: run folder.

    Raises:
        UserError: the network does not fit the environment, there is too little memory, or what is given as a
            callback is none.
        ValueError: the settings have no seed.
    """

    def __init__(
        self,
        system: Callable[[Session], System],
        config: Config,
        spec: EnvironmentSpec,
        run: RunFolder,
        device: str,
        warn: Callable[[str], None],
        callbacks: Sequence[Callback] = (),
    ):
        self.config = config
        self.path = run.path
        self._callbacks = Callbacks(callbacks)
        self.session = Session(config, spec, device, warn)
        self.system = system(self.session)
        self.session.on_episode = self._callbacks.episode_ended
        self._health = HealthMonitor(self.session, self.system)

    def resume(self) -> float:
        """Restore the newest undamaged checkpoint; to be called before `run`.

        Returns:
            Seconds of training up to the checkpoint.
        """
        counters = self._checkpoints.restore("latest")
        self._checkpoints.set_damaged_aside()
        session = self.session
        session.restore(counters)
        if session.replay:
            steps = session.steps_before
            session.replay.resume(checkpoint_folders(self.path)[steps], steps, session.warn)
        return counters["time_s"]

    def stop(self, reason: str = outcomes.CALLBACK) -> None:
        """Ask the run to end; safe in a signal handler and from other threads."""
        self.session.stop(reason)

    @property
    def agent_steps(self) -> int:
        """Environment steps taken by all agents, earlier sessions included."""
        return self.session.agent_steps

    def log(self, values: Mapping[str, float]) -> None:
        """Log metrics of a callback: in metrics.csv, TensorBoard and a tracker, with the row that follows.

        Args:
            values: by name, one of `Callback.metrics`. Of several between two rows, the last one counts.

        Raises:
            UserError: no callback names such a metric.
        """
        self._callbacks.log(values)

    @contextlib.contextmanager
    def at_rest(self) -> Iterator[None]:
        """Let agents and trainers rest during the block, which does not count as time of training.

        A3C goes on meanwhile: the model is a copy of its weights, and the time counts.
        """
        rests = self.system.rests_while_paused
        clock = self.session.clock_stopped() if rests else contextlib.nullcontext()
        with self.session.inference.gate, self.system.paused(), clock:
            yield

    def kill(self) -> None:
        """Kill all processes of the run, without waiting for them."""
        self.system.kill()

    def run(self, report: Callable[[dict], None] = lambda row: None) -> dict:
        """Train until the budget or target score is reached or `stop` is called.

        Args:
            report: called with each row of metrics when it is logged, with episodes, rolling score, progress
                and the number of agents that have started added.

        Returns:
            The summary: why the run ended (a constant of `runs.outcomes`), counters, rates over this session,
            rolling score and checkpoint.

        Raises:
            AgentError: more agent processes ended unexpectedly than are replaced.
            Diverged: too many updates were skipped, or a weight is not finite; the last checkpoint remains.
            NotSaved: the curves, or the first or last checkpoint, cannot be written; what was saved before
                remains.
            Exception: any other error of a predictor or trainer.
        """
        tracking = Tracking(self.path, self.session.config, self.session.warn)

        def show(row: dict) -> None:
            tracking.log(row)
            report(row)

        ended = outcomes.FAILED
        try:
            summary = self._train(show)
            ended = summary["ended"]
        finally:
            tracking.close(ended)
        self._callbacks.end(summary)
        return summary

    def _train(self, report: Callable[[dict], None]) -> dict:
        """Train as `run` describes, without experiment trackers."""
        session = self.session
        stats = session.stats
        session.model.load()
        session.begin()
        before = {
            "agent_steps": session.agent_steps,
            "updates": stats.updates,
            "samples": stats.trained_samples,
        }
        self._open_log()
        rows = _Rows(session, self.system, self._callbacks, report)
        failed: BaseException | None = None
        try:
            self._callbacks.begin(self)
            if not self._checkpoints.steps():
                self._save()  # a run that is killed early can be resumed too
            self.system.start()
            ended = self._train_until_ended(rows)
            seconds = session.seconds
            speed = {
                "pps": round((session.agent_steps - before["agent_steps"]) / seconds, 1),
                "tps": round((stats.updates - before["updates"]) / seconds, 1),
            }
        except BaseException as error:
            failed = error
            raise
        finally:
            checkpoint = self._wind_up(failed)
        if stats.updates == before["updates"]:
            session.warn(
                f"no update was made in {seconds:.0f} s, so nothing was learned; give a larger budget, or "
                "fewer --agents, which start sooner"
            )
        return {
            "run": str(self.path),
            "ended": ended,
            "agent_steps": session.agent_steps,
            "updates": stats.updates,
            "episodes": stats.episodes,
            "time_s": round(session.time_s, 3),
            **speed,
            "rolling_score": stats.rolling_score,
            "rolling_episodes": session.config.rolling_episodes,
            "sent_steps": int(session.memory.sent.sum()),
            "trained_steps": stats.trained_samples - before["samples"],
            "dropped_steps": session.lag_limit.dropped_steps,
            "replaced_processes": session.lost.count,
            "skipped_updates": stats.skips.count,
            "checkpoint": str(checkpoint),
            "seed": session.config.seed,
        }

    def _open_log(self) -> None:
        try:
            self.session.open_log(self.path, self._callbacks.metrics)
        except OSError as error:
            raise NotSaved(f"cannot write to {self.path}: {error.strerror}") from None

    def _train_until_ended(self, rows: _Rows) -> str:
        """Drive the system, log and save until the run should end; return the reason."""
        session = self.session
        save_at = time.monotonic() + 60 * session.config.checkpoint_minutes
        while (ended := session.ended()) is None:
            with self._forgiving_at_the_end():
                self.system.poll(min(POLL_SECONDS, rows.seconds_left()))
            session.collect_episodes()
            self._health.look()
            rows.write_if_due()
            if time.monotonic() >= save_at:
                save_at = time.monotonic() + self._save_or_wait()
            self._callbacks.tell()
        with self._forgiving_at_the_end():
            self.system.finish()
        rows.write_last()
        return ended

    @contextlib.contextmanager
    def _forgiving_at_the_end(self) -> Iterator[None]:
        """Ignore in the block that an agent has ended, once the run was asked to end.

        Ctrl-C reaches the whole process group. It may end the simulator of an agent's environment, and so the
        agent.
        """
        try:
            yield
        except AgentError:
            if not self.session.stopping:
                raise

    def _wind_up(self, failed: BaseException | None) -> Path | None:
        """End the workers and save the model and the curves, even if something fails on the way.

        The model is not saved if the run failed because of numbers that are not finite.

        Returns:
            The checkpoint, or None if none was written.
        """
        try:
            self.system.stop()
            self.session.collect_episodes()
            self._health.tell_skipped()
            if failed is None:
                self.system.check()  # a worker may have failed in its last batch
        except BaseException as error:
            failed = failed or error
            raise
        finally:
            checkpoint = self._save_at_the_end(failed)
        return checkpoint

    # checkpoints

    @functools.cached_property
    def _checkpoints(self) -> Checkpoints:
        return Checkpoints(self.path, self.session.model.checkpoint_objects(), self.session.warn)

    def _save_or_wait(self) -> float:
        """Write a checkpoint, or report that it cannot be written; return the seconds until the next try."""
        seconds = 60 * self.session.config.checkpoint_minutes
        try:
            with self.system.paused():
                self.system.check()  # after an error of a worker the last checkpoint is kept
                self._save()
        except NotSaved as error:
            self.session.tell("not saved", f"{error}; the training goes on, the last checkpoint remains")
            return min(seconds, RETRY_SECONDS)
        return seconds

    def _save_at_the_end(self, failed: BaseException | None) -> Path | None:
        """Write the last checkpoint and close the curves.

        Args:
            failed: error that has ended the run early, or None. After such an error a failure to save is only
                a warning.
        """
        try:
            with self.system.paused():
                if failed is None:
                    self.system.check()  # an update may have failed since the workers were told to stop
                return None if isinstance(failed, Diverged) else self._save()
        except (NotSaved, Diverged) as error:
            if failed is None:
                raise
            self.session.warn(str(error))  # the run ends with `failed`
            return None
        finally:
            self.session.log.close()

    def _save(self) -> Path:
        session = self.session
        counters = {**session.counters(), "setting": self.system.counts().workers_to_keep}
        agent_steps = counters["agent_steps"]
        try:
            session.log.flush()  # otherwise a resumed run could find rows missing
            session.model.store()
            replay = session.replay if session.config.save_replay else None
            path = self._checkpoints.save(agent_steps, counters, session.stats.settled_score, replay)
            self._callbacks.checkpoint_written(path)
            return path
        except OSError as error:
            raise NotSaved(f"no checkpoint at {agent_steps} agent steps: {error.strerror or error}") from None


class _Rows:
    """Writes the rows of metrics.csv, one every `log_seconds`."""

    def __init__(
        self, session: Session, system: System, callbacks: Callbacks, report: Callable[[dict], None]
    ):
        self._session = session
        self._system = system
        self._callbacks = callbacks
        self._report = report
        self._period = session.config.log_seconds
        self._window_start = session.time_s
        self._window_steps = session.agent_steps
        self._due = session.time_s + self._period
        self._count = 0

    def seconds_left(self) -> float:
        """Return the seconds until the next row is due."""
        return max(0.0, self._due - self._session.time_s)

    def write_if_due(self) -> None:
        """Write a row if one is due, or a callback wants one.

        Rows are due at regular times. If the next time has already passed, the next row is due one period
        from now.
        """
        if self._session.time_s < self._due:
            if self._callbacks.want_row():
                self._write()
            return
        self._write()
        now = self._session.time_s
        in_time = self._due + self._period
        self._due = in_time if in_time > now else now + self._period

    def write_last(self) -> None:
        """Write a row for the time since the last one, unless that time is too short for meaningful rates.

        What callbacks have logged is written in any case.
        """
        is_long = self._session.time_s - self._window_start > self._period / 2
        if self._count == 0 or is_long or self._callbacks.has_logged:
            self._write()

    def _write(self) -> None:
        session = self._session
        self._system.before_row()
        time_s = session.time_s
        steps = session.agent_steps
        seconds = max(time_s - self._window_start, 1e-9)
        pps = (steps - self._window_steps) / seconds  # not predictions: some only give a bootstrap value
        self._window_start = time_s
        self._window_steps = steps
        self._count += 1
        counts = self._system.counts()
        window = session.stats.window(seconds)
        row = {
            "time_s": time_s,
            "agent_steps": steps,
            "updates": session.stats.updates,
            "pps": pps,
            **window,
            "policy_lag_states": window["policy_lag_mean"] * window["training_batch"],
            "prediction_queue": counts.requests,
            "training_queue": len(session.training_queue),
            "agents": counts.agents,
            "predictors": counts.predictors,
            "trainers": counts.trainers,
            "training_intensity": window["tps"] * window["training_batch"] / pps if pps else math.nan,
            "rss_mb": resident_mib(),
            "dropped_steps": session.lag_limit.dropped_steps,
        }
        started = int(np.count_nonzero(session.memory.steps))
        standing = {
            "started": min(started, counts.agents),
            "episodes": session.stats.episodes,
            "rolling_score": session.stats.rolling_score,
            "progress": session.progress(),
        }
        own = self._callbacks.metrics_of({**row, **standing})
        session.log.metrics({**row, **own})
        self._report({**row, **standing, **own})

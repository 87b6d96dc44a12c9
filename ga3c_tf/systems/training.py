"""The loop that drives any training system: until its budget is used up."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ga3c_tf.config import Config
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.runs import outcomes
from ga3c_tf.runs.folder import RunFolder
from ga3c_tf.runs.trackers import Tracking
from ga3c_tf.systems.callbacks import Callback, Callbacks
from ga3c_tf.systems.health import HealthMonitor
from ga3c_tf.systems.rows import Rows
from ga3c_tf.systems.saving import NotSaved, Saver
from ga3c_tf.systems.session import Session
from ga3c_tf.systems.summary import Totals, summary
from ga3c_tf.systems.system import System
from ga3c_tf.workers.supervisor import AgentError

POLL_SECONDS = 0.25


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
        self._run = run
        self._callbacks = Callbacks(callbacks)
        self.session = Session(config, spec, device, warn)
        self.system = system(self.session)
        self.session.on_episode = self._callbacks.episode_ended
        self._health = HealthMonitor(self.session, self.system)
        self._saver = Saver(run, self.session, self.system, self._callbacks.checkpoint_written)

    @property
    def path(self) -> Path:
        """Run folder. A default one may get a number when it is created, after this object."""
        return self._run.path

    def resume(self) -> float:
        """Restore the newest undamaged checkpoint; to be called before `run`.

        Returns:
            Seconds of training up to the checkpoint.
        """
        return self._saver.restore()

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

        The variables of the network have the newest weights.

        A3C goes on meanwhile: the model is a copy of its weights, and the time counts.
        """
        rests = self.system.rests_while_paused
        clock = self.session.clock_stopped() if rests else contextlib.nullcontext()
        with self.session.inference.gate, self.system.paused(), clock:
            self.session.model.store()
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
            result = self._train(show)
            ended = result["ended"]
        finally:
            tracking.close(ended)
        self._callbacks.end(result)
        return result

    def _train(self, report: Callable[[dict], None]) -> dict:
        """Train as `run` describes, without experiment trackers."""
        session = self.session
        session.model.load()
        session.begin()
        before = Totals.of(session)
        self._open_log()
        rows = Rows(session, self.system, self._callbacks, report)
        failed: BaseException | None = None
        try:
            self._callbacks.begin(self)
            self._saver.begin()
            self.system.start()
            ended = self._train_until_ended(rows)
            at_end = Totals.of(session)
        except BaseException as error:
            failed = error
            raise
        finally:
            checkpoint = self._wind_up(failed)
        if session.stats.updates == before.updates:
            session.warn(
                f"no update was made in {at_end.seconds:.0f} s, so nothing was learned; give a larger "
                "budget, or fewer --agents, which start sooner"
                f"{', or a smaller --replay-start' if session.config.reads('replay_start') else ''}"
            )
        return summary(session, self.path, ended, before, at_end, checkpoint)

    def _open_log(self) -> None:
        try:
            self.session.open_log(self.path, self._callbacks.metrics)
        except OSError as error:
            raise NotSaved(f"cannot write to {self.path}: {error.strerror}") from None

    def _train_until_ended(self, rows: Rows) -> str:
        """Drive the system, log and save until the run should end; return the reason."""
        session = self.session
        while (ended := session.ended()) is None:
            with self._forgiving_at_the_end():
                self.system.poll(min(POLL_SECONDS, rows.seconds_left()))
            session.collect_episodes()
            self._health.look()
            rows.write_if_due()
            self._saver.save_if_due()
            self._callbacks.tell()
        with self._forgiving_at_the_end():
            self.system.finish()
        rows.write_last()  # which may take an evaluation
        return outcomes.INTERRUPTED if session.ended() == outcomes.INTERRUPTED else ended

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
            try:
                checkpoint = self._saver.save_last(failed)
            finally:
                self.session.log.close()
        return checkpoint

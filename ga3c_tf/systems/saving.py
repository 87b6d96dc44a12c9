"""When a training's checkpoints are written, and what happens if one cannot be."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path

from ga3c_tf.errors import Diverged
from ga3c_tf.runs.checkpoint_folders import checkpoint_folders
from ga3c_tf.runs.checkpoints import Checkpoints
from ga3c_tf.runs.folder import RunFolder
from ga3c_tf.systems.session import Session
from ga3c_tf.systems.system import System

RETRY_SECONDS = 30.0
"""Most seconds until a checkpoint that could not be written is tried again."""


class NotSaved(RuntimeError):
    """The results of a run cannot be written; what was saved before remains. The message is one line."""


class Saver:
    """Saves and restores the model, the counters and the replay memory of one training.

    Args:
        run: run folder; its path is read late, since it may get a number when it is created.
        session: what is saved.
        system: system that trains; it is paused and checked before each checkpoint.
        written: called with the folder of each checkpoint.
    """

    def __init__(self, run: RunFolder, session: Session, system: System, written: Callable[[Path], None]):
        self._run = run
        self._session = session
        self._system = system
        self._written = written
        self._period = 60 * session.config.checkpoint_minutes
        self._due = 0.0

    def restore(self) -> float:
        """Restore the newest undamaged checkpoint; return the seconds of training up to it."""
        counters = self._checkpoints.restore("latest")
        self._checkpoints.set_damaged_aside()
        session = self._session
        session.restore(counters)
        if session.replay:
            steps = session.steps_before
            session.replay.resume(checkpoint_folders(self._run.path)[steps], steps, session.warn)
        return counters["time_s"]

    def begin(self) -> None:
        """Write the first checkpoint, unless there is one: a run that is killed early can be resumed too."""
        if not self._checkpoints.steps():
            self._save()
        self._due = time.monotonic() + self._period

    def save_if_due(self) -> None:
        """Write a checkpoint if one is due, or report that it cannot be written and try again soon."""
        if time.monotonic() < self._due:
            return
        wait = self._period
        try:
            with self._system.paused():
                self._system.check()  # after an error of a worker the last checkpoint is kept
                self._save()
        except NotSaved as error:
            self._session.tell("not saved", f"{error}; the training goes on, the last checkpoint remains")
            wait = min(wait, RETRY_SECONDS)
        self._due = time.monotonic() + wait

    def save_last(self, failed: BaseException | None) -> Path | None:
        """Write the last checkpoint; return it, or None if the model's numbers are not finite.

        Args:
            failed: error that has ended the run early, or None. After such an error a failure to save is only
                a warning.
        """
        try:
            with self._system.paused():
                if failed is None:
                    self._system.check()  # an update may have failed since the workers were told to stop
                return None if isinstance(failed, Diverged) else self._save()
        except (NotSaved, Diverged) as error:
            if failed is None:
                raise
            self._session.warn(str(error))  # the run ends with `failed`
            return None

    def _save(self) -> Path:
        session = self._session
        counters = {**session.counters(), "setting": self._system.counts().workers_to_keep}
        agent_steps = counters["agent_steps"]
        try:
            session.log.flush()  # otherwise a resumed run could find rows missing
            session.model.store()
            path = self._save_with_replay(agent_steps, counters)
        except OSError as error:
            raise NotSaved(f"no checkpoint at {agent_steps} agent steps: {error.strerror or error}") from None
        self._written(path)
        return path

    def _save_with_replay(self, agent_steps: int, counters: dict) -> Path:
        """Write a checkpoint, with the replay memory if it is to be saved and there is room for it."""
        session = self._session
        save = functools.partial(self._checkpoints.save, agent_steps, counters, session.stats.settled_score)
        if not session.config.save_replay:
            return save(None)
        try:
            return save(session.replay)
        except OSError:
            path = save(None)  # this removes the memory before, and so may make room
        try:
            return save(session.replay)
        except OSError as error:
            reason = error.strerror or error
            session.tell(
                "not saved", f"no replay memory at {agent_steps} agent steps: {reason}; the weights are"
            )
            return path

    @functools.cached_property
    def _checkpoints(self) -> Checkpoints:
        # Made late: a model may get its objects only when it is loaded.
        return Checkpoints(self._run.path, self._session.model.checkpoint_objects(), self._session.warn)

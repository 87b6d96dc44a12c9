"""Checkpoints of a run: one folder each, replaced atomically. The last three and the best one are kept."""

from __future__ import annotations

import contextlib
import json
import operator
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np

from ga3c_tf.errors import Diverged, UserError
from ga3c_tf.experience.replay.files import remove_replay
from ga3c_tf.experience.replay.replay import Replay
from ga3c_tf.files import json_text, sync
from ga3c_tf.model.tensorflow import plain_path, tf
from ga3c_tf.runs.checkpoint_folders import FOLDER, REPLACED, checkpoint_folders, checkpoint_name

KEEP_LAST = 3
FILE = "checkpoint"
"""Beginning of the names of the files that TensorFlow writes: `.index` and `.data-...` follow."""
DAMAGE = (
    tf.errors.DataLossError,
    tf.errors.NotFoundError,
    tf.errors.OutOfRangeError,
    LookupError,
    ValueError,
)
"""What TensorFlow raises, besides OpError, if files of a checkpoint are truncated, overwritten or missing."""


class Checkpoints:
    """The checkpoints of one run, named by their agent steps.

    Weights, optimizer slots and counters are stored in one tf.train.Checkpoint, whose checksums reveal
    damage.

    Args:
        folder: the run folder; checkpoints are in its subfolder `checkpoints`.
        objects: variables to store and restore, by the name of their group and in a fixed order.
        warn: called with one line about each damaged checkpoint that is skipped.
    """

    def __init__(
        self, folder: Path, objects: dict[str, list[tf.Variable]], warn: Callable[[str], None] = print
    ):
        self._run = folder
        self._folder = folder / FOLDER
        self._warn = warn
        self._damaged: list[int] = []
        self._counters = tf.Variable("", dtype=tf.string)
        self._groups = tuple(objects)
        self._variables = {
            f"{group}/{number}": variable
            for group, variables in objects.items()
            for number, variable in enumerate(variables)
        }
        self._checkpoint = tf.train.Checkpoint(**objects, counters=self._counters)

    def steps(self) -> list[int]:
        """Return the agent steps of all checkpoints in ascending order."""
        return list(checkpoint_folders(self._run))

    def best(self) -> int | None:
        """Return the agent steps of the checkpoint with the highest rolling score, or None if none has a
        score.

        Among equal scores, the newest checkpoint counts.
        """
        return _highest(self._scores()[0])

    def save(
        self, agent_steps: int, counters: dict, rolling_score: float, replay: Replay | None = None
    ) -> Path:
        """Write a checkpoint, then remove those that are neither among the last three nor the best.

        A replay memory takes gigabytes, so only the newest checkpoint holds it.

        Args:
            agent_steps: agent steps of the run, which name the checkpoint.
            counters: counters of the run, stored as JSON.
            rolling_score: score by which `best` compares checkpoints; not-a-number if there is none yet.
            replay: replay memory to be saved; None for none.

        Returns:
            The folder of the checkpoint.

        Raises:
            Diverged: a weight or statistic is infinite or not a number; nothing is written.
            OSError: the checkpoint cannot be written, such as on a full disk; existing checkpoints are
                unchanged.
        """
        self._check_finite()
        path = self._folder / checkpoint_name(agent_steps)
        aside = self._folder / "being-written"
        try:
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(parents=True)
            # Only read here, as it was: not every number has to be finite.
            self._counters.assign(json.dumps(counters))
            with plain_path(aside) as plain:
                self._checkpoint.write(f"{plain}/{FILE}")
            (aside / "score.json").write_text(json_text({"rolling_score": rolling_score}) + "\n")
            if replay:
                replay.save(aside)
            for file in aside.iterdir():
                _sync(file)
        except (OSError, tf.errors.OpError) as error:
            shutil.rmtree(aside, ignore_errors=True)
            raise OSError(_reason(error)) from None
        self._put_in_place(aside, path)
        scores, unread = self._scores()
        kept = {_highest(scores), agent_steps, *unread}  # one of those unread may be the best
        for step in self.steps()[:-KEEP_LAST]:
            if step not in kept:
                shutil.rmtree(self._path(step), ignore_errors=True)
        for step in self.steps():
            if step != agent_steps:
                with contextlib.suppress(OSError):  # the new checkpoint is complete
                    remove_replay(self._path(step))
        return path

    def _put_in_place(self, aside: Path, path: Path) -> None:
        """Rename a written checkpoint to its final name; a kill at any moment leaves it or the old one."""
        replaced = path.with_name(REPLACED + path.name)
        if path.exists():  # a checkpoint of the same agent steps, after a stop without progress
            shutil.rmtree(replaced, ignore_errors=True)
            path.rename(replaced)
        aside.rename(path)
        shutil.rmtree(replaced, ignore_errors=True)
        _sync(self._folder)

    def restore(self, which: str | int = "latest") -> dict:
        """Restore weights and optimizer slots from a checkpoint and return its counters.

        If the latest or best checkpoint is damaged, the newest undamaged one is used instead, with a warning.

        Args:
            which: 'latest', 'best' or the agent steps of a checkpoint.

        Raises:
            UserError: there is no checkpoint, all are damaged, one cannot be read now or belongs to another
                network, or `which` is invalid.
        """
        which = _checked(which)
        try:
            steps = self.steps()
        except OSError as error:
            raise UserError(
                f"{self._folder} cannot be read now: {_reason(error)}; nothing has been changed"
            ) from error
        if not steps:
            raise UserError(
                f"{self._folder.parent} has no checkpoint: its training has just begun, the first could not "
                "be saved, or it is the record of a run, which has no weights"
            )
        for step in self._in_order(which, steps):
            try:
                return self._read(step)
            except UserError:
                raise
            except Exception as error:
                reason = self._note_damage(step, error)
                if isinstance(which, int):
                    raise UserError(f"{reason}; there are {', '.join(map(str, steps))}") from None
                self._warn(f"{reason}; trying the one before it")
        raise UserError(f"every checkpoint in {self._folder} is damaged")

    def _in_order(self, which: str | int, steps: list[int]) -> list[int]:
        """Return the agent steps of the checkpoints that `restore` tries, in the order of the attempts.

        Args:
            which: 'latest', 'best' or the agent steps of a checkpoint.
            steps: agent steps of all checkpoints, in ascending order.

        Raises:
            UserError: there is no such checkpoint.
        """
        if isinstance(which, int):
            if which not in steps:
                others = ", ".join(map(str, steps))
                raise UserError(f"no checkpoint at {which} agent steps; those that exist are at {others}")
            return [which]
        newest_first = steps[::-1]
        best = self.best() if which == "best" else None
        if best is None:
            return newest_first
        return [best, *(step for step in newest_first if step != best)]

    def _note_damage(self, step: int, error: Exception) -> str:
        """Record that a checkpoint is damaged, and return a message that says so.

        Raises:
            UserError: the checkpoint may be undamaged, but `error` prevented reading it.
        """
        if not self._is_damage(step, error):
            raise UserError(
                f"{self._path(step)} cannot be read now: {_reason(error)}; nothing has been changed. If it "
                "stays so, rename that folder, and the checkpoint before it is used"
            ) from error
        self._damaged.append(step)
        return f"{self._path(step)} is damaged ({type(error).__name__})"

    def set_damaged_aside(self) -> None:
        """Rename the checkpoints that `restore` found damaged, so that they no longer count as the latest or
        the best.

        Raises:
            UserError: a checkpoint cannot be renamed.
        """
        for step in self._damaged:
            try:
                self._path(step).rename(self._folder / f"damaged-{step}-{time.time_ns()}")
            except OSError as error:
                raise UserError(f"cannot rename {self._path(step)}: {error.strerror}") from None
        self._damaged.clear()

    def _read(self, step: int) -> dict:
        with plain_path(self._path(step)) as plain:
            return self._read_from(step, f"{plain}/{FILE}")

    def _read_from(self, step: int, prefix: str) -> dict:
        stored = {
            name.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE"): shape
            for name, shape in tf.train.list_variables(prefix)
            if name.startswith(tuple(f"{group}/" for group in self._groups))
        }
        here = {name: variable.shape.as_list() for name, variable in self._variables.items()}
        if stored != here:
            name = next(name for name in {**here, **stored} if here.get(name) != stored.get(name))
            raise UserError(
                f"{self._path(step)} is of another network or environment: {name} is "
                f"{stored.get(name, 'missing')} in it and {here.get(name, 'missing')} here"
            )
        self._checkpoint.read(prefix).assert_existing_objects_matched()
        return json.loads(self._counters.numpy())

    def _is_damage(self, step: int, error: Exception) -> bool:
        """Return whether `error` means that a checkpoint has lost data.

        Otherwise the checkpoint could not be read for lack of memory, open files or permissions.
        """
        if not isinstance(error, DAMAGE) and type(error) is not tf.errors.OpError:
            return False
        path = self._path(step)
        try:
            with (
                plain_path(path),
                contextlib.ExitStack() as stack,
            ):  # as many files are open at a time as TensorFlow has
                for file in path.iterdir():
                    stack.enter_context(file.open("rb")).read()
        except FileNotFoundError:
            return True
        except (OSError, MemoryError):
            return False
        missing = not all(any(path.glob(f"{FILE}.{part}*")) for part in ("index", "data"))
        return missing or not isinstance(error, tf.errors.NotFoundError)

    def _check_finite(self) -> None:
        for name, variable in self._variables.items():
            if variable.dtype.is_floating and not np.isfinite(np.sum(variable.numpy(), dtype=np.float64)):
                raise Diverged(
                    f"{name} of the checkpoint to be written is not finite; a lower --learning-rate or "
                    "--grad-clip-global may help"
                )

    def _path(self, step: int) -> Path:
        """Return the folder of a step's checkpoint; after a kill it may still be named with `REPLACED`."""
        return checkpoint_folders(self._run).get(step, self._folder / checkpoint_name(step))

    def _scores(self) -> tuple[dict[int, float], list[int]]:
        """Return the rolling scores of the checkpoints that have one, by agent steps, and the agent steps of
        those whose score cannot be read now.
        """
        scores, unread = {}, []
        for step in self.steps():
            try:
                score = json.loads((self._path(step) / "score.json").read_text())["rolling_score"]
            except FileNotFoundError:
                continue
            except OSError:
                unread.append(step)
                continue
            except (ValueError, KeyError, TypeError, RecursionError):
                continue
            if isinstance(score, float) and score == score:
                scores[step] = score
        return scores, unread


def _highest(scores: dict[int, float]) -> int | None:
    """Return the agent steps of the highest score, among equal ones of the newest; None if there is none."""
    return max(scores, key=lambda step: (scores[step], step), default=None)


def _checked(which: str | int) -> str | int:
    """Check the name of a checkpoint and return it, with integers of NumPy's types as int.

    Raises:
        UserError: `which` is neither 'best' nor 'latest' nor an integer.
    """
    if which in ("best", "latest"):
        return which
    try:
        return operator.index(cast(int, which))
    except TypeError:
        raise UserError(
            f"checkpoint is {which!r}; it must be 'best', 'latest' or the agent steps of one, a whole number"
        ) from None


def _reason(error: Exception) -> str:
    """Return a short description of an error."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, tf.errors.OpError):
        return str(error.message).rpartition(";")[-1].strip()
    return f"{type(error).__name__}: {error}"


def _sync(path: Path) -> None:
    """Sync a file or folder to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)

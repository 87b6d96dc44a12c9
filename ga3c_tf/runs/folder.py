"""The run folder: its settings, command and machine, and the lock of the process that writes to it."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import os
import re
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from ga3c_tf.config import Config
from ga3c_tf.config.migrations import Use, migrated_json
from ga3c_tf.console import warn
from ga3c_tf.errors import UserError
from ga3c_tf.files import NO_LOCK, json_text, lock, write_aside
from ga3c_tf.host.machine import machine, package_versions, source_version
from ga3c_tf.runs.checkpoint_folders import checkpoint_folders
from ga3c_tf.runs.sessions import read_sessions

BEFORE_SETTINGS = ("command.txt", "meta.json", "lock")
"""Files that `RunFolder.create` writes before config.json."""


class RunFolder:
    """The folder of one run. `create` and `open` lock it against other processes until `close` or the
    process's end.

    Attributes:
        path: the folder.
        config: the run's settings.
    """

    def __init__(self, path: Path, config: Config):
        self.path = path
        self.config = config
        self._lock: IO[str] | None = None

    @classmethod
    def plan(cls, config: Config) -> RunFolder:
        """Choose the folder of a new run; nothing is written yet.

        Raises:
            UserError: the folder exists and is not empty, or cannot be used.
        """
        if config.run_dir == "":
            raise UserError("--run-dir is empty; name a folder, or leave it out")
        path = (
            Path(config.run_dir)
            if config.run_dir is not None
            else Path("runs") / _default_name(config.env_id)
        )
        try:
            taken = (
                config.run_dir is not None  # a default folder gets a number instead
                and path.exists()
                and (not path.is_dir() or not _is_free({file.name for file in path.iterdir()}))
            )
        except OSError as error:
            raise UserError(f"cannot use {path} as a run folder: {error.strerror}") from None
        if taken:
            raise UserError(_why_taken(path))
        return cls(path, config)

    def create(self, command: list[str], hardware: dict) -> None:
        """Create the folder, with config.json, command.txt and meta.json.

        Args:
            command: words of the command line.
            hardware: what TensorFlow reports of the machine, for meta.json: device, GPUs, oneDNN and dtype
                policy.

        Raises:
            UserError: the folder cannot be written, or another process has created it in the meantime.
        """
        try:
            self._make_folder()
            self._take_lock()
            if (self.path / "config.json").exists():
                raise UserError(f"{self.path} has become another run's meanwhile; name another --run-dir")
            try:
                (self.path / "meta.json").unlink(missing_ok=True)
                self._record_session(command, hardware, 0.0)
                write_aside(self.path / "command.txt", shlex.join(command) + "\n", errors="surrogateescape")
                write_aside(self.path / "config.json", self.config.to_json())
            except BaseException:
                self._remove_files()
                raise
        except OSError as error:
            raise UserError(f"cannot write the run folder {self.path}: {error.strerror}") from None

    @classmethod
    def open(cls, path: Path, say: Callable[[str], None] = warn) -> RunFolder:
        """Open an existing run folder to continue the run.

        Args:
            path: the folder.
            say: called with one line about each recorded setting that is no longer supported, and about a
                missing or damaged meta.json.

        Raises:
            UserError: `path` is not a run folder, its settings are unreadable, it contains links, or it is in
                use.
        """
        run = cls(path, read_config(path, "training", say))
        check_no_links(path)
        if not read_sessions(path):
            if not (path / "checkpoints").is_dir():
                raise UserError(f"{path} is not a run folder: it has neither meta.json nor checkpoints")
            say(f"{path / 'meta.json'} is missing or damaged; config.json is not checked against it")
        try:
            run._take_lock()
        except OSError as error:
            raise UserError(f"cannot write to the run folder {path}: {error.strerror}") from None
        return run

    def continue_with(self, config: Config, command: list[str], hardware: dict, time_s: float) -> None:
        """Store the settings and the command of a session that continues the run.

        Args:
            config: the settings.
            command: words of the command line.
            hardware: as for `create`.
            time_s: seconds of training so far.

        Raises:
            UserError: the files cannot be written.
        """
        self.config = config
        try:
            # First: `read_config` checks config.json against it.
            self._record_session(command, hardware, time_s)
            write_aside(self.path / "config.json", config.to_json())
        except OSError as error:
            raise UserError(f"cannot write to the run folder {self.path}: {error.strerror}") from None

    def close(self) -> None:
        """Release the lock, so that another process can use the folder."""
        if self._lock is not None:
            self._lock.close()

    def _make_folder(self) -> None:
        """Create the folder.

        A folder that the settings name may already exist, if empty. A default folder is always new, with a
        number added if necessary.
        """
        if self.config.run_dir:
            self.path.mkdir(parents=True, exist_ok=True)
            return
        name = self.path.name
        self.path.parent.mkdir(parents=True, exist_ok=True)
        for number in itertools.count(2):
            try:
                self.path.mkdir()
                break
            except FileExistsError:
                self.path = self.path.with_name(f"{name}-{number}")

    def _remove_files(self) -> None:
        """Remove what `create` wrote before an error or Ctrl-C, so that the folder can be used again."""
        with contextlib.suppress(OSError):
            for name in ("config.json", *BEFORE_SETTINGS):
                (self.path / name).unlink(missing_ok=True)
            self.path.rmdir()

    def _take_lock(self) -> None:
        stream = (self.path / "lock").open("w")
        try:
            if not lock(stream):
                warn(NO_LOCK.format(self.path))
        except OSError as error:
            stream.close()
            if isinstance(error, BlockingIOError):
                raise UserError(f"{self.path} is in use by another process") from None
            raise
        self._lock = stream

    def _record_session(self, command: list[str], hardware: dict, time_s: float) -> None:
        """Add this session to meta.json: changed settings, versions, machine and command; never environment
        variables.

        `time_s` is where the session begins on the run's time axis: readers of speeds leave out the start
        that follows.
        """
        file = self.path / "meta.json"
        sessions = read_sessions(self.path)
        if not sessions and file.exists():
            file.rename(file.with_name(f"meta.json.damaged-{time.time_ns()}"))
        sessions.append(
            {
                "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                "time_s": round(time_s, 3),
                "command": shlex.join(command),
                "config_digests": [*self._digest_before(), _digest(self.config.to_json())],
                "changed": self._changes(),
                **source_version(),
                "versions": package_versions(),
                **machine(),
                **hardware,
            }
        )
        write_aside(file, json_text({"sessions": sessions}, indent=2) + "\n")

    def _changes(self) -> dict[str, list]:
        """Return the old and the new value of each setting that has changed since the previous session.

        The new value of a setting that no longer exists is None.
        """
        file = self.path / "config.json"
        if not file.exists():
            return {}
        before = dataclasses.asdict(read_config(self.path))
        after = dataclasses.asdict(self.config)
        changed = {name: [before[name], value] for name, value in after.items() if value != before[name]}
        removed = migrated_json(file.read_text()).removed
        return changed | {name: [value, None] for name, value in removed.items()}

    def _digest_before(self) -> list[str]:
        """Return the digest of the existing config.json, which stays valid until the new one is written."""
        file = self.path / "config.json"
        return [_digest(file.read_text())] if file.exists() else []


def _is_free(names: set[str]) -> bool:
    """Return whether a folder with these files can become a run folder.

    It is empty, or `RunFolder.create` was killed in it before the settings were written.
    """
    return not names or (
        "lock" in names and names <= {*BEFORE_SETTINGS, *(f"{name}.new" for name in BEFORE_SETTINGS)}
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def has_checkpoint(path: Path) -> bool:
    """Return whether a run folder has a checkpoint, whole or damaged."""
    return bool(checkpoint_folders(path))


def check_no_links(path: Path) -> None:
    """Reject a folder that contains symbolic links.

    No run creates links. Writing would follow them, and copying would publish the files that they point to.

    Raises:
        UserError: the folder contains a link.
    """
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            if os.path.islink(entry := os.path.join(folder, name)):
                raise UserError(
                    f"{entry} is a link, which no run makes; remove it, since it may lead anywhere"
                )
        if Path(folder) == path and "wandb" in folders:  # a tracker, which makes links in its own folder
            folders.remove("wandb")


def as_published(config: Config) -> Config:
    """Return settings as they are published: without the run folder, and without absolute paths."""
    began_with = config.initial_weights
    if began_with is not None and os.path.isabs(began_with):
        began_with = Path(began_with).name
    return config.replace(run_dir=None, initial_weights=began_with)


def read_config(path: Path | str, use: Use | None = None, say: Callable[[str], None] = warn) -> Config:
    """Read the settings of the run in `path`.

    Args:
        path: a run folder, or a folder of weights.
        use: what the settings are for, if anything.
        say: called with one line about each recorded setting that is no longer supported and matters to
            `use`.

    Raises:
        UserError: `path` is not a run folder, or its config.json cannot be read or is not what the run wrote.
    """
    file = Path(path) / "config.json"
    try:
        text = file.read_text()
    except UnicodeDecodeError:
        raise UserError(f"{file} is damaged: not a text file") from None
    except OSError as error:
        missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        reason = "it has no readable config.json" if os.path.exists(path) else "there is no such folder"
        raise UserError(f"{path} is not a run folder: {reason if missing else error.strerror}") from None
    digests = [
        digest for session in read_sessions(Path(path)) for digest in session.get("config_digests", [])
    ]
    try:
        config = Config.from_json(text)
    except UserError as error:
        is_older = _digest(text) in digests
        problem = (
            "was written by another version of this package, and this one refuses it"
            if is_older
            else "is damaged"
        )
        raise UserError(f"{file} {problem}: {error}") from None
    if digests and _digest(text) not in digests:
        raise UserError(
            f"{file} is not what the run wrote: damaged, or edited; other settings want a run of their own"
        )
    if use is not None:
        for line in migrated_json(text).unsupported(use):
            say(f"{path}: {line}")
    return config


def _why_taken(path: Path) -> str:
    if path.is_dir() and has_checkpoint(path):
        command = shlex.join(["ga3c-tf", "resume", str(path)])
        return f"{path} has a run; continue it with {command}, or name another --run-dir"
    if (path / "meta.json").exists() and (path / "config.json").exists():
        return (
            f"{path} has a run without a checkpoint; remove it if its training has ended, or name another "
            "--run-dir"
        )
    return f"{path} exists and is not empty; name another --run-dir"


def _default_name(env_id: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "-", env_id.removeprefix("ALE/")) + time.strftime("-%Y%m%d-%H%M%S")

"""Storage that several machines share for runs: a shared folder, or a URL that fsspec supports.

A run is one tar file in it, which is replaced as a whole. So a run can be resumed from the storage at any
time, whenever a node dies.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import uuid
from pathlib import Path

import fsspec

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.runs.archive import read_tar, write_folder, write_tar
from ga3c_tf.runs.checkpoint_folders import FOLDER, checkpoint_folders, steps_of

LOG = "log.txt"
"""Name of the log of a run in its tar file."""


class Storage:
    """A shared storage of files by name, such as 'runs/<id>.tar'. Use each object in one thread only.

    Args:
        url: path, or URL such as s3://bucket/folder.

    Raises:
        UserError: fsspec does not support the URL, or the package for it is not installed.
    """

    def __init__(self, url: str):
        try:
            self._files, root = fsspec.core.url_to_fs(url, skip_instance_cache=True)
        except (ImportError, ValueError) as error:
            raise UserError(f"--storage {url}: {error}") from None
        self._root = root.rstrip("/")

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if it does not exist."""
        try:
            return self._files.cat_file(f"{self._root}/{name}")
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Write a file; a reader sees it either as it was before or completely written."""
        path = f"{self._root}/{name}"
        self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
        self._files.pipe_file(f"{path}.new", content)
        self._files.mv(f"{path}.new", path)

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        with contextlib.suppress(FileNotFoundError):
            self._files.rm(f"{self._root}/{name}")


class TakenOver(Exception):
    """Another try of the run has taken it over; the text is one line."""


class StoredRun:
    """A run in a results folder of this machine, and its copy in a storage.

    Args:
        storage: the storage.
        folder: the results folder; the run's files in it are runs/<id>/ and logs/<id>.txt.
        run_id: id of the run.
    """

    def __init__(self, storage: Storage, folder: Path, run_id: str):
        self._storage = storage
        self._run = folder / "runs" / run_id
        self._log = folder / "logs" / f"{run_id}.txt"
        self._name = f"runs/{run_id}.tar"
        self._holder = f"logs/{run_id}.holder"
        self._token = b""

    def claim(self) -> None:
        """Claim the run: an earlier try, on a node wrongly thought dead, then stores nothing more."""
        self._token = uuid.uuid4().hex.encode()
        self._storage.write(self._holder, self._token)

    def push(self) -> None:
        """Store the run; it may go on meanwhile. Without a run folder, nothing is stored.

        Raises:
            OSError: the storage cannot be written.
            TakenOver: another object has claimed the run since `claim`; nothing is stored.
        """
        if self._token and self._storage.read(self._holder) != self._token:
            raise TakenOver("another try of this run has taken over")
        if self._run.is_dir():
            stream = io.BytesIO()
            write_tar(stream, self._files(), mode="w")
            self._storage.write(self._name, stream.getvalue())

    def pull(self) -> bool:
        """Replace the run on this machine by that in the storage, unless that is missing or has come less
        far. Return whether it was replaced.

        Raises:
            OSError: a folder cannot be written.
        """
        content = self._storage.read(self._name)
        files = {} if content is None else read_tar(io.BytesIO(content))
        stored = [steps_of(name.split("/")[1]) or 0 for name in files if name.startswith(f"{FOLDER}/")]
        if not files or max(self.checkpoints(), default=0) > max(stored, default=0):
            return False
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._log.write_bytes(files.pop(LOG, b""))
        shutil.rmtree(self._run, ignore_errors=True)
        write_folder(self._run, files)
        return True

    def remove(self) -> None:
        """Remove the run from the storage."""
        self._storage.remove(self._name)

    def checkpoints(self) -> dict[int, Path]:
        """Return the folders of complete checkpoints on this machine by agent steps, in ascending order."""
        return checkpoint_folders(self._run)

    @property
    def last_line(self) -> str:
        """The newest line of the log on this machine; empty without one."""
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        return lines[-1] if lines else ""

    def _files(self) -> dict[str, bytes]:
        """Return what is stored: not locks, which are for a machine, nor files still being written.

        Checkpoints are read before the curves: a resumed run drops rows beyond its checkpoint, but cannot
        restore missing rows. A checkpoint of which a file vanishes meanwhile is left out.
        """
        files: dict[str, bytes] = {}
        for folder in reversed(self.checkpoints().values()):  # the newest is kept longest
            with contextlib.suppress(FileNotFoundError):
                files |= {
                    f"{FOLDER}/{folder.name}/{path.name}": path.read_bytes() for path in folder.glob("*")
                }
        for path in self._run.rglob("*"):
            name = path.relative_to(self._run).as_posix()
            copied = path.name != "lock" and path.suffix != ".new" and not name.startswith(f"{FOLDER}/")
            if copied and path.is_file():
                files[name] = path.read_bytes()
        if self._log.exists():
            files[LOG] = self._log.read_bytes()
        return files

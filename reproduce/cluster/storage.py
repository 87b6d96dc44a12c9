"""Storage that several machines share for run folders: a shared folder, or a URL that fsspec supports."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

import fsspec
from fsspec.implementations.local import LocalFileSystem

from ga3c_tf.errors import UserError
from ga3c_tf.files import atomic_write
from ga3c_tf.reproduce.runs.archive import RUN_FILE
from ga3c_tf.runs.checkpoint_folders import FOLDER, checkpoint_folders, steps_of

Stamp = tuple[int, int]
"""Size in bytes, and time of the last change in ns."""


class Storage:
    """A shared storage of files by name, such as 'runs/<id>/meta.json'. Use each object in one thread only.

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
        self._is_local = isinstance(self._files, LocalFileSystem)

    def is_folder(self, folder: Path) -> bool:
        """Return whether this storage is `folder` on this machine."""
        return self._is_local and Path(self._root).resolve() == folder.resolve()

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if it does not exist."""
        try:
            return self._files.cat_file(self._path(name))
        except FileNotFoundError:
            return None

    def write(self, files: Iterable[tuple[str, bytes]]) -> None:
        """Write files in the given order; a reader sees each file either as it was before or completely
        written.

        If the file system has transactions, no file is visible before all are written. In a local folder,
        each file is written under another name and renamed: fsspec's transaction for local files copies from
        /tmp, which is not atomic.
        """
        if self._is_local:
            for name, content in files:
                path = Path(self._path(name))
                path.parent.mkdir(parents=True, exist_ok=True)
                with atomic_write(path, "wb") as stream:
                    stream.write(content)
            return
        with self._files.transaction:
            for name, content in files:
                with self._files.open(self._path(name), "wb") as stream:
                    stream.write(content)

    def names(self, prefix: str) -> list[str]:
        """Return the names of the files in the folder `prefix`, or of the file with that name."""
        self._files.invalidate_cache()
        return [path[len(self._root) + 1 :] for path in self._files.find(self._path(prefix))]

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with its content, if it exists."""
        self._files.invalidate_cache()
        with contextlib.suppress(FileNotFoundError):
            self._files.rm(self._path(name), recursive=True)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"


class TakenOver(Exception):
    """Another try of the run has taken over its stored files; the text is one line."""


class Mirror:
    """The files of one run in a results folder on this machine, and their copy in a storage.

    Args:
        storage: the storage.
        folder: the results folder; the run's files in it are runs/<id>/ and logs/<id>.txt.
        run_id: id of the run.
    """

    def __init__(self, storage: Storage, folder: Path, run_id: str):
        self._storage = storage
        self._folder = folder
        self._run = f"runs/{run_id}"
        self._log = f"logs/{run_id}.txt"
        self._result = f"{self._run}/{RUN_FILE}"
        self._holder = f"logs/{run_id}.holder"
        self._token: bytes | None = None
        self._stored: dict[str, Stamp] = {}

    def take(self) -> None:
        """Claim the run for this object. An earlier try on a node wrongly thought dead stores nothing."""
        self._token = uuid.uuid4().hex.encode()
        self._storage.write([(self._holder, self._token)])

    def pull(self) -> None:
        """Replace the files on this machine by those stored, if any; run.json last, as it marks the end."""
        names = sorted([*self._storage.names(self._run), *self._storage.names(self._log)], key=_place)
        if any(name != self._log for name in names):
            shutil.rmtree(self._folder / self._run, ignore_errors=True)
        for name in names:
            if ".." in PurePosixPath(name).parts:
                raise UserError(f"the storage has a file {name!r}, which would lie outside of its folder")
            content = self._storage.read(name)
            path = self._folder / name
            if content is not None and _is_copied(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                self._stored[name] = _stamp(path)

    def push(self) -> None:
        """Store the files that have changed since the last call, and remove those that are gone.

        The run may go on meanwhile, and can be resumed from the storage at any time. Checkpoints are read
        before the curves and written after them: a resumed run drops rows beyond its checkpoint, but cannot
        restore missing rows.

        Raises:
            OSError: the storage cannot be written; the next call tries again.
            TakenOver: another try has claimed the run since `take`; nothing is stored.
        """
        if self._token is not None and self._storage.read(self._holder) != self._token:
            raise TakenOver("another try of this run has taken over")
        stamps: dict[str, Stamp] = {}
        checkpoints = [sorted(map(self._name, folder.glob("*"))) for folder in self.checkpoints().values()]
        contents = [file for names in checkpoints for file in self._changed(names, stamps)]
        others = sorted(self._other_files(), key=_place)

        def in_order() -> Iterator[tuple[str, bytes]]:
            for name in others:
                if name != self._result:
                    yield from self._changed([name], stamps)
            yield from contents
            if self._result in others:
                yield from self._changed([self._result], stamps)

        self._storage.write(in_order())
        self._stored |= stamps
        self._remove_all_but({*others, *itertools.chain(*checkpoints)})

    def is_ahead(self) -> bool:
        """Return whether the storage has checkpoints, and this machine has a newer one than all of them."""
        names = self._storage.names(f"{self._run}/{FOLDER}")
        stored = [steps for name in names if (steps := steps_of(PurePosixPath(name).parent.name)) is not None]
        return bool(stored) and max(self.checkpoints(), default=-1) > max(stored)

    def set_aside(self) -> Path:
        """Rename the run folder on this machine, and return its new path."""
        folder = self._folder / self._run
        return folder.rename(folder.with_name(f"{folder.name}.kept-{time.time_ns()}"))

    def checkpoints(self) -> dict[int, Path]:
        """Return the folders of complete checkpoints on this machine by agent steps, in ascending order."""
        return checkpoint_folders(self._folder / self._run)

    def _other_files(self) -> Iterator[str]:
        """Yield the names of all files except those of checkpoints."""
        run = self._folder / self._run
        log = self._folder / self._log
        checkpoints = run / FOLDER
        for path in [log, *run.rglob("*")]:
            if path.is_file() and _is_copied(path) and checkpoints not in path.parents:
                yield self._name(path)

    def _changed(self, names: list[str], stamps: dict[str, Stamp]) -> list[tuple[str, bytes]]:
        """Return names and contents of files if one of them has changed; [] if none has, or if one has
        vanished.

        Args:
            names: names of files that belong together.
            stamps: the stamps of returned files are added to it.
        """
        try:
            now = {name: _stamp(self._folder / name) for name in names}
            if all(self._stored.get(name) == stamp for name, stamp in now.items()):
                return []
            files = [(name, (self._folder / name).read_bytes()) for name in names]
        except FileNotFoundError:
            return []
        stamps |= now
        return files

    def _remove_all_but(self, names: set[str]) -> None:
        for name in sorted(self._stored.keys() - names):
            parent = PurePosixPath(name).parent
            self._storage.remove(name if (self._folder / parent).exists() else str(parent))
            del self._stored[name]

    def _name(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()


def _place(name: str) -> tuple[int, str]:
    """Return a sort key for copying: meta.json before config.json, checked against it, and run.json last."""
    return {"meta.json": 0, RUN_FILE: 2}.get(PurePosixPath(name).name, 1), name


def _is_copied(path: Path) -> bool:
    """Return whether a file is copied: not locks, which are for a machine, nor files still being written."""
    return path.name != "lock" and path.suffix != ".new"


def _stamp(path: Path) -> Stamp:
    status = path.stat()
    return status.st_size, status.st_mtime_ns

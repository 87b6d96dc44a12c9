"""Records of runs in archives: one <game>.tar.xz for each game, beside the run folders.

A record is the small files of a run, from which everything on the results page follows. A run that has a
folder is read from there, so a recorded run that is made again counts as begun.
"""

from __future__ import annotations

import functools
import io
import lzma
import tarfile
from collections.abc import Mapping
from pathlib import Path

from ga3c_tf.errors import UserError
from ga3c_tf.files import atomic_write

RUN_FILE = "run.json"
"""The record of a run besides its curves: how it ended, its specification, settings, sessions and scores."""
RECORDED = ("adjustment.csv", "curve.csv", "events.csv", "metrics.csv", "nodes.csv", RUN_FILE)
"""Names of the files of a record. The others of a run folder are large, or are in `RUN_FILE` too."""
SUFFIX = ".tar.xz"
Record = Mapping[str, bytes]
"""Contents of the files of a run, by their names."""


def has_record(folder: Path) -> bool:
    """Return whether a run has a folder, or a record in an archive beside it."""
    return folder.is_dir() or bool(archived(folder))


def read_record(folder: Path, name: str) -> bytes | None:
    """Return the content of a file of a run, from its folder or else from an archive beside it.

    Raises:
        OSError: the file exists and cannot be read.
        UserError: the archive is damaged.
    """
    if not folder.is_dir():
        return archived(folder).get(name)
    file = folder / name
    return file.read_bytes() if file.exists() else None


def archived(folder: Path) -> Record:
    """Return the record of a run in an archive beside its folder, which need not exist; {} if there is none.

    Raises:
        UserError: an archive is damaged.
    """
    for archive in folder.parent.glob(f"*{SUFFIX}"):
        if folder.name.startswith(f"{archive.name.removesuffix(SUFFIX)}-"):  # so few archives are read
            record = records(archive).get(folder.name)
            if record:
                return record
    return {}


def archived_ids(runs: Path) -> list[str]:
    """Return the ids of the runs in all archives of a folder, sorted."""
    return sorted(run_id for archive in runs.glob(f"*{SUFFIX}") for run_id in records(archive))


def records(archive: Path) -> Mapping[str, Record]:
    """Return the records in an archive, by run id; {} if it does not exist.

    Raises:
        UserError: the archive is damaged.
    """
    try:
        status = archive.stat()
        return _records(archive, status.st_ino, status.st_mtime_ns)
    except FileNotFoundError:
        return {}
    except (OSError, tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise UserError(f"{archive} is damaged, restore it: {error}") from None


@functools.lru_cache(maxsize=64)
def _records(archive: Path, inode: int, changed_ns: int) -> dict[str, dict[str, bytes]]:
    """Read an archive, once for each of its versions, which have other inodes or times."""
    runs: dict[str, dict[str, bytes]] = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            run_id, _, name = member.name.partition("/")
            content = tar.extractfile(member)
            if content is not None:
                runs.setdefault(run_id, {})[name] = content.read()
    return runs


def write_archive(archive: Path, runs: Mapping[str, Record]) -> None:
    """Replace an archive as a whole. The same records always give the same bytes.

    Raises:
        UserError: it cannot be written; an earlier one is unchanged.
    """
    try:
        with (
            atomic_write(archive, "wb") as stream,
            tarfile.open(fileobj=stream, mode="w:xz", preset=6) as tar,
        ):
            for run_id, record in sorted(runs.items()):
                for name, content in sorted(record.items()):
                    member = tarfile.TarInfo(f"{run_id}/{name}")  # of 1970, and of no user
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
    except OSError as error:
        raise UserError(f"cannot write {archive}: {error.strerror or error}") from None

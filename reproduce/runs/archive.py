"""Records of runs: the small files of run folders, and archives of them, <game>.tar.xz beside the folders.

Everything on the results page follows from the records. A run that has a folder is read from there, so a
recorded run that is made again counts as begun.
"""

from __future__ import annotations

import io
import json
import lzma
import os
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from ga3c_tf.errors import UserError, did_you_mean
from ga3c_tf.files import atomic_write, json_text, read_once
from ga3c_tf.reproduce.runs.specs import RunSpec
from ga3c_tf.runs import outcomes

FINISHED = "finished"
"""Status of a run whose training and evaluation came to their end."""
RUN_FILE = "run.json"
"""The record of a run besides its curves: how it ended, its specification, settings, sessions and scores."""
RECORDED = ("adjustment.csv", "curve.csv", "events.csv", "metrics.csv", "nodes.csv", RUN_FILE)
"""Names of the files of a record. The others of a run folder are large, or are in `RUN_FILE` too."""
NEEDED = {"status", "reason", "ended", "spec"}
SUFFIX = ".tar.xz"
Files = Mapping[str, bytes]
"""Contents of files by their names."""


def has_ended(result: dict) -> bool:
    """Return whether the run with this run.json has a result: it is finished or diverged."""
    return result.get("status") == FINISHED or result.get("ended") == outcomes.DIVERGED


def read_run(folder: Path) -> dict:
    """Read the run.json of a run, from its folder or an archive beside it; return {} if there is none.

    Returns:
        A dict with 'status', 'reason', 'ended' (what ended the training, one of `ga3c_tf.runs.outcomes`, or
        empty) and 'spec'. As far as the run came, it also has 'config', 'sessions', 'training',
        'calibrations', 'cpu_utilization', 'gpu_utilization', 'utilization_from' (the row of metrics from
        which both were measured), 'evaluation' and 'random'.

    Raises:
        UserError: run.json is damaged.
    """
    content = read_record(folder, RUN_FILE)
    if content is None:
        return {}
    try:
        result = json.loads(content)
        if not set(result) >= NEEDED:
            raise ValueError("it lacks status, reason, ended or spec")
        return result
    except (ValueError, TypeError) as error:
        file = folder / RUN_FILE
        raise UserError(f"{file} is damaged: {error}; remove {folder} to run it again") from None


def has_record(folder: Path) -> bool:
    """Return whether a run has a folder, or a record in an archive beside it."""
    return folder.is_dir() or bool(archived(folder))


def read_record(folder: Path, name: str) -> bytes | None:
    """Return the content of a file of a run, from its folder or else from an archive beside it.

    Raises:
        UserError: the file exists and cannot be read, or the archive is damaged.
    """
    if not folder.is_dir():
        return archived(folder).get(name)
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"{folder / name} is damaged: {error}; remove {folder} to run it again") from None


def archived(folder: Path) -> Files:
    """Return the record of a run in an archive beside its folder, which need not exist; {} if there is none.

    Raises:
        UserError: an archive is damaged.
    """
    for archive in _archives(folder.parent):
        if folder.name.startswith(f"{archive.name.removesuffix(SUFFIX)}-"):  # so few archives are read
            record = records(archive).get(folder.name)
            if record:
                return record
    return {}


def archived_ids(runs: Path) -> list[str]:
    """Return the ids of the runs in all archives of a folder, sorted."""
    return sorted(run_id for archive in _archives(runs) for run_id in records(archive))


@read_once
def _archives(runs: Path) -> list[Path]:
    return [*runs.glob(f"*{SUFFIX}")]


@read_once
def records(archive: Path) -> Mapping[str, Files]:
    """Return the records in an archive, by run id; {} if it does not exist.

    Raises:
        UserError: the archive is damaged.
    """
    runs: dict[str, dict[str, bytes]] = {}
    try:
        files = read_tar(io.BytesIO(lzma.decompress(archive.read_bytes())))
    except FileNotFoundError:
        return {}
    except (OSError, tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise UserError(f"{archive} is damaged, restore it: {error}") from None
    for path, content in files.items():
        run_id, _, name = path.partition("/")
        runs.setdefault(run_id, {})[name] = content
    return runs


def read_tar(stream: IO[bytes]) -> dict[str, bytes]:
    """Return the files of a tar archive."""
    with tarfile.open(fileobj=stream) as tar:
        members = [(member.name, tar.extractfile(member)) for member in tar.getmembers()]
        return {name: content.read() for name, content in members if content is not None}


def write_tar(stream: IO[bytes], files: Files, **options: Any) -> None:
    """Write files to a tar archive, with options of `tarfile.open`. Equal files always give equal bytes."""
    with tarfile.open(fileobj=stream, **options) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)  # of 1970, and of no user
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def write_folder(folder: Path, files: Files) -> None:
    """Make a folder with these files; it is there as a whole or not at all.

    Raises:
        OSError: it cannot be written, or exists with content.
        UserError: a name is that of a file outside of the folder.
    """
    aside = folder.absolute().with_name(f".{folder.name}.unpacked")  # no name that a user would take
    shutil.rmtree(aside, ignore_errors=True)
    for name, content in files.items():
        file = Path(os.path.normpath(aside / name))
        if not file.is_relative_to(aside):
            raise UserError(f"there is a file {name!r}, which would lie outside of its folder")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    aside.rename(folder)


def pack(runs: Path) -> dict[Path, int]:
    """Write the records of all run folders with a result into the archives of their games.

    The folders stay. A record that an archive has already is replaced by that of the folder, unless only
    the recorded run has ended.

    Returns:
        The number of new or changed records in each archive that is written.

    Raises:
        UserError: a folder cannot be read, or an archive cannot be written; each archive is then as before
            or complete.
    """
    by_archive: dict[Path, dict[str, Files]] = {}
    for folder in sorted(path for path in runs.glob("*") if (path / RUN_FILE).is_file()):
        spec = RunSpec.from_values(read_run(folder)["spec"])
        if spec.id == folder.name:  # others were set aside
            record = {name: (folder / name).read_bytes() for name in RECORDED if (folder / name).exists()}
            by_archive.setdefault(runs / f"{spec.game_slug}{SUFFIX}", {})[spec.id] = record
    written = {}
    for archive, new in by_archive.items():
        before = records(archive)
        new = {
            run_id: record
            for run_id, record in new.items()
            if run_id not in before or _has_ended(record) or not _has_ended(before[run_id])
        }
        changed = sum(before.get(run_id) != record for run_id, record in new.items())
        if changed:
            write_archive(archive, {**before, **new})
            written[archive] = changed
    return written


def _has_ended(record: Files) -> bool:
    return has_ended(json.loads(record[RUN_FILE]))


def write_archive(archive: Path, runs: Mapping[str, Files]) -> None:
    """Replace an archive as a whole.

    Raises:
        UserError: it cannot be written; an earlier one is unchanged.
    """
    files = {
        f"{run_id}/{name}": content for run_id, record in runs.items() for name, content in record.items()
    }
    try:
        with atomic_write(archive, "wb") as stream:
            write_tar(stream, dict(sorted(files.items())), mode="w:xz", preset=6)
    except OSError as error:
        raise UserError(f"cannot write {archive}: {error.strerror or error}") from None


def unpack(runs: Path, run_id: str, folder: Path) -> None:
    """Write a recorded run to a new run folder, with the settings and sessions that its run.json holds.

    The folder has no checkpoint, since weights are not recorded.

    Raises:
        UserError: the archives in `runs` have no such run, `folder` exists, or it cannot be written.
    """
    record = archived(runs / run_id)
    if not record:
        ids = archived_ids(runs)
        hint = did_you_mean(run_id, ids) or f", which has {len(ids)} recorded runs"
        raise UserError(f"there is no run {run_id!r} in the archives of {runs}{hint}")
    if folder.exists():
        raise UserError(f"{folder} exists; name another with --to")
    result = json.loads(record[RUN_FILE])
    files = {name: record[name] for name in RECORDED if name in record}
    if "config" in result:  # else the run ended before it had any settings
        sessions = result["sessions"]
        texts = {
            "config.json": json_text(result["config"], indent=2),
            "meta.json": json_text({"sessions": sessions}, indent=2),
            "command.txt": "".join(session["command"] for session in sessions[:1]),
        }
        files |= {name: f"{text}\n".encode() for name, text in texts.items()}
    try:
        write_folder(folder, files)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror or error}") from None

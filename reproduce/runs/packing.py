"""Packs the records of run folders into archives, and unpacks a record into a run folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from ga3c_tf.errors import UserError, did_you_mean
from ga3c_tf.files import json_text
from ga3c_tf.reproduce.runs.archive import (
    RECORDED,
    RUN_FILE,
    SUFFIX,
    Record,
    archived,
    archived_ids,
    records,
    write_archive,
)
from ga3c_tf.reproduce.runs.run import read_run
from ga3c_tf.reproduce.runs.specs import RunSpec

SETTINGS = ("config.json", "meta.json", "command.txt")
"""Files of a run folder that run.json repeats."""


def pack(runs: Path) -> dict[Path, int]:
    """Write the records of all run folders with a result into the archives of their games.

    The folders stay. A record that an archive has already is replaced by that of the folder.

    Returns:
        The number of new or changed records in each archive that is written.

    Raises:
        UserError: a folder cannot be read, or an archive cannot be written; each archive is then as before
            or complete.
    """
    by_archive: dict[Path, dict[str, Record]] = {}
    for folder in sorted(path for path in runs.glob("*") if (path / RUN_FILE).is_file()):
        spec = RunSpec.from_values(read_run(folder)["spec"])
        if spec.id == folder.name:  # others were set aside
            by_archive.setdefault(runs / f"{spec.game_slug}{SUFFIX}", {})[spec.id] = _record_in(folder)
    written = {}
    for archive, new in by_archive.items():
        before = records(archive)
        changed = sum(before.get(run_id) != record for run_id, record in new.items())
        if changed:
            write_archive(archive, {**before, **new})
            written[archive] = changed
    return written


def _record_in(folder: Path) -> Record:
    return {name: (folder / name).read_bytes() for name in RECORDED if (folder / name).exists()}


def unpack(runs: Path, run_id: str, folder: Path) -> None:
    """Write a recorded run to a new run folder, with the settings and sessions that its run.json holds.

    The folder has no checkpoint, since weights are not recorded.

    Args:
        runs: folder with the archives.
        run_id: id of the run.
        folder: the run folder, which is there as a whole or not at all.

    Raises:
        UserError: no such run is recorded, `folder` exists, or it cannot be written.
    """
    record = archived(runs / run_id)
    if not record:
        ids = archived_ids(runs)
        hint = did_you_mean(run_id, ids) or f", which has {len(ids)} recorded runs"
        raise UserError(f"there is no run {run_id!r} in the archives of {runs}{hint}")
    if folder.exists():
        raise UserError(f"{folder} exists; name another with --to")
    aside = folder.with_name(f"{folder.name}.new")
    try:
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        contents = {**_settings_in(json.loads(record[RUN_FILE])), **record}
        for name in [*SETTINGS, *RECORDED]:
            if name in contents:
                (aside / name).write_bytes(contents[name])
        aside.rename(folder)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror or error}") from None


def _settings_in(result: dict) -> Record:
    """Return the files `SETTINGS`; none if the run ended before it had any."""
    if "config" not in result:
        return {}
    sessions = result["sessions"]
    texts = (
        json_text(result["config"], indent=2),
        json_text({"sessions": sessions}, indent=2),
        sessions[0]["command"] if sessions else "",
    )
    return {name: f"{text}\n".encode() for name, text in zip(SETTINGS, texts, strict=True)}

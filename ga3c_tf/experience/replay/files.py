"""The files of a replay memory in a checkpoint: parts of its places, and its lanes."""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ga3c_tf.errors import UserError
from ga3c_tf.experience.replay.lane import Lane
from ga3c_tf.experience.replay.memory import ReplayMemory
from ga3c_tf.files import may_be_undamaged
from ga3c_tf.plugins import one_line

HEAD = "replay.json"
PART = "replay-{:05}.npz"
PART_BYTES = 64 * 2**20
"""Size of a part: so much memory is needed to write and read, however large the replay memory is."""


class ReplayUnreadable(Exception):
    """A replay memory cannot be read from its files. The message is a clause that says why."""


def has_replay(folder: Path) -> bool:
    """Return whether a checkpoint holds a replay memory."""
    return (folder / HEAD).exists()


def remove_replay(folder: Path) -> None:
    """Remove the replay memory of a checkpoint."""
    for file in [folder / HEAD, *folder.glob(PART.format(0).replace("00000", "*"))]:
        file.unlink(missing_ok=True)


def save_replay(memory: ReplayMemory, folder: Path) -> None:
    """Write a replay memory to a folder, which must be empty of another one.

    Raises:
        OSError: a file cannot be written.
    """
    for number, part in enumerate(_parts(memory)):
        arrays: dict[str, Any] = _columns(memory, part)
        np.savez(folder / PART.format(number), priorities=memory.priorities(part), **arrays)
    head = {
        "shape": _shape(memory),
        "collected": memory.collected,
        "highest": memory.highest,
        "lanes": [dataclasses.asdict(lane) for lane in memory.lanes],
    }
    (folder / HEAD).write_text(json.dumps({**head, "checksum": _checksum(head)}) + "\n")


def load_replay(memory: ReplayMemory, folder: Path) -> None:
    """Fill an empty replay memory from the files in a folder. Every agent begins a new episode after it.

    Raises:
        ReplayUnreadable: a file is missing, damaged or cannot be read, or the memory is of other settings.
            The memory must not be used then.
        UserError: a file may be undamaged, but cannot be read now.
    """
    try:
        head = json.loads((folder / HEAD).read_text())
        if head.pop("checksum") != _checksum(head):
            raise ReplayUnreadable("is damaged")
        if head["shape"] != _shape(memory):
            raise ReplayUnreadable("is of other settings")
        memory.collected = head["collected"]
        memory.highest = head["highest"]
        # no process is of this generation, so the next segment continues no episode
        memory.lanes[:] = [Lane(**lane | {"generation": -1}) for lane in head["lanes"]]
        for number, part in enumerate(_parts(memory)):
            with np.load(folder / PART.format(number)) as arrays:  # checks the checksums
                for name, column in _columns(memory, part).items():
                    column[...] = arrays[name]
                memory.set_priorities(part, arrays["priorities"])
    except ReplayUnreadable:
        raise
    except Exception as error:  # a damaged file may raise anything
        if may_be_undamaged(error):
            raise UserError(
                f"the replay memory in {folder} cannot be read now: {one_line(error)}; nothing has been "
                f"changed. If it stays so, remove {HEAD} there, and the memory is filled anew"
            ) from error
        raise ReplayUnreadable(f"cannot be read ({type(error).__name__})") from error


def _checksum(head: dict) -> int:
    return zlib.crc32(json.dumps(head, sort_keys=True).encode())


def _shape(memory: ReplayMemory) -> list:
    """Return what must agree between a replay memory and its files."""
    frames = memory.store.frames
    sampling = [memory.sampling.n_step, memory.sampling.priority_exponent]
    return [list(frames.shape), frames.dtype.name, memory.stacked, *sampling, len(memory.lanes)]


def _columns(memory: ReplayMemory, part: slice) -> dict[str, np.ndarray]:
    """Return what is stored for some of the places, by name."""
    columns = {name: column[part] for name, column in memory.steps.items()}
    return {"frames": memory.store.frames[part], **columns}


def _parts(memory: ReplayMemory) -> Iterator[slice]:
    """Yield the places that are in use, in parts of about `PART_BYTES`."""
    places = max(1, PART_BYTES // memory.store.frames[0].nbytes)
    for lane in memory.lanes:
        end = lane.first + min(lane.head + 1, lane.size)
        for start in range(lane.first, end, places):
            yield slice(start, min(start + places, end))

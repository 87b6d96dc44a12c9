"""The memory that a replay memory needs."""

from __future__ import annotations

import math

import numpy as np

from ga3c_tf.errors import UserError
from ga3c_tf.experience.replay.memory import STEP_COLUMNS
from ga3c_tf.experience.replay.sum_tree import SumTree
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.host.resources import available_bytes


def replay_bytes(size: int, spec: EnvironmentSpec) -> int:
    """Return the memory of a replay memory with so many places, in bytes."""
    frame = np.dtype(spec.state_dtype).itemsize * math.prod(spec.frame_shape)
    columns = sum(np.dtype(dtype).itemsize for dtype in STEP_COLUMNS.values())
    return size * (frame + columns) + SumTree.nbytes(size)


def check_room(size: int, spec: EnvironmentSpec) -> None:
    """Refuse a replay memory that does not fit into the memory of this machine.

    Raises:
        UserError: it does not fit; the message gives its size, and that of one that would.
    """
    room = available_bytes()
    needed = replay_bytes(size, spec)
    if needed > room:
        fitting = int(size * room / needed)
        raise UserError(
            f"a replay memory of {size} states needs {needed / 2**30:.1f} GiB, and {room / 2**30:.1f} GiB "
            f"are left here; --replay-size {fitting} would just fit"
        )

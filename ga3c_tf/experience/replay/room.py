"""The memory that a replay memory needs."""

from __future__ import annotations

import math

import numpy as np

from ga3c_tf.errors import UserError
from ga3c_tf.experience.replay.memory import STEP_COLUMNS
from ga3c_tf.experience.replay.sum_tree import SumTree
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.host.resources import available_bytes

RESERVE_BYTES = 2**30
"""Memory that is left to the agents and to training, whose pages come into use after the check."""


def replay_bytes(size: int, spec: EnvironmentSpec) -> int:
    """Return the memory of a replay memory with so many places, in bytes."""
    frame = np.dtype(spec.state_dtype).itemsize * math.prod(spec.frame_shape)
    columns = sum(np.dtype(dtype).itemsize for dtype in STEP_COLUMNS.values())
    return size * (frame + columns) + SumTree.nbytes(size)


def check_room(size: int, spec: EnvironmentSpec, smallest: int) -> int:
    """Refuse a replay memory that does not fit into the memory of this machine; return its bytes.

    Args:
        size: number of places.
        spec: shapes and types of the environment.
        smallest: smallest number of places that the settings allow.

    Raises:
        UserError: it does not fit; the message gives its size, and that of one that would.
    """
    room = max(0.0, available_bytes() - RESERVE_BYTES)
    needed = replay_bytes(size, spec)
    if needed > room:
        fitting = int(size * room / needed)
        advice = f"--replay-size {fitting} would fit" if fitting >= smallest else "it needs more free memory"
        raise UserError(
            f"a replay memory of {size} states needs {needed / 2**30:.1f} GiB, and {room / 2**30:.1f} GiB "
            f"can be given to it here; {advice}"
        )
    return needed

"""The global random generators of this process, which belong to the user's program."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator

import numpy as np


@contextlib.contextmanager
def global_generators_kept() -> Iterator[None]:
    """Give the generators of `random` and `numpy.random` their old states back after the block."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002 - only the legacy generator is global
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002

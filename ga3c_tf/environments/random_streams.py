"""Random numbers of runs and evaluations: independent streams derived from a seed."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.host.process_state import global_generators_kept

AGENTS = 1
EVALUATION = 3
STATISTICS = 4
"""First numbers of the keys of streams for global generators. A3C's replicas have 2."""


def random_stream(config: Config, number: int) -> np.random.SeedSequence:
    """Return one of the independent random streams derived from the run's seed."""
    return np.random.SeedSequence(config.seed, spawn_key=(number,))


def seed_global_generators(seed: int | None, *key: int) -> None:
    """Seed the global generators of `random` and `numpy.random`.

    Processes with environments are copies of one process, so these generators would otherwise give all of
    them the same numbers. The environments of this package have their own generators, but a user's
    environment may use the global ones.

    Args:
        seed: seed of the run or of the evaluation.
        key: key of the random stream; its first number is `AGENTS`, `EVALUATION` or `STATISTICS`.
    """
    words = np.random.SeedSequence(seed, spawn_key=key).generate_state(4)
    random.seed(words.tobytes())
    np.random.seed(words)  # noqa: NPY002 - only the legacy generator is global


@contextlib.contextmanager
def global_generators_seeded(seed: int | None, *key: int) -> Iterator[None]:
    """Seed the global generators for an environment during the block; the program's own states are kept.

    Args:
        seed: seed of the run or of the evaluation.
        key: key of the random stream, as for `seed_global_generators`.
    """
    with global_generators_kept():
        seed_global_generators(seed, *key)
        yield

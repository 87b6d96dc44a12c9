"""The random numbers of a run: independent streams derived from its seed."""

from __future__ import annotations

import random

import numpy as np

from ga3c_tf.config import Config


def random_stream(config: Config, number: int) -> np.random.SeedSequence:
    """Return one of the independent random streams derived from the run's seed."""
    return np.random.SeedSequence(config.seed, spawn_key=(number,))


def seed_global_generators(config: Config, number: int) -> None:
    """Seed the global generators of `random` and `numpy.random` for the agent with this random stream.

    Agent processes are copies of one process, so these generators would otherwise give all of them the same numbers.
    The environments of this package have their own generators, but a user's environment may use the global ones.
    """
    words = np.random.SeedSequence(config.seed, spawn_key=(1, number)).generate_state(4)
    random.seed(words.tobytes())
    np.random.seed(words)  # noqa: NPY002 - only the legacy generator is global

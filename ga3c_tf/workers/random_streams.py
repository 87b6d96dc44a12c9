"""The random numbers of a run: independent streams that follow from its seed."""

from __future__ import annotations

import random

import numpy as np

from ga3c_tf.config import Config


def random_stream(config: Config, number: int) -> np.random.SeedSequence:
    """One of the independent random streams that the run's seed gives."""
    return np.random.SeedSequence(config.seed, spawn_key=(number,))


def seed_global_generators(config: Config, number: int) -> None:
    """Seed the generators of `random` and `numpy.random` for the agent of this stream.

    Agent processes are copies of one process, and would otherwise all draw the same numbers from them. The environments
    of this package have generators of their own; one of the user's may draw from these.
    """
    words = np.random.SeedSequence(config.seed, spawn_key=(1, number)).generate_state(4)
    random.seed(words.tobytes())
    np.random.seed(words)  # noqa: NPY002 - the old generator is the global one

"""What one batch is trained on: itself once, or shuffled minibatches of it in several epochs, as in PPO."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.rollouts.columns import Batch


class Minibatches:
    """Cuts batches into the minibatches that they are trained on, one update each. Safe under threads.

    Args:
        config: its seed, `epochs`, `minibatch_size` and `has_minibatches` are used.
        agent_steps: of earlier sessions, so that a resumed run does not shuffle as before.
    """

    def __init__(self, config: Config, agent_steps: int = 0):
        self._config = config
        self._random = np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=(0, 0, agent_steps)))

    def of(self, batch: Batch) -> Iterator[Batch]:
        """Yield `epochs` times each step of the batch once, shuffled anew, in parts of nearly equal size.

        There are as many parts as come closest to `minibatch_size`. Without minibatches the batch itself is yielded.
        """
        config = self._config
        if not config.has_minibatches:
            yield batch
            return
        size = len(batch)
        parts = max(1, round(size / config.minibatch_size)) if config.minibatch_size else 1
        for _ in range(config.epochs):
            for steps in np.array_split(self._random.permutation(size), parts):
                yield batch.minibatch(steps)

"""Splitting of a training batch: all of it once, or shuffled minibatches in several epochs, as in PPO."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.experience.columns import Batch, even_cuts


class Minibatches:
    """Splits batches into minibatches, one for each update. Thread-safe.

    Args:
        config: settings of the run; the seed and those of epochs and minibatches are used.
    """

    def __init__(self, config: Config):
        self._config = config
        self.resume(0)

    def resume(self, agent_steps: int) -> None:
        """Continue after so many agent steps of earlier sessions, without repeating their shuffles."""
        stream = np.random.SeedSequence(self._config.seed, spawn_key=(0, 0, agent_steps))
        self._random = np.random.default_rng(stream)

    def of(self, batch: Batch, whole_segments: bool = False) -> Iterator[Batch]:
        """Yield the minibatches of a batch: in each epoch its steps are shuffled and split into nearly equal
        parts, of which `Settings.minibatches_of` gives the number.

        Without minibatches the batch itself is yielded once.

        Args:
            batch: the batch.
            whole_segments: whether segments are shuffled and split in place of steps.
        """
        config = self._config
        if not config.has_minibatches:
            yield batch
            return
        parts = min(config.minibatches_of(len(batch)), len(batch))
        for _ in range(config.epochs):
            if whole_segments:
                order = self._random.permutation(len(batch.lengths))
                for part in even_cuts(batch.lengths[order], parts):
                    yield batch.segments(order[part])
                continue
            for rows in np.array_split(self._random.permutation(len(batch)), parts):
                yield batch.minibatch(rows)

"""Batches of A2C that wait until the lag of `--lag` has passed."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

import numpy as np

from ga3c_tf.experience.columns import Batch

DISTRIBUTIONS: dict[str, Callable[[int, np.random.Generator], int]] = {
    "constant": lambda mean, rng: mean,
    "uniform": lambda mean, rng: int(rng.integers(2 * mean + 1)),  # 0 to twice the mean
    "geometric": lambda mean, rng: int(rng.geometric(1 / (mean + 1))) - 1,  # 0, 1, 2, ...
}
"""How the rounds that a batch waits are drawn around their mean, by `lag_distribution`."""


class LaggedBatches:
    """Hands out each batch as many rounds after it was collected as its lag says.

    Args:
        mean: mean lag in rounds.
        distribution: name in `DISTRIBUTIONS`.
        rng: source of random lags.
    """

    def __init__(self, mean: int, distribution: str, rng: np.random.Generator):
        self._mean = mean
        self._draw = DISTRIBUTIONS[distribution]
        self._rng = rng
        self._rounds = itertools.count()
        self._waiting: list[tuple[int, int, Batch]] = []  # round when it is due, round of its collection

    def after(self, batch: Batch) -> list[Batch]:
        """Add the batch of a new round; return the batches that are due in it, oldest first."""
        number = next(self._rounds)
        heapq.heappush(self._waiting, (number + self._draw(self._mean, self._rng), number, batch))
        due = []
        while self._waiting and self._waiting[0][0] <= number:
            due.append(heapq.heappop(self._waiting)[2])
        return due

    def __len__(self) -> int:
        """Return the number of batches that wait."""
        return len(self._waiting)

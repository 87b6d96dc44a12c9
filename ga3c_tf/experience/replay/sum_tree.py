"""A binary tree of sums, from which places are drawn in proportion to their priorities."""

from __future__ import annotations

import numpy as np


class SumTree:
    """Priorities of a fixed number of places, and their sums (Schaul et al. 2016, appendix B.2.1).

    Args:
        size: number of places. The priority of each is 0 at first.
    """

    def __init__(self, size: int):
        self._depth = max(1, (size - 1).bit_length())
        self._leaves = 1 << self._depth  # number of leaves, and the node of the first one
        self._sums = np.zeros(2 * self._leaves)  # node 1 is the root, and 2 n and 2 n + 1 are n's children

    @staticmethod
    def nbytes(size: int) -> int:
        """Return the memory of a tree with so many places, in bytes."""
        return 16 << max(1, (size - 1).bit_length())

    @property
    def total(self) -> float:
        """Sum of all priorities."""
        return float(self._sums[1])

    def priorities(self, places: np.ndarray) -> np.ndarray:
        """Return the priorities of places [n], float64 [n]."""
        return self._sums[places + self._leaves]

    def set(self, places: np.ndarray, priorities: np.ndarray | float) -> None:
        """Change priorities.

        Args:
            places: int64 [n], at least one. Of a place that stands twice in it, the last priority holds.
            priorities: [n] or one for all, at least 0.
        """
        nodes = places + self._leaves
        self._sums[nodes] = priorities
        for _ in range(self._depth):
            nodes = nodes >> 1
            # computed anew from the children, so that rounding errors do not add up
            self._sums[nodes] = self._sums[2 * nodes] + self._sums[2 * nodes + 1]

    def find(self, masses: np.ndarray) -> np.ndarray:
        """Return the place at which the sum of the priorities, from the first place on, exceeds each mass.

        A place without priority is never returned, unless none has any.

        Args:
            masses: float64 [n], each at least 0 and below `total`.

        Returns:
            int64 [n].
        """
        nodes = np.ones(len(masses), np.int64)
        for _ in range(self._depth):
            nodes *= 2
            left = self._sums[nodes]
            # a mass may exceed all priorities by a rounding error
            goes_right = (masses >= left) & (self._sums[nodes + 1] > 0)
            masses = np.where(goes_right, masses - left, masses)
            nodes += goes_right
        return nodes - self._leaves

"""A tree of sums, from which places are drawn in proportion to their priorities."""

from __future__ import annotations

import numpy as np

WIDTH = 64
"""Children of a node. Few levels of wide nodes take fewer calls of NumPy than many of two children each: a
segment of 5 steps among 100,000 places takes a third of the time."""

MOST_CHANGES = 1_000
"""Changes that wait for their sums; without a limit, they would take memory as long as nothing is sampled."""


class SumTree:
    """Priorities of a fixed number of places, and their sums (Schaul et al. 2016, appendix B.2.1).

    Sums are computed when they are asked for, once for all priorities that have changed: a segment of 5 steps
    changes two times as many, and 26 of them come before a batch of 128.

    Args:
        size: number of places. The priority of each is 0 at first.
    """

    def __init__(self, size: int):
        self._levels = [np.zeros(WIDTH * nodes) for nodes in _nodes(size)]  # children of the root first
        self._changed: list[np.ndarray] = []  # places since the sums were computed

    @staticmethod
    def nbytes(size: int) -> int:
        """Return the memory of a tree with so many places, in bytes."""
        return 8 * WIDTH * sum(_nodes(size))

    @property
    def total(self) -> float:
        """Sum of all priorities."""
        self._sum()
        return float(self._levels[0].sum())

    def priorities(self, places: np.ndarray) -> np.ndarray:
        """Return the priorities of places [n], float64 [n]."""
        return self._levels[-1][places]

    def set(self, places: np.ndarray, priorities: np.ndarray | float) -> None:
        """Change priorities.

        Args:
            places: int64 [n]. Of a place that stands twice in it, the last priority holds.
            priorities: [n] or one for all, at least 0.
        """
        self._levels[-1][places] = priorities
        self._changed.append(places)
        if len(self._changed) > MOST_CHANGES:
            self._sum()

    def find(self, masses: np.ndarray) -> np.ndarray:
        """Return the place at which the sum of the priorities, from the first place on, exceeds each mass.

        A place without priority is never returned; some place must have one.

        Args:
            masses: float64 [n], each at least 0 and below `total`.

        Returns:
            int64 [n].
        """
        self._sum()
        nodes = np.zeros(len(masses), np.int64)
        rows = np.arange(len(masses))
        for level in self._levels:
            ends = level.reshape(-1, WIDTH)[nodes].cumsum(axis=1)
            # a mass may exceed the priorities by a rounding error
            masses = np.minimum(masses, np.nextafter(ends[:, -1], 0.0))
            child = (ends <= masses[:, None]).sum(axis=1)
            masses = masses - np.where(child > 0, ends[rows, child - 1], 0.0)
            nodes = nodes * WIDTH + child
        return nodes

    def _sum(self) -> None:
        """Compute the sums above the priorities that have changed."""
        if not self._changed:
            return
        nodes = np.concatenate(self._changed)
        self._changed = []
        for children, level in zip(self._levels[:0:-1], self._levels[-2::-1], strict=True):
            nodes = np.unique(nodes // WIDTH)
            # computed anew from the children, so that rounding errors do not add up
            level[nodes] = children.reshape(-1, WIDTH)[nodes].sum(axis=1)


def _nodes(size: int) -> list[int]:
    """Return the number of nodes whose children a level holds, from the root on."""
    nodes = [-(-size // WIDTH)]
    while nodes[0] > 1:
        nodes.insert(0, -(-nodes[0] // WIDTH))
    return nodes

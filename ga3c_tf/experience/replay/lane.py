"""Where the steps of one agent lie in a replay memory: a ring that the agent fills step after step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class Lane:
    """The ring of one agent. A position counts on where the ring begins anew; a place does not.

    Attributes:
        first: place at which the ring begins.
        size: number of places in it.
        head: position of the newest state, from which the next step starts.
        ready: position of the first step that cannot be sampled yet, because it lacks later ones.
        goes_on: whether the next segment continues the newest episode.
        generation: generation of the process that sent the newest segment.
    """

    first: int
    size: int
    head: int = 0
    ready: int = 0
    goes_on: bool = False
    generation: int = 0

    def places(self, start: int, count: int) -> np.ndarray:
        """Return the places of so many positions from `start` on, int64 [count]."""
        return self.first + np.arange(start, start + count) % self.size

"""How many trainers may update simultaneously: few at first on a CPU, more where cores idle all the same."""

from __future__ import annotations

import sys
from statistics import median

from ga3c_tf.host.scheduling import IdleCores

BEHIND = 0.25
"""Share of the predictions that waited for the trainers, from which the trainers count as behind.

On 2 cores, with 32 agents, it is 0.02 for CartPole, 0.3 to 0.45 for MinAtar Breakout and 1 for Pong.
"""
IDLE = 0.08
"""Idle share of the cores' time above which they count as idle: 0.12 for MinAtar Breakout, 0.03 for Pong."""
ROWS = 3
"""Number of rows of metrics of which both medians are taken: single rows vary."""


class UpdateLimit:
    """Finds out, row by row of the metrics, whether one more simultaneous update should be allowed.

    It should if trainers are behind and cores idle all the same: predictions wait, and the running update
    does not use the cores that they free. With MinAtar's network a second update then makes training 2 to
    8 % faster (two series on 2 cores). Where no core is idle two updates slow each other down.
    """

    def __init__(self):
        self._idle = IdleCores()
        self._rows: list[tuple[float, float]] = []

    def should_rise(self, waited: float) -> bool:
        """Note one row; return whether one more update should be allowed now.

        Args:
            waited: share of the row's predictions that waited for the trainers, 0 to 1.
        """
        self._rows.append((waited, self._idle.share()))
        if len(self._rows) < ROWS:
            return False
        behind, idle = map(median, zip(*self._rows, strict=True))
        self._rows.clear()
        return behind > BEHIND and idle > IDLE


def updates_at_once(device: str, cores: int) -> int:
    """Return how many trainers may update simultaneously at first: as many as half the cores, or any number
    on a GPU.

    On a CPU even an update of few states moves all weights, gradients and RMSProp's slots through the memory
    that the cores share. Two simultaneous updates, each on its own core, take 2.0 ms of processor time each
    instead of 1.4 (5 states, small network, 2-core EPYC). One update beside an agent takes no longer than
    alone.
    """
    return sys.maxsize if "GPU" in device else max(1, cores // 2)

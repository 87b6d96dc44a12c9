"""The settings of learning that change during a run."""

from __future__ import annotations

from typing import NamedTuple


class Rates(NamedTuple):
    """What `Settings.annealed` gives for a time of a run.

    Attributes:
        learning_rate: learning rate of the optimizer.
        beta: coefficient of the entropy bonus.
        epsilon: probability that an agent takes a random action instead of the policy's.
    """

    learning_rate: float
    beta: float = 0.0
    epsilon: float = 0.0

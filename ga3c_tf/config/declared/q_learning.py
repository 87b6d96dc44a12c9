"""Settings of Q-learning."""

from __future__ import annotations

from dataclasses import dataclass

from ga3c_tf.config.declaration import Q_LEARNING, beside, declare
from ga3c_tf.config.declared.workers import ADJUSTMENTS, MOST


@dataclass(frozen=True)
class QLearningSettings:
    """How agents explore that act by the values of actions."""

    epsilon: float = declare(
        1.0,
        "algorithm",
        "Probability at the start that an agent takes a random action instead of the best one.",
        low=0,
        high=1,
        algorithms=Q_LEARNING,
    )
    epsilon_end: float = declare(
        0.05,
        "algorithm",
        "This probability after --epsilon-steps.",
        low=0,
        high=1,
        algorithms=Q_LEARNING,
    )
    epsilon_steps: int = declare(
        100_000,
        "algorithm",
        "Number of agent steps over which it changes linearly.",
        low=1,
        high=MOST**2,
        algorithms=Q_LEARNING,
    )
    epsilon_spread: float = declare(
        0.0,
        "algorithm",
        "Gives each agent an epsilon of its own: agent i of N has epsilon^(1 + spread * i / (N - 1)). Ape-X "
        "(Horgan et al. 2018) has 7, with --epsilon and --epsilon-end at 0.4.",
        low=0,
        high=1000,
        excludes=[beside(adjustment=ADJUSTMENTS, because="it is for a constant number of agents")],
        algorithms=Q_LEARNING,
    )

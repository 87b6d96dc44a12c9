"""Answers requests of agents with the policy's predictions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.contracts import Observer, Policy, Prediction


class Inference:
    """Predicts for states in the shared memory.

    Args:
        policy: policy that predicts.
        memory: buffers shared with the agents.
        observer: is told of each prediction.
        rates: returns the current rates, of which epsilon is used; None if agents follow the policy.
    """

    def __init__(
        self,
        policy: Policy,
        memory: RolloutBuffers,
        observer: Observer,
        rates: Callable[[], Rates] | None = None,
    ):
        self._policy = policy
        self._rates = rates
        self._memory = memory
        self._observer = observer

    def predict(self, states: np.ndarray) -> Prediction:
        """Return the prediction for the states with these indices in `memory.flat_states`, uint32 [n]."""
        prediction = self._policy.predict(self._memory.flat_states[states])
        self._observer.predicted(len(states))
        return prediction.exploring(self._rates().epsilon) if self._rates else prediction

    def answer(self, states: np.ndarray) -> None:
        """Predict for these states, and write the predictions to the rows of their agents.

        For systems whose agents are never replaced; others answer by `ReplyPipes.answer`.
        """
        self._memory.write_predictions(self._memory.agents_of(states), self.predict(states))

"""Answers requests of agents with the policy's predictions."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.contracts import Observer, Policy, Prediction


class Inference:
    """Predicts for states in the shared memory.

    Args:
        policy: policy that predicts.
        memory: buffers shared with the agents.
        observer: is told of each prediction.
        epsilons: returns the current epsilon of each agent, float32 [agents]; None if agents follow the
            policy.

    Attributes:
        gate: while this lock is held, no prediction begins, and agents rest.
    """

    def __init__(
        self,
        policy: Policy,
        memory: RolloutBuffers,
        observer: Observer,
        epsilons: Callable[[], np.ndarray] | None = None,
    ):
        self.gate = threading.Lock()
        self._policy = policy
        self._epsilons = epsilons
        self._memory = memory
        self._observer = observer

    def predict(self, states: np.ndarray) -> Prediction:
        """Return the prediction for the states with these indices in `memory.flat_states`, uint32 [n]."""
        with self.gate:
            pass
        memory = self._memory
        inputs = [memory.flat_states[states]]
        if memory.has_carry:
            inputs.append(memory.carry[memory.agents_of(states)])
        prediction = self._policy.predict(*inputs)
        self._observer.predicted(len(states))
        if self._epsilons is None:
            return prediction
        return prediction.exploring(self._epsilons()[self._memory.agents_of(states)])

    def answer(self, states: np.ndarray) -> None:
        """Predict for these states, and write the predictions to the rows of their agents.

        For systems whose agents are never replaced; others answer by `ReplyPipes.answer`.
        """
        self._memory.write_predictions(self._memory.agents_of(states), self.predict(states))

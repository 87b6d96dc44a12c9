"""Parts that cost nothing, in place of the real ones: what a system takes with them is its own.

An agent process imports this module, so it is free of TensorFlow.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import gymnasium
import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.environments.environment import make_environment
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.contracts import NO_CARRY, Prediction, Rates, UpdateResult
from ga3c_tf.experience.divergence import UNKNOWN

if TYPE_CHECKING:
    from ga3c_tf.model.tensorflow import keras


class FreeEnvironment(gymnasium.Env):
    """An environment that takes no time: one state at every step, and no end."""

    def __init__(self, states: gymnasium.spaces.Space, actions: gymnasium.spaces.Space):
        self.observation_space = states
        self.action_space = actions
        self._state = states.sample()
        if self._state.dtype == np.float32:  # without bounds, samples are so large that losses are infinite
            self._state = np.clip(self._state, -1, 1)

    def reset(self, *, seed: int | None = None, options: dict | None = None):
        """Return the state and an empty info."""
        return self._state, {}

    def step(self, action: int):
        """Return the same state and no reward."""
        return self._state, 0.0, False, False, {}


def free_environment(config: Config) -> Callable[[], gymnasium.Env]:
    """Return what makes a `FreeEnvironment` with the states and actions of the environment in `config`."""
    with closing(make_environment(config)) as environment:
        return functools.partial(FreeEnvironment, environment.observation_space, environment.action_space)


class InstantModel:
    """A model that answers at once: all actions are equally likely, and an update only counts. Thread-safe.

    Args:
        most: largest number of states in a prediction.
        num_actions: number of actions.
        metrics: names of the metrics of its updates, all of which are 0.
    """

    updates_per_call = 8
    needs_segments = False

    def __init__(self, most: int, num_actions: int, metrics: Sequence[str]):
        self.metrics = tuple(metrics)
        self._policy = np.full((most, num_actions), 1 / num_actions, np.float32)
        self._value = np.zeros(most, np.float32)
        self._no_metrics = dict.fromkeys(metrics, 0.0)
        self._version = 0
        self._updating = threading.Lock()

    def predict(self, states: np.ndarray, carry: np.ndarray = NO_CARRY) -> Prediction:
        """Return the uniform policy and the value 0 for states [B, *state_shape]."""
        size = len(states)
        return Prediction(self._policy[:size], self._value[:size], self._version)

    def train(self, batches: Sequence[Batch], rates: Rates) -> list[UpdateResult]:
        """Count one update for each batch."""
        with self._updating:
            before = self._version
            self._version += len(batches)
        return [
            UpdateResult(self._no_metrics, UNKNOWN, before + number, True)
            for number in range(1, len(batches) + 1)
        ]


def network_without_arithmetic(shape: tuple[int, ...], dtype: np.dtype, num_actions: int) -> keras.Model:
    """Return a network that takes whole states and computes with one number of each."""
    from ga3c_tf.model.tensorflow import keras

    states = keras.Input(shape, dtype=dtype)
    number = keras.ops.cast(keras.layers.Flatten()(states)[:, :1], "float32")
    logits = keras.layers.Dense(num_actions)(number)
    value = keras.ops.squeeze(keras.layers.Dense(1)(number), 1)
    return keras.Model(states, (logits, value))

"""What the models of all algorithms are: a network that predicts and learns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.contracts import NO_CARRY, Prediction, UpdateResult
from ga3c_tf.model.tensorflow import keras, tf


class NetworkModel(ABC):
    """A `Policy` and `Learner` with one network.

    Attributes:
        network: Keras network; its input is a batch of states [B, *state_shape].
        dtype_policy: Keras's name of the dtype policy of the hidden layers.
        states: tf.TensorSpec of a batch of states.
        initial_carry: float32 [H], carry with which an episode begins; [0] without memory.
        version: scalar int64 variable, the number of updates done.
    """

    metrics: tuple[str, ...]
    updates_per_call = 1
    needs_segments = False
    initial_carry = NO_CARRY
    network: keras.Model
    dtype_policy: str
    states: tf.TensorSpec
    version: tf.Variable

    @property
    def updates(self) -> int:
        """Number of updates done."""
        return int(self.version.numpy())

    def load(self) -> None:  # noqa: B027, most models have nothing to take over
        """Take the weights, statistics and version over that the variables of `checkpoint_objects` have.

        Called before a training begins, and after these variables were assigned to.
        """

    def store(self) -> None:  # noqa: B027
        """Bring the variables of `checkpoint_objects` up to date. Called before they are read."""

    def align(self) -> None:  # noqa: B027, most models are on one device
        """Bring copies of the weights on other devices up to date. Called before an evaluation."""

    @abstractmethod
    def predict(self, states: np.ndarray, carry: np.ndarray = NO_CARRY) -> Prediction:
        """Return policy [B, A], values [B] and version for states [B, *state_shape].

        A network with memory also takes the carry before each state, [B, H], and gives that after it.
        """

    @abstractmethod
    def train(self, batches: Sequence[Batch], rates: Rates) -> list[UpdateResult]:
        """Update the weights on each batch. Skip an update whose losses or gradients are not finite."""

    def standardize(self, mean: np.ndarray, variance: np.ndarray) -> None:
        """Set the mean and variance by which the network standardizes states.

        Args:
            mean: mean of each element of a state, float32 [*state_shape].
            variance: variance of each element of a state, float32 [*state_shape].

        Raises:
            ValueError: the network was not built with `normalize_observations`.
        """
        self.network.get_layer("standardize").measured(mean, variance)

    @abstractmethod
    def checkpoint_objects(self) -> dict[str, list[tf.Variable]]:
        """Return the content of a checkpoint, for tf.train.Checkpoint(**objects): weights, optimizer slots
        and version.

        Variables are identified by position. Their names are not stable, because Keras names unnamed layers
        by what the process has built before.
        """


def check_states(states: np.ndarray, spec: tf.TensorSpec) -> None:
    """Refuse states of another shape or type than those of a network: TensorFlow would broadcast or cut them.

    Args:
        states: states of a batch.
        spec: `NetworkModel.states` of the network.

    Raises:
        ValueError: they differ.
    """
    shape = spec.shape.as_list()[1:]
    dtype = spec.dtype.as_numpy_dtype
    if list(states.shape[1:]) != shape or states.dtype != dtype:
        raise ValueError(
            f"states are {states.dtype} {states.shape}; the model takes {np.dtype(dtype)} "
            f"[B, {', '.join(map(str, shape))}]"
        )


def check_steps(batch: Batch, name: str, shape: Sequence[int] = ()) -> None:
    """Refuse a column that has not one value of this shape for each state, with a ValueError."""
    states = len(batch.states)
    actual = np.shape(getattr(batch, name))
    if actual != (states, *shape):
        raise ValueError(f"{states} states need as many {name}, not {name} of shape {actual}")

"""Proximal policies of decoupled PPO: their answers become a column of a batch before an update on it.

B is the number of states in a batch.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod

from ga3c_tf.algorithms.actor_critic.actor_critic import ActorCritic
from ga3c_tf.algorithms.actor_critic.probabilities import log_policy, log_taken
from ga3c_tf.algorithms.compiled.stateless import StatelessNetwork
from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.experience.columns import PROXIMAL, Batch
from ga3c_tf.model.compiled.compilation import CannotCompile
from ga3c_tf.model.graph_call import trace
from ga3c_tf.model.tensorflow import tf

BETA = 0.889
"""Factor by which the weight of an update in the average falls with each later one (openai/ppo-ewma)."""


class Proximal(ABC):
    """A policy between the one that chose the actions and the current one.

    Args:
        config: settings of the run; `min_policy` is used.
        actor_critic: the network.
        weights: weights of the policy, in the order of the network's trainable variables.
    """

    def __init__(self, config: Config, actor_critic: ActorCritic, weights: list[tf.Variable]):
        network = StatelessNetwork(actor_critic.network, actor_critic.states)

        def log_probabilities(states: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
            logits, _ = network([weight.read_value() for weight in weights], states)
            return log_taken(log_policy(logits, config.min_policy, None), actions)

        self._call = trace(log_probabilities, [actor_critic.states, tf.TensorSpec((None,), tf.int32)])

    def answered(self, batch: Batch) -> None:
        """Give a batch log-probabilities of its actions, as a column [B]."""
        log_pi = self._call(tf.constant(batch.states), tf.constant(batch.actions, tf.int32))
        vars(batch)[PROXIMAL.name] = log_pi.numpy()

    @abstractmethod
    def before(self, batch: Batch) -> None:
        """Give a batch the column of its next update."""

    @abstractmethod
    def after(self) -> None:
        """Take notice of an update."""


class Recomputed(Proximal):
    """The policy when the first update on a training batch begins, for all of its epochs and minibatches."""

    def __init__(self, config: Config, actor_critic: ActorCritic):
        super().__init__(config, actor_critic, actor_critic.variables)

    def before(self, batch: Batch) -> None:
        if not hasattr(batch.whole, PROXIMAL.name):
            self.answered(batch.whole)

    def after(self) -> None:
        pass


class Averaged(Proximal):
    """PPO-EWMA (Hilton et al. 2021): an average of the weights after all updates, the newest counting most.

    Its bias is corrected: it begins as the weights at the start of a session. Checkpoints do not have it.
    """

    def __init__(self, config: Config, actor_critic: ActorCritic):
        self._newest = actor_critic.variables
        self._averages = [tf.Variable(variable) for variable in self._newest]
        self._count = tf.Variable(0.0)  # sum of the weights of all updates in the average
        self._changing = threading.Lock()
        self._take = trace(self._taken, [])
        super().__init__(config, actor_critic, self._averages)

    def before(self, batch: Batch) -> None:
        with self._changing:
            if not float(self._count):
                self._take()  # the weights that the session begins with
        self.answered(batch)

    def after(self) -> None:
        with self._changing:
            self._take()

    def _taken(self) -> None:
        older = BETA * self._count
        share = 1.0 / (older + 1.0)
        for average, newest in zip(self._averages, self._newest, strict=True):
            average.assign_add(share * (newest - average))
        self._count.assign(older + 1.0)


KINDS: dict[str, type[Recomputed] | type[Averaged]] = {
    "decoupled-recompute": Recomputed,
    "decoupled-ewma": Averaged,
}


def proximal_of(config: Config, actor_critic: ActorCritic) -> Proximal | None:
    """Return the proximal policy that the correction of the settings asks for, if any.

    Raises:
        UserError: the network has memory, or changes itself where it is called.
    """
    for part, kind in KINDS.items():
        if part in config.correction_parts:
            if actor_critic.has_memory:
                raise UserError(f"--correction {config.correction} is not for networks with memory")
            try:
                return kind(config, actor_critic)
            except CannotCompile as error:
                problem = (
                    f"--correction {config.correction} needs a network without a state of its own: {error}"
                )
                raise UserError(problem) from None
    return None

"""An agent's replica of the network: predicts, computes gradients, and applies them to the shared weights."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ga3c_tf.algorithms.factory import new_model
from ga3c_tf.algorithms.network_model import NetworkModel
from ga3c_tf.config import Config
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.tensorflow import tf
from ga3c_tf.model.weight_store import Trainable
from ga3c_tf.systems.a3c.adam import adam_step
from ga3c_tf.systems.a3c.shared_weights import SharedWeights, rmsprop_step


class AgentWeights:
    """The shared weights as one agent sees them: a copy for its network, theta' in Mnih et al. 2016,
    algorithm S3.

    The copy is taken at the start and after each of the agent's updates. A `WeightStore`, for one thread.

    Args:
        config: settings of the run; those for the optimizer are used.
        shared: shared weights and optimizer statistics of the run.
        agent: number of the agent, an index into `shared.updates`.
        network: computes the gradients of the agent's copy.
        version: variable for the number of updates, by all agents, that the copy contains at least.
    """

    def __init__(
        self,
        config: Config,
        shared: SharedWeights,
        agent: int,
        network: Trainable,
        version: tf.Variable,
    ):
        self._config = config
        self._shared = shared
        self._agent = agent
        self._network = network
        self._version = version
        self.pull()

    def pull(self) -> None:
        """Copy the shared weights into the network.

        The raw operation takes a quarter of the time of `variable.assign`, which checks shape and type each
        time.
        """
        self.version()
        for variable, weight in zip(self._network.variables, self._shared.groups["weights"], strict=True):
            tf.raw_ops.AssignVariableOp(resource=variable.handle, value=tf.constant(weight))

    def version(self) -> int:
        updates = self._shared.version
        tf.raw_ops.AssignVariableOp(resource=self._version.handle, value=tf.constant(updates, tf.int64))
        return updates

    def slots(self) -> dict[str, list[tf.Variable]]:
        return {}  # they are in the shared memory, and in the checkpoint of the server's model

    def push(self, gradients: Sequence[tf.Tensor], learning_rate: float) -> int:
        config = self._config
        groups = self._shared.groups
        step = self._shared.version + 1
        for (optimizer, variable), tensor in zip(self._network.gradients_of, gradients, strict=True):
            weight = groups["weights"][variable]
            gradient = tensor.numpy()
            if config.optimizer == "adam":
                first = groups["first_moment"][variable]
                second = groups["second_moment"][variable]
                adam_step(weight, first, second, gradient, learning_rate, config.adam_epsilon, step)
                continue
            prefix = ("", "value_")[optimizer]
            rmsprop_step(
                weight,
                groups[prefix + "mean_square"][variable],
                groups[prefix + "momentum"][variable],
                gradient,
                learning_rate,
                config.rmsprop_decay,
                config.rmsprop_momentum,
                config.rmsprop_epsilon,
            )
        self._shared.updates[self._agent] += 1
        return step


def replica(config: Config, spec: EnvironmentSpec, shared: SharedWeights, agent: int) -> NetworkModel:
    """Return the model of an A3C agent, which only that agent uses.

    Each replica has its own seed for the noise that a user's network draws during training.

    Args:
        config: settings of the run.
        spec: as in `Model`.
        shared: shared weights and optimizer statistics of the run.
        agent: number of the agent.
    """
    stream = np.random.SeedSequence(config.seed, spawn_key=(2, agent, int(shared.updates[-1])))
    seed = int(stream.generate_state(1)[0])
    store = functools.partial(AgentWeights, config, shared, agent)
    return new_model(config, spec, seed, "/CPU:0", store)

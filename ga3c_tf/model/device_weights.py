"""The weights of one model on its device, with the optimizer that changes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ga3c_tf.config import Config
from ga3c_tf.model.graph_call import direct_call, trace
from ga3c_tf.model.optimizers import Adam, RMSProp
from ga3c_tf.model.tensorflow import tf
from ga3c_tf.model.weight_store import Trainable


class DeviceWeights:
    """The variables of the network itself are trained, so there is nothing to copy. A `WeightStore`.

    Args:
        config: settings of the run; those for the optimizer are used.
        network: computes the gradients of the variables that are trained.
        version: scalar int64 variable that counts the updates.
        device: TensorFlow device of the variables; None leaves the choice to TensorFlow.
        clip: changes the gradients of one optimizer before they are used, in a graph; `list` leaves them.
    """

    def __init__(
        self,
        config: Config,
        network: Trainable,
        version: tf.Variable,
        device: str | None,
        clip: Callable[[Sequence[tf.Tensor | None]], list[tf.Tensor | None]] = list,
    ):
        self._clip = clip
        self._variables = network.variables
        self._gradients_of = network.gradients_of
        self._version = version
        self._device = device
        with tf.device(device):
            count = 2 if config.dual_rmsprop else 1  # one optimizer for each loss, or one for their sum
            self._optimizers = [self._new_optimizer(config) for _ in range(count)]
            # The update is a separate call, made only where the gradients are finite. On a CPU (2-core EPYC)
            # this costs 0.05 ms. A `tf.cond` around the update, in one graph with the gradients, costs 0.5
            # ms, a third of an update of 5 states. Neither was measured on a GPU.
            variables = [self._variables[variable] for _, variable in self._gradients_of]
            gradients = [tf.TensorSpec(variable.shape, variable.dtype) for variable in variables]
            self._apply = direct_call(trace(self._update_graph, [tf.TensorSpec((), tf.float32), *gradients]))

    def push(self, gradients: Sequence[tf.Tensor], learning_rate: float) -> int:
        with tf.device(self._device):
            [version] = self._apply(tf.constant(learning_rate, tf.float32), *gradients)
        return int(version.numpy())

    def pull(self) -> None:
        pass

    def version(self) -> int:
        return int(self._version.numpy())

    def slots(self) -> dict[str, list[tf.Variable]]:
        groups: dict[str, list[tf.Variable]] = {}
        for prefix, optimizer in zip(("", "value_"), self._optimizers, strict=False):
            groups |= {prefix + name: list(slots) for name, slots in optimizer.slots.items()}
        return groups

    def _new_optimizer(self, config: Config) -> RMSProp | Adam:
        if config.optimizer == "adam":
            return Adam(self._variables, self._version, config.adam_epsilon)
        return RMSProp(
            self._variables,
            config.rmsprop_decay,
            config.rmsprop_momentum,
            config.rmsprop_epsilon,
            config.rmsprop_centred,
        )

    def _update_graph(self, learning_rate: tf.Tensor, *gradients: tf.Tensor) -> list[tf.Tensor]:
        by_place = dict(zip(self._gradients_of, gradients, strict=True))
        updates = []
        for number, optimizer in enumerate(self._optimizers):
            of_optimizer = [by_place.get((number, variable)) for variable in range(len(self._variables))]
            updates += optimizer.apply(self._clip(of_optimizer), learning_rate)
        with tf.control_dependencies(updates), tf.device(self._version.device):
            # assign_add reads the sum back in a second step; another trainer's update may come in between.
            return [
                tf.raw_ops.ResourceCountUpTo(resource=self._version.handle, limit=tf.int64.max, T=tf.int64)
                + 1
            ]

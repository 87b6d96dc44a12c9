"""The one model of a run: prediction and training on it as two tf.functions, and the device they run on.

Server processes import TensorFlow here. B is the number of states in a batch, A the number of actions.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.host.machine import usable_cores
from ga3c_tf.model import losses
from ga3c_tf.model.networks import build_network
from ga3c_tf.model.rmsprop import RMSProp, clip_by_average_norm
from ga3c_tf.model.tensorflow import keras, tf


class TrainResult(NamedTuple):
    """What one update reports: its losses before the weights changed, and the version after."""

    policy_loss: float  # -(advantage objective + beta * entropy), summed over the batch
    value_loss: float  # 0.5 * (R - V)^2, summed over the batch
    entropy: float  # of the policy in nats, the mean over the batch
    version: int  # updates done, this one included if it was applied
    applied: bool  # False where a loss or gradient was infinite or not a number: nothing has changed then


class Model:
    """The network and its optimiser, for any number of predictor and trainer threads (section 4 of the paper).

    Args:
        config: The settings of the group "model".
        state_shape: Shape of one state.
        state_dtype: Its type, uint8 or float32.
        num_actions: A.
        seed: Of the initial weights.
        network: Used instead of building `config.network`.
        device: What `configure_device` returned; None leaves the choice to TensorFlow.

    Attributes:
        network: keras.Model, states [B, *state_shape] to (logits [B, A], values [B]).
        version: Scalar int64 variable, the number of updates done.

    Raises:
        UserError: the network cannot be built, or does not fit the states; or the loss fails.
    """

    def __init__(
        self,
        config: Config,
        state_shape: Sequence[int],
        state_dtype: np.dtype | str,
        num_actions: int,
        seed: int,
        network: keras.Model | None = None,
        device: str | None = None,
    ):
        self._config, self._device = config, device
        self._state_shape, self._state_dtype = tuple(state_shape), np.dtype(state_dtype)
        with tf.device("/CPU:0"):  # where the operation that counts is at home
            self.version = tf.Variable(0, dtype=tf.int64, trainable=False, name="version")
        with tf.device(device):
            self._loss = losses.find_loss(config, num_actions)
            self.network = network or build_network(config.network, state_shape, state_dtype, num_actions, seed)
            self._variables = [variable.value for variable in self.network.trainable_variables]
            self._optimizers = self._new_optimizers()
            states = tf.TensorSpec((None, *self._state_shape), self._state_dtype)
            actions, returns = tf.TensorSpec((None,), tf.int32), tf.TensorSpec((None,), tf.float32)
            rate = tf.TensorSpec((), tf.float32)
            self._predict = _direct_call(self._predict_graph, [states])
            self._gradients_of: list[tuple[int, int]] = []  # optimizer and variable of each gradient, once traced
            self._compute = _direct_call(self._gradient_graph, [states, actions, returns, rate])
            self._prepare_update()

    def predict(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """The policy and value of every state.

        Args:
            states: [B, *state_shape] of the model's state type.

        Returns:
            policy [B, A] float32, values [B] float32, and the version: every one of its updates is in the weights that
            answered, though an update still running in another thread may be in some of them too.

        Raises:
            ValueError: states of another shape or type.
        """
        self._check_states(states)
        with tf.device(self._device):
            policy, values, version = self._predict(tf.constant(states))
        return policy.numpy(), values.numpy(), int(version.numpy())

    def train(
        self, states: np.ndarray, actions: np.ndarray, returns: np.ndarray, learning_rate: float, beta: float
    ) -> TrainResult:
        """One update on one batch.

        Args:
            states: [B, *state_shape] of the model's state type.
            actions: [B] int32, the actions taken, each below A.
            returns: [B] float32, the n-step returns.
            learning_rate: RMSProp's, now.
            beta: Weight of the entropy, now.

        Raises:
            ValueError: an argument of another shape, or states of another type.
        """
        self._check_states(states)
        if not np.shape(actions) == np.shape(returns) == (len(states),):
            raise ValueError(
                f"{len(states)} states need as many actions and returns, not arrays of shapes "
                f"{np.shape(actions)} and {np.shape(returns)}"
            )
        with tf.device(self._device):
            *gradients, summary = self._compute(
                tf.constant(states),
                tf.constant(actions, tf.int32),
                tf.constant(returns, tf.float32),
                tf.constant(beta, tf.float32),
            )
            policy_loss, value_loss, entropy, finite = summary.numpy().tolist()
            version = self._update(gradients, learning_rate) if finite else self._refuse()
        return TrainResult(policy_loss, value_loss, entropy, version, bool(finite))

    def checkpoint_objects(self) -> dict[str, list[tf.Variable]]:
        """All that a checkpoint holds, for tf.train.Checkpoint(**objects): weights, RMSProp's slots, version.

        By position, not by name: Keras makes up the names of unnamed layers from what the process has built before.
        """
        objects = {"weights": [variable.value for variable in self.network.weights], "version": [self.version]}
        for prefix, optimizer in zip(("", "value_"), self._optimizers, strict=False):
            objects[prefix + "mean_square"] = list(optimizer.mean_square)
            objects[prefix + "momentum"] = list(optimizer.momentum_slots)
        return objects

    def _new_optimizers(self) -> list[RMSProp]:
        """One for the sum of the losses, or one for the policy loss and one for the value loss."""
        config = self._config
        return [
            RMSProp(self._variables, config.rmsprop_decay, config.rmsprop_momentum, config.rmsprop_epsilon)
            for _ in range(2 if config.dual_rmsprop else 1)
        ]

    def _check_states(self, states: np.ndarray) -> None:
        if states.shape[1:] != self._state_shape or states.dtype != self._state_dtype:
            raise ValueError(
                f"states are {states.dtype} {states.shape}; the model takes {self._state_dtype} "
                f"[B, {', '.join(map(str, self._state_shape))}]"
            )

    def _predict_graph(self, states: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        version = self.version.read_value()
        # Only after the version may the weights be read: they are then at least that new.
        with tf.control_dependencies([version]):
            logits, values = self.network(states)
        return losses.policy(logits, self._config.min_policy), values, version

    def _prepare_update(self) -> None:
        """Builds the graph of the update.

        It is a call of its own, made only where the gradients are finite: on a CPU (2-core EPYC) that costs 0.05 ms,
        `tf.cond` around the update in one graph with the gradients 0.5 ms, a third of an update of 5 states. On a GPU
        neither was measured.
        """
        gradients = [
            tf.TensorSpec(self._variables[variable].shape, self._variables[variable].dtype)
            for _, variable in self._gradients_of
        ]
        self._apply = _direct_call(self._update_graph, [tf.TensorSpec((), tf.float32), *gradients])

    def _update(self, gradients: Sequence[tf.Tensor], learning_rate: float) -> int:
        """Takes a step along the gradients, as `_gradients_of` sorts them; returns the version after it."""
        [version] = self._apply(tf.constant(learning_rate, tf.float32), *gradients)
        return int(version.numpy())

    def _refuse(self) -> int:
        """Leaves everything as it is; returns the version."""
        return int(self.version.numpy())

    def _update_graph(self, learning_rate: tf.Tensor, *gradients: tf.Tensor) -> list[tf.Tensor]:
        by_place = dict(zip(self._gradients_of, gradients, strict=True))
        updates = []
        for number, optimizer in enumerate(self._optimizers):
            own = [by_place.get((number, variable)) for variable in range(len(self._variables))]
            updates += optimizer.apply(own, learning_rate)
        with tf.control_dependencies(updates), tf.device(self.version.device):
            # assign_add reads the sum back in a second step, where another trainer's update may come in between.
            return [tf.raw_ops.ResourceCountUpTo(resource=self.version.handle, limit=tf.int64.max, T=tf.int64) + 1]

    def _gradient_graph(
        self, states: tf.Tensor, actions: tf.Tensor, returns: tf.Tensor, beta: tf.Tensor
    ) -> list[tf.Tensor]:
        """The gradients there are, clipped, then [policy loss, value loss, mean entropy, finite].

        `_gradients_of` says which optimizer and variable each is for. `finite` is 1 where losses and gradients are
        finite, else 0. Of the gradients those of logits and values are looked at: all others are sums of products with
        them, and looking at each costs a pass over memory.
        """
        with tf.GradientTape(persistent=True) as tape:
            logits, values = self.network(states, training=True)
            policy_loss, value_loss, entropy = self._loss(logits, values, actions, returns, beta, self._config)
            objectives = [policy_loss, value_loss] if self._config.dual_rmsprop else [policy_loss + value_loss]
        looked_at = [policy_loss, value_loss]
        found: dict[tuple[int, int], tf.Tensor] = {}
        for number, objective in enumerate(objectives):
            *of_heads, of_weights = tape.gradient(objective, [logits, values, self._variables])
            looked_at += [gradient for gradient in of_heads if gradient is not None]
            found |= {
                (number, variable): tf.convert_to_tensor(gradient)  # that of an embedding is sparse
                for variable, gradient in enumerate(of_weights)
                if gradient is not None
            }
        self._gradients_of = list(found)
        finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(each)) for each in looked_at])
        mean_entropy = entropy / tf.cast(tf.size(actions), tf.float32)
        summary = tf.stack([policy_loss, value_loss, mean_entropy, tf.cast(finite, tf.float32)])
        return [*map(self._clipped, found.values()), summary]

    def _clipped(self, gradient: tf.Tensor) -> tf.Tensor:
        """Clips as the authors do: by the average norm with one optimizer, by the norm itself with two."""
        clip_norm = self._config.grad_clip_norm
        if clip_norm is None:
            return gradient
        return (tf.clip_by_norm if self._config.dual_rmsprop else clip_by_average_norm)(gradient, clip_norm)


def _direct_call(function: Callable, signature: Sequence[tf.TensorSpec]) -> Callable[..., Sequence[tf.Tensor]]:
    """`function`, traced once, as a callable on tensors that bypasses most of tf.function's Python.

    Without autograph, which leaves a file in /tmp for each function it reads, for good where the process is killed.
    On a CPU the graph is called by its raw operation, which seems to run it in the calling thread, not in TensorFlow's
    pool. Measured processor time (2-core EPYC, shared, oneDNN): a prediction of one state 0.15 ms instead of 0.4, an
    update of 5 states 1.8 instead of 2.6 to 3.1. Nothing checks the arguments then; predict and train do.
    """
    concrete = tf.function(function, input_signature=signature, autograph=False).get_concrete_function()
    captured, types = concrete.captured_inputs, [output.dtype for output in concrete.outputs]
    if any("GPU" in tensor.device for tensor in captured):
        return concrete
    # An empty ConfigProto means the usual graph optimisation; no ConfigProto at all turns it off.
    optimised = tf.compat.v1.ConfigProto().SerializeToString()

    def call(*tensors):
        return tf.raw_ops.StatefulPartitionedCall(
            args=[*tensors, *captured], Tout=types, f=concrete, config_proto=optimised
        )

    return call


def configure_device(device: str, intra_op_threads: int | None = None, inter_op_threads: int | None = None) -> str:
    """Prepares TensorFlow for a device; call it before anything else of TensorFlow.

    The defaults are for many agents on few cores. One intra-op thread, up to 7 cores: a second one has an update done
    sooner only while a core is idle, and beside two busy trainers a prediction of 16 states took 3 to 5 ms instead of 1
    (2-core EPYC, shared; more cores were not measured).
    oneDNN stays as TensorFlow has it: on where the processor supports it, where updates take half the time.
    TensorFlow takes these settings only before it starts; a second call in one process leaves them as they are.

    Args:
        device: 'auto' (a GPU when there is one), 'cpu', 'gpu' or 'gpu:N'.
        intra_op_threads: Threads within one operation (default: a quarter of the cores from 8 on, else 1).
        inter_op_threads: Operations side by side (default: one per core, at least 2).

    Returns:
        TensorFlow's name of the device, for `Model`.

    Raises:
        UserError: an unknown device, or a GPU that is not there.
    """
    match = re.fullmatch(r"auto|cpu|gpu(?::(\d+))?", device)
    if not match:
        raise UserError(f"device is {device!r}; it must be auto, cpu, gpu or gpu:N")
    cores = usable_cores()
    _set_threads(intra_op_threads or (cores // 4 if cores >= 8 else 1), inter_op_threads or max(2, cores))
    gpus = tf.config.list_physical_devices("GPU")
    if device == "cpu" or (device == "auto" and not gpus):
        with _before_start():
            tf.config.set_visible_devices([], "GPU")
        return "/CPU:0"
    number = int(match[1] or 0)
    if number >= len(gpus):
        raise UserError(
            f"device is {device!r}, but TensorFlow finds {len(gpus) or 'no'} GPU"
            f"{'s' if len(gpus) > 1 else ''} here; --device cpu needs none"
        )
    with _before_start():
        for gpu in gpus:
            tf.config.experimental.set_memory_growth(gpu, True)
    return f"/GPU:{number}"


def gpu_names() -> list[str]:
    """The GPUs that TensorFlow finds on this machine, by their makers' names."""
    details = tf.config.experimental.get_device_details
    return [details(gpu).get("device_name", gpu.name) for gpu in tf.config.list_physical_devices("GPU")]


def make_deterministic(seed: int) -> None:
    """Makes this process compute the same bits for the same seed, for --serial; call it before `configure_device`.

    Seeds Python, NumPy and Keras, asks TensorFlow for deterministic kernels, and takes one thread for everything, where
    TensorFlow has not started yet. It holds for the rest of the process, on one kind of processor.
    """
    keras.utils.set_random_seed(seed % 2**32)
    tf.config.experimental.enable_op_determinism()
    _set_threads(1, 1)


def _set_threads(intra_op: int, inter_op: int) -> None:
    """Sets TensorFlow's thread counts, unless someone already did."""
    threading = tf.config.threading
    with _before_start():
        if not threading.get_intra_op_parallelism_threads():
            threading.set_intra_op_parallelism_threads(intra_op)
        if not threading.get_inter_op_parallelism_threads():
            threading.set_inter_op_parallelism_threads(inter_op)


@contextlib.contextmanager
def _before_start() -> Iterator[None]:
    """For settings that TensorFlow refuses once it has started: they then stay as they are."""
    with contextlib.suppress(RuntimeError):
        yield

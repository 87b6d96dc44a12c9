"""The loss of advantage actor-critic, and the losses of users.

B is the number of states in the batch and A the number of actions. Every loss and entropy is **summed** over
the batch, as in the authors' code (NetworkVP.py), so a larger batch makes a larger step. `ActorCritic`
weights the losses, and averages them if the settings say so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from ga3c_tf.algorithms.actor_critic.corrections import Correction, correction_of
from ga3c_tf.algorithms.actor_critic.probabilities import entropy, log_policy, log_taken, policy
from ga3c_tf.algorithms.reductions import total
from ga3c_tf.config import Config, check_name
from ga3c_tf.errors import UserError
from ga3c_tf.experience.columns import COLUMNS, Batch
from ga3c_tf.experience.divergence import Bounds
from ga3c_tf.model.graph_call import inputs_read, trace
from ga3c_tf.model.tensorflow import tf
from ga3c_tf.plugins import users_errors, users_function

__all__ = [  # users' losses take all of these from here
    "Loss",
    "Losses",
    "actor_critic",
    "entropy",
    "find_loss",
    "log_policy",
    "log_taken",
    "policy",
    "value_loss",
]


class Losses(NamedTuple):
    """Losses and entropy of one batch.

    The optimizer minimizes the sum of both losses. With `dual_rmsprop`, two optimizers minimize one loss
    each.
    """

    policy_loss: tf.Tensor  # scalar float32, summed over the batch, including the entropy term
    value_loss: tf.Tensor  # scalar float32, summed over the batch
    entropy: tf.Tensor  # scalar float32 in nats, summed over the batch; only reported


class Computed(NamedTuple):
    """What a loss computes of one batch."""

    losses: Losses
    masked: tf.Tensor  # scalar float32, states that the correction leaves out


@dataclass(frozen=True)
class Loss:
    """A loss, and what others must know of it.

    Attributes:
        compute: returns what is computed of a batch of tensors.
        columns: names of the columns of the trajectory that `compute` reads.
        reads_version: whether the number of updates done must be read anew before `compute`.
        bounds: what the loss clips or floors.
        scales_step: whether the step depends on the effective sample size, see `Correction`.
    """

    compute: Callable[[Batch], Computed]
    columns: frozenset[str]
    reads_version: bool
    bounds: Bounds
    scales_step: bool = False


def find_loss(config: Config, num_actions: int) -> Loss:
    """Return the loss that `config.loss` names: 'paper', or a user-defined function with `actor_critic`'s
    arguments.

    Args:
        config: settings of the run; a user-defined function is called with all of them.
        num_actions: number of actions, A.

    Raises:
        UserError: the name is unknown, or the function fails or does not return three float32 scalars.
    """
    name = config.loss
    if name == "paper":
        correction = correction_of(config)
        compute = partial(_actor_critic, correction=correction, min_policy=config.min_policy)
        columns = frozenset(("actions", *correction.columns))
        # With A3C alone the number could be old, and corrections that read it are refused there.
        return Loss(compute, columns, False, correction.bounds, correction.scales_step)
    check_name("loss", name)
    function = users_function(name, f"loss {name!r}")
    return _probed(name, lambda batch: function(batch, config), num_actions)


def actor_critic(batch: Batch, config: Config) -> Losses:
    """Compute the paper's loss (section 3): advantage objective, entropy bonus, and squared error of the
    value.

    `config.correction_used` is the policy-lag correction, see `ga3c_tf.config.corrections`.

    Args:
        batch: training batch. Its `logits`, `values`, `actions`, `beta` and the correction's columns are
            used.
        config: settings of the run. `min_policy` and those of the correction and of the advantages are used.
    """
    return _actor_critic(batch, correction_of(config), config.min_policy).losses


def _actor_critic(batch: Batch, correction: Correction, min_policy: float) -> Computed:
    logarithms = log_policy(batch.logits, min_policy, correction.floor)
    spread = -total(batch, policy(batch.logits, min_policy) * logarithms)
    estimate = correction.estimate(batch, logarithms)
    objective = total(batch, estimate.objectives) + batch.beta * spread
    errors = total(batch, _squared_errors(batch.values, estimate.targets))
    return Computed(Losses(-objective, errors, spread), total(batch, estimate.masked))


def value_loss(values: tf.Tensor, returns: tf.Tensor) -> tf.Tensor:
    """Compute the sum over the batch of 0.5 * (R - V)^2.

    Args:
        values: [B] float32, V.
        returns: [B] float32, R.

    Returns:
        Scalar float32.
    """
    return tf.reduce_sum(_squared_errors(values, returns))


def _squared_errors(values: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    return 0.5 * tf.square(targets - values)


def _check_scalars(name: str, returned: Sequence[Any]) -> None:
    """Reject what a user's loss returned for a batch of any size, unless it is three float32 scalars."""
    kinds = [
        f"{value.dtype.name} {list(value.shape)}" if tf.is_tensor(value) else type(value).__name__
        for value in returned
    ]
    if kinds != ["float32 []"] * 3:
        raise UserError(
            f"loss {name!r} must return (policy loss, value loss, entropy), three float32 scalars; for B "
            f"states it returned {', '.join(kinds).replace('None', 'B')}"
        )


def _probed(name: str, function: Callable[[Batch], Any], num_actions: int) -> Loss:
    """Trace a user's loss once, to check what it returns and to learn which of its inputs it reads.

    Args:
        name: name of the loss, for error messages.
        function: the loss.
        num_actions: number of actions, A.

    Raises:
        UserError: an error of `find_loss`.
    """
    inputs = {
        "logits": tf.TensorSpec((None, num_actions), tf.float32),
        "values": tf.TensorSpec((None,), tf.float32),
        "beta": tf.TensorSpec((), tf.float32),
        "version": tf.TensorSpec((), tf.int64),
    }
    for column in COLUMNS:
        inputs[column.name] = tf.TensorSpec((None, *column.shape), tf.as_dtype(column.dtype))
    returned: list[Any] = []

    def call(*tensors: tf.Tensor) -> None:
        result = function(Batch(**dict(zip(inputs, tensors, strict=True))))
        returned.extend([result] if tf.is_tensor(result) else result)  # a tensor cannot be iterated here

    with users_errors(f"loss {name!r} failed"):
        probe = trace(call, list(inputs.values()))
    _check_scalars(name, returned)
    read = dict(zip(inputs, inputs_read(probe, len(inputs)), strict=True))
    unread = [column for column in COLUMNS if not read[column.name]]

    def compute(batch: Batch) -> Computed:
        # A loss may name a column and not use it, for instance where it copies a batch.
        blanks = {column.name: tf.zeros((0, *column.shape), tf.as_dtype(column.dtype)) for column in unread}
        computed = Computed(Losses(*function(Batch(**blanks | vars(batch)))), tf.constant(0.0))
        for column, blank in blanks.items():
            if blank.consumers():
                raise UserError(f"loss {name!r} reads {column} in one call and not in another")
        return computed

    columns = frozenset(column.name for column in COLUMNS if read[column.name])
    return Loss(compute, columns, read["version"], Bounds())

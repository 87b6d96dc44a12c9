"""The losses of advantage actor-critic, as pure functions of one batch.

B is the number of states in the batch and A the number of actions. Every loss and entropy is **summed** over the
batch, as in the authors' code (NetworkVP.py), so a larger batch makes a larger step. `ActorCritic` weighs the losses
and takes their mean where the settings say so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.model import corrections
from ga3c_tf.model.tensorflow import tf
from ga3c_tf.plugins import one_line, users_function
from ga3c_tf.rollouts.columns import SEGMENT_COLUMNS, STEP_COLUMNS, Batch

NORMALIZATION_EPSILON = 1e-8
"""Added to the standard deviation of advantages, as in Stable-Baselines3: equal advantages become zeros."""


class Losses(NamedTuple):
    """Of one batch: what the optimizer minimizes, as its sum or, with `dual_rmsprop`, one by one; and the entropy."""

    policy_loss: tf.Tensor  # scalar float32, summed over the batch, the entropy's term included
    value_loss: tf.Tensor  # scalar float32, summed over the batch
    entropy: tf.Tensor  # scalar float32 in nats, summed over the batch; only reported


LossFunction = Callable[[Batch, Config], tuple]


def find_loss(config: Config, num_actions: int) -> LossFunction:
    """Return the loss that `config.loss` names: 'paper', or a user's function with the arguments of `actor_critic`.

    Raises:
        UserError: an unknown name, or a function that fails on a blank batch or returns other than three scalars.
    """
    name = config.loss
    if name == "paper":
        return actor_critic
    if ":" not in name:
        raise UserError(f"unknown loss {name!r}; it must be paper or 'module:function'")
    function = users_function(name, f"loss {name!r}")
    found: list = []

    def on_a_blank_batch():
        columns = {name: tf.zeros(2, tf.as_dtype(dtype)) for name, dtype in STEP_COLUMNS.items()}
        columns |= {name: tf.zeros(1, tf.as_dtype(dtype)) for name, dtype in SEGMENT_COLUMNS.items()}
        outputs = {"logits": tf.zeros((2, num_actions)), "values": tf.zeros(2)}
        scalars = {"beta": tf.constant(config.beta), "version": tf.constant(0, tf.int64)}
        found.extend(function(Batch(**outputs, **scalars, **columns), config))

    try:
        tf.function(on_a_blank_batch, autograph=False).get_concrete_function()  # as a graph, which the training uses
    except Exception as error:  # whatever a user's function raises
        raise UserError(f"loss {name!r} failed: {one_line(error)}") from error
    kinds = [f"{one.dtype.name} {list(one.shape)}" if tf.is_tensor(one) else type(one).__name__ for one in found]
    if kinds != ["float32 []"] * 3:
        raise UserError(
            f"loss {name!r} must return (policy loss, value loss, entropy), three float32 scalars; for 2 states it "
            f"returned {', '.join(kinds)}"
        )
    return function


def actor_critic(batch: Batch, config: Config) -> Losses:
    """Compute the paper's loss (section 3): advantage objective, entropy bonus, and the value's squared error.

    `config.correction` says what is done about policy lag: PPO's clipped objective takes the place of the advantage
    objective, or importance ratios weigh the advantages, or V-trace gives advantages and value targets.

    Args:
        batch: Of its columns, `logits`, `values`, `actions`, `returns` and `beta` are used; with `advantage` 'gae' and
            most corrections also `mu_values` or `mu_log_probabilities`, with V-trace those of segments.
        config: Of the settings, those of corrections, `min_policy`, `log_epsilon`, `log_softmax`, `advantage` and
            `normalize_advantages` are used; with V-trace also `gamma` and `t_max`.
    """
    correction = config.correction_used
    has_floor = correction in ("epsilon", "ppo") and not config.log_softmax
    probabilities = policy(batch.logits, config.min_policy)
    logarithms = log_policy(batch.logits, config.min_policy, config.log_epsilon if has_floor else None)
    spread = entropy(probabilities, logarithms)
    returns = batch.returns
    if correction == "ppo":
        # Without the floor, which would make the ratio of a rare action a wrong one and stop its gradient.
        log_pi = log_taken(log_policy(batch.logits, config.min_policy, None), batch.actions)
        advantage = advantages(batch, config)
        objective = clipped_objective(log_pi, batch.mu_log_probabilities, advantage, config.clip_ratio)
    elif correction in ("clipped-is", "one-step", "v-trace"):
        log_pi = log_taken(logarithms, batch.actions)
        weighted, returns = corrected(batch, log_pi, config)
        objective = tf.reduce_sum(log_pi * weighted)
    elif config.advantage == "gae" or config.normalize_advantages:
        objective = tf.reduce_sum(log_taken(logarithms, batch.actions) * advantages(batch, config))
    else:
        objective = advantage_objective(logarithms, batch.values, batch.actions, returns)
    objective += batch.beta * spread
    return Losses(-objective, value_loss(batch.values, returns), spread)


def corrected(batch: Batch, log_pi: tf.Tensor, config: Config) -> tuple[tf.Tensor, tf.Tensor]:
    """Return advantages weighed by importance ratios and the targets of the values, float32 [B], both constants.

    Args:
        batch: of whole segments for V-trace.
        log_pi: [B] float32, log-probability of the action taken, now.
        config: its `correction` is 'clipped-is', 'one-step' or 'v-trace'.
    """
    log_mu = batch.mu_log_probabilities
    if config.correction_used == "v-trace":
        ratios = corrections.importance_ratios(log_pi, log_mu, float("inf"))
        found = corrections.v_trace(batch, ratios, config.gamma, config.rho_bar, config.c_bar, config.t_max)
        return tf.minimum(ratios, config.rho_bar) * normalized(found.advantages, config), found.targets
    most = config.rho_bar if config.correction_used == "one-step" else config.importance_clip
    ratios = corrections.importance_ratios(log_pi, log_mu, most)
    return ratios * advantages(batch, config), batch.returns


def policy(logits: tf.Tensor, min_policy: float = 0.0) -> tf.Tensor:
    """Compute the probabilities of the actions: softmax, each raised by `min_policy`, and normalized again.

    Args:
        logits: [B, A] float32.
        min_policy: m; the result is (softmax + m) / (1 + m * A), so no action falls below m / (1 + m * A).

    Returns:
        [B, A] float32; each row sums to one.
    """
    softmax = tf.nn.softmax(logits)
    return (softmax + min_policy) / (1.0 + min_policy * logits.shape[-1]) if min_policy else softmax


def log_policy(logits: tf.Tensor, min_policy: float = 0.0, log_epsilon: float | None = 1e-6) -> tf.Tensor:
    """Compute the logarithms of `policy`'s probabilities.

    Args:
        logits: [B, A] float32.
        min_policy: as for `policy`.
        log_epsilon: floor of a probability: log(max(pi, log_epsilon)), which passes no gradient below the floor.
            None takes no floor: log-softmax, or with a `min_policy` the plain logarithm, which that keeps finite.

    Returns:
        [B, A] float32, at most zero.
    """
    if log_epsilon is None and not min_policy:
        return tf.nn.log_softmax(logits)
    probabilities = policy(logits, min_policy)
    return tf.math.log(probabilities if log_epsilon is None else tf.maximum(probabilities, log_epsilon))


def advantage_objective(log_policy: tf.Tensor, values: tf.Tensor, actions: tf.Tensor, returns: tf.Tensor) -> tf.Tensor:
    """Compute the sum over the batch of log pi(action) * (R - V), where the advantage R - V is taken as a constant.

    Args:
        log_policy: [B, A] float32.
        values: [B] float32, V; no gradient flows into it.
        actions: [B] int32, the actions taken.
        returns: [B] float32, R.

    Returns:
        Scalar float32, to be maximized.
    """
    return tf.reduce_sum(log_taken(log_policy, actions) * (returns - tf.stop_gradient(values)))


def log_taken(log_policy: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
    """Return of [B, A] logarithms those of the actions taken, int32 [B]."""
    return tf.reduce_sum(log_policy * tf.one_hot(actions, log_policy.shape[-1]), axis=-1)


def advantages(batch: Batch, config: Config) -> tf.Tensor:
    """Return the advantages that the settings ask for, float32 [B], constants to the gradient.

    With GAE, and wherever a batch may be trained on several times, V is that of the time when the action was chosen
    (`mu_values`): lambda-return minus this V is the generalized advantage estimate, and it stays the same in every
    epoch. Otherwise V is that of now, as in the paper.
    """
    at_choice = config.advantage == "gae" or config.clip_ratio > 0
    found = batch.returns - (batch.mu_values if at_choice else tf.stop_gradient(batch.values))
    return normalized(found, config)


def normalized(advantages: tf.Tensor, config: Config) -> tf.Tensor:
    """Return the advantages [B] with mean 0 and standard deviation 1, where `normalize_advantages` says so."""
    if not config.normalize_advantages:
        return advantages
    deviation = tf.math.reduce_std(advantages) + NORMALIZATION_EPSILON
    return (advantages - tf.reduce_mean(advantages)) / deviation


def clipped_objective(log_pi: tf.Tensor, log_mu: tf.Tensor, advantages: tf.Tensor, clip_ratio: float) -> tf.Tensor:
    """Compute the sum over the batch of PPO's objective (Schulman et al. 2017, arXiv 1707.06347, equation 7).

    For each action it is the lesser of ratio * advantage and the same with the ratio clipped to 1 +- `clip_ratio`,
    where the ratio is pi(action) / mu(action): a step beyond the clip range gains nothing.

    Args:
        log_pi: [B] float32, log-probability of the action taken, now.
        log_mu: [B] float32, that under the policy that chose it.
        advantages: [B] float32.
        clip_ratio: how far from 1 the ratio counts.

    Returns:
        Scalar float32, to be maximized.
    """
    ratio = tf.exp(log_pi - log_mu)
    clipped = tf.clip_by_value(ratio, 1 - clip_ratio, 1 + clip_ratio)
    return tf.reduce_sum(tf.minimum(ratio * advantages, clipped * advantages))


def entropy(policy: tf.Tensor, log_policy: tf.Tensor) -> tf.Tensor:
    """Compute the sum over the batch of the policy's entropy in nats, with the floor of `log_policy`.

    Args:
        policy: [B, A] float32.
        log_policy: [B, A] float32.

    Returns:
        Scalar float32.
    """
    return -tf.reduce_sum(policy * log_policy)


def value_loss(values: tf.Tensor, returns: tf.Tensor) -> tf.Tensor:
    """Compute the sum over the batch of 0.5 * (R - V)^2.

    Args:
        values: [B] float32, V.
        returns: [B] float32, R.

    Returns:
        Scalar float32.
    """
    return 0.5 * tf.reduce_sum(tf.square(returns - values))

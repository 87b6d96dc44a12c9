"""The losses of advantage actor-critic, as pure functions of one batch.

B is the number of states in the batch and A the number of actions. Every loss and entropy is **summed** over the
batch, as in the authors' code (NetworkVP.py), so a larger batch makes a larger step. `ActorCritic` weights the losses,
and averages them if the settings say so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ga3c_tf.config import Config, check_name
from ga3c_tf.errors import UserError
from ga3c_tf.model import corrections
from ga3c_tf.model.tensorflow import tf
from ga3c_tf.plugins import users_errors, users_function
from ga3c_tf.rollouts.columns import SCHEMA, Batch

NORMALIZATION_EPSILON = 1e-8
"""Added to the standard deviation of advantages, as in Stable-Baselines3."""
ROUNDING = 1e-5
"""Standard deviation relative to the mean up to which advantages count as equal: float32 rounds the mean of thousands
of equal numbers to one that differs from them by some millionths."""


class Losses(NamedTuple):
    """Losses and entropy of one batch.

    The optimizer minimizes the sum of both losses. With `dual_rmsprop`, two optimizers minimize one loss each.
    """

    policy_loss: tf.Tensor  # scalar float32, summed over the batch, including the entropy term
    value_loss: tf.Tensor  # scalar float32, summed over the batch
    entropy: tf.Tensor  # scalar float32 in nats, summed over the batch; only reported


LossFunction = Callable[[Batch, Config], tuple]


def find_loss(config: Config, num_actions: int) -> LossFunction:
    """Return the loss that `config.loss` names: 'paper', or a user-defined function with `actor_critic`'s arguments.

    Args:
        config: settings of the run; `loss` names the function, and the function is called with all settings.
        num_actions: number of actions, A.

    Raises:
        UserError: the name is unknown, or the function fails on a blank batch or does not return three float32 scalars.
    """
    name = config.loss
    if name == "paper":
        return actor_critic
    check_name("loss", name)
    function = users_function(name, f"loss {name!r}")
    found: list = []

    def on_a_blank_batch():
        columns = {column.name: tf.zeros(2, tf.as_dtype(column.dtype)) for column in SCHEMA.along("step")}
        columns |= {column.name: tf.zeros(1, tf.as_dtype(column.dtype)) for column in SCHEMA.along("segment")}
        outputs = {"logits": tf.zeros((2, num_actions)), "values": tf.zeros(2)}
        scalars = {"beta": tf.constant(config.beta), "version": tf.constant(0, tf.int64)}
        found.extend(function(Batch(**outputs, **scalars, **columns), config))

    with users_errors(f"loss {name!r} failed"):
        tf.function(on_a_blank_batch, autograph=False).get_concrete_function()  # as a graph, like training
    kinds = [f"{one.dtype.name} {list(one.shape)}" if tf.is_tensor(one) else type(one).__name__ for one in found]
    if kinds != ["float32 []"] * 3:
        raise UserError(
            f"loss {name!r} must return (policy loss, value loss, entropy), three float32 scalars; for 2 states it "
            f"returned {', '.join(kinds)}"
        )
    return function


def actor_critic(batch: Batch, config: Config) -> Losses:
    """Compute the paper's loss (section 3): advantage objective, entropy bonus, and squared error of the value.

    `config.correction_used` is the policy-lag correction. With 'ppo', PPO's clipped objective replaces the advantage
    objective. With 'clipped-is' and 'one-step', advantages are weighted by importance ratios. With 'v-trace', V-trace
    gives advantages and value targets.

    Args:
        batch: Training batch. Its `logits`, `values`, `actions`, `returns` and `beta` are used. `advantage` 'gae' and
            'ppo' also use `mu_values`, and corrections by ratios and 'ppo' use `mu_log_probabilities`. V-trace uses
            `rewards`, `lengths` and `bootstrap_values` instead of `returns`.
        config: Settings of the run. Those of corrections, `min_policy`, `log_epsilon`, `log_softmax`, `advantage` and
            `normalize_advantages` are used; with V-trace also `gamma` and `t_max`.
    """
    correction = config.correction_used
    has_floor = correction in ("epsilon", "ppo") and not config.log_softmax
    probabilities = policy(batch.logits, config.min_policy)
    logarithms = log_policy(batch.logits, config.min_policy, config.log_epsilon if has_floor else None)
    spread = entropy(probabilities, logarithms)
    returns = batch.returns
    if correction == "ppo":
        # Without the floor, which would make the ratio of a rare action wrong and stop its gradient.
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
    """Return advantages weighted by importance ratios, and targets of the values. No gradient flows into either.

    Args:
        batch: training batch; V-trace needs whole segments.
        log_pi: [B] float32, log-probability of the action taken under the current policy.
        config: settings whose `correction` is 'clipped-is', 'one-step' or 'v-trace'.

    Returns:
        (weighted advantages, value targets), each [B] float32.
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
    """Compute the probabilities of the actions: softmax plus `min_policy` for each action, normalized to sum to one.

    Args:
        logits: [B, A] float32.
        min_policy: m in the result (softmax + m) / (1 + m * A); no probability is below m / (1 + m * A).

    Returns:
        [B, A] float32; each row sums to one.
    """
    softmax = tf.nn.softmax(logits)
    return (softmax + min_policy) / (1.0 + min_policy * logits.shape[-1]) if min_policy else softmax


def log_policy(logits: tf.Tensor, min_policy: float = 0.0, log_epsilon: float | None = 1e-6) -> tf.Tensor:
    """Compute the logarithms of the probabilities that `policy` returns.

    Args:
        logits: [B, A] float32.
        min_policy: m, as in `policy`.
        log_epsilon: floor of a probability. The result is log(max(pi, log_epsilon)), which passes no gradient below the
            floor. With None there is no floor: the result is log-softmax or, with a `min_policy`, the plain logarithm,
            which `min_policy` keeps finite.

    Returns:
        [B, A] float32, at most zero.
    """
    if log_epsilon is None and not min_policy:
        return tf.nn.log_softmax(logits)
    probabilities = policy(logits, min_policy)
    return tf.math.log(probabilities if log_epsilon is None else tf.maximum(probabilities, log_epsilon))


def advantage_objective(log_policy: tf.Tensor, values: tf.Tensor, actions: tf.Tensor, returns: tf.Tensor) -> tf.Tensor:
    """Compute the sum over the batch of log pi(action) * (R - V). No gradient flows into the advantage R - V.

    Args:
        log_policy: [B, A] float32, log pi.
        values: [B] float32, V.
        actions: [B] int32, the actions taken.
        returns: [B] float32, R.

    Returns:
        Scalar float32, to be maximized.
    """
    return tf.reduce_sum(log_taken(log_policy, actions) * (returns - tf.stop_gradient(values)))


def log_taken(log_policy: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
    """Return the log-probabilities of the actions taken.

    Args:
        log_policy: [B, A] float32, log pi.
        actions: [B] int32, the actions taken.

    Returns:
        [B] float32.
    """
    return tf.reduce_sum(log_policy * tf.one_hot(actions, log_policy.shape[-1]), axis=-1)


def advantages(batch: Batch, config: Config) -> tf.Tensor:
    """Return the advantages R - V for these settings, [B] float32. No gradient flows into them.

    With GAE or with a clip ratio, V is the value from the time when the action was chosen (`mu_values`). With GAE,
    lambda-return minus this V is the generalized advantage estimate. With a clip ratio, a batch may be trained on
    several times, and these advantages stay the same in every epoch. Otherwise V is that of the current network, as in
    the paper.
    """
    at_choice = config.advantage == "gae" or config.clip_ratio > 0
    found = batch.returns - (batch.mu_values if at_choice else tf.stop_gradient(batch.values))
    return normalized(found, config)


def normalized(advantages: tf.Tensor, config: Config) -> tf.Tensor:
    """Return the advantages [B], shifted and scaled to mean 0 and standard deviation 1 with `normalize_advantages`.

    Equal advantages become zeros. A single advantage is returned as it is, since minus the mean it would always be 0.
    """
    if not config.normalize_advantages:
        return advantages
    mean = tf.reduce_mean(advantages)
    deviation = tf.math.reduce_std(advantages)
    scale = tf.where(deviation > ROUNDING * tf.abs(mean), deviation + NORMALIZATION_EPSILON, float("inf"))
    return tf.where(tf.size(advantages) > 1, (advantages - mean) / scale, advantages)


def clipped_objective(log_pi: tf.Tensor, log_mu: tf.Tensor, advantages: tf.Tensor, clip_ratio: float) -> tf.Tensor:
    """Compute the sum over the batch of PPO's objective (Schulman et al. 2017, arXiv 1707.06347, equation 7).

    For each action it is the smaller of ratio * advantage and clipped ratio * advantage. The ratio is
    pi(action) / mu(action), and it is clipped to 1 +- `clip_ratio`. A policy change beyond the clip range therefore
    does not increase the objective.

    Args:
        log_pi: [B] float32, log-probability of the action taken under the current policy.
        log_mu: [B] float32, log-probability of the action taken under the policy that chose it.
        advantages: [B] float32.
        clip_ratio: half the width of the clip range around 1.

    Returns:
        Scalar float32, to be maximized.
    """
    ratio = tf.exp(log_pi - log_mu)
    clipped = tf.clip_by_value(ratio, 1 - clip_ratio, 1 + clip_ratio)
    return tf.reduce_sum(tf.minimum(ratio * advantages, clipped * advantages))


def entropy(policy: tf.Tensor, log_policy: tf.Tensor) -> tf.Tensor:
    """Compute the sum over the batch of the policy's entropy in nats, from logarithms that may have a floor.

    Args:
        policy: [B, A] float32, pi.
        log_policy: [B, A] float32, log pi, as `log_policy` returns it.

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

"""The policy and its logarithms, as pure functions of the network's logits.

B is the number of states in a batch and A the number of actions.
"""

from __future__ import annotations

from ga3c_tf.model.tensorflow import tf


def policy(logits: tf.Tensor, min_policy: float = 0.0) -> tf.Tensor:
    """Compute the probabilities of the actions: softmax plus `min_policy` for each action, normalized to sum
    to one.

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
        log_epsilon: floor of a probability. The result is log(max(pi, log_epsilon)), which passes no gradient
            below the floor. With None there is no floor: the result is log-softmax or, with a `min_policy`,
            the plain logarithm, which `min_policy` keeps finite.

    Returns:
        [B, A] float32, at most zero.
    """
    if log_epsilon is None and not min_policy:
        return tf.nn.log_softmax(logits)
    probabilities = policy(logits, min_policy)
    return tf.math.log(probabilities if log_epsilon is None else tf.maximum(probabilities, log_epsilon))


def log_taken(log_policy: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
    """Return the log-probabilities of the actions taken.

    Args:
        log_policy: [B, A] float32, log pi.
        actions: [B] int32, the actions taken.

    Returns:
        [B] float32.
    """
    return tf.reduce_sum(log_policy * tf.one_hot(actions, log_policy.shape[-1]), axis=-1)


def entropy(policy: tf.Tensor, log_policy: tf.Tensor) -> tf.Tensor:
    """Compute the sum over the batch of the policy's entropy in nats, from logarithms that may have a floor.

    Args:
        policy: [B, A] float32, pi.
        log_policy: [B, A] float32, log pi, as `log_policy` returns it.

    Returns:
        Scalar float32.
    """
    return -tf.reduce_sum(policy * log_policy)

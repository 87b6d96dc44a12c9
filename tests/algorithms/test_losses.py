"""The losses against slow NumPy, and their gradients against hand-derived ones."""

import numpy as np
import pytest
import tensorflow as tf
from batches import SEGMENTS

from ga3c_tf.algorithms.actor_critic import losses
from ga3c_tf.algorithms.actor_critic.advantages import Advantages, normalized
from ga3c_tf.algorithms.actor_critic.corrections import Correction
from ga3c_tf.algorithms.actor_critic.trust_regions import clipped
from ga3c_tf.algorithms.actor_critic.weights import Unweighted
from ga3c_tf.config import Config
from ga3c_tf.experience.columns import Batch

B, A, BETA = 7, 5, 0.3
FLOOR = 0.1  # high enough that some probabilities of the batch lie below it


@pytest.fixture
def batch():
    rng = np.random.default_rng(3)
    return (
        rng.normal(0, 1.5, (B, A)).astype(np.float32),
        rng.normal(size=B).astype(np.float32),
        rng.integers(0, A, B).astype(np.int32),
        rng.normal(size=B).astype(np.float32),
    )


def softmax(logits):
    return np.array(
        [[np.exp(x) / sum(np.exp(y) for y in row) for x in row] for row in logits.astype(np.float64)]
    )


def raised(probabilities, min_policy):
    return (probabilities + min_policy) / (1 + min_policy * probabilities.shape[-1])


def tf_losses(batch, min_policy, log_epsilon):
    logits, values, actions, returns = map(tf.constant, batch)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([logits, values])
        policy = losses.policy(logits, min_policy)
        log_policy = losses.log_policy(logits, min_policy, log_epsilon)
        given = Batch(logits=logits, values=values, actions=actions, returns=returns)
        correction = Correction(Unweighted(Advantages()), floor=log_epsilon)
        objectives = correction.estimate(given, log_policy).objectives
        objective = tf.reduce_sum(objectives)
        entropy = losses.entropy(policy, log_policy)
        policy_loss = -(objective + BETA * entropy)
        value_loss = losses.value_loss(values, returns)
    return (
        objective,
        entropy,
        value_loss,
        tape.gradient(policy_loss, [logits, values]),
        tape.gradient(value_loss, [logits, values]),
    )


CASES = [(0.0, 1e-6), (0.0, None), (0.0, FLOOR), (0.2, 1e-6), (0.2, None), (0.2, FLOOR)]


@pytest.mark.parametrize(("min_policy", "log_epsilon"), CASES)
def test_losses_are_the_slow_sums(batch, min_policy, log_epsilon):
    logits, values, actions, returns = batch
    pi = raised(softmax(logits), min_policy)
    objective = entropy = value_loss = 0.0
    for b in range(B):
        logs = [np.log(max(p, log_epsilon or 0)) for p in pi[b]]
        objective += logs[actions[b]] * (returns[b] - values[b])
        entropy -= sum(p * log for p, log in zip(pi[b], logs, strict=True))
        value_loss += 0.5 * (returns[b] - values[b]) ** 2
    found = tf_losses(batch, min_policy, log_epsilon)[:3]
    np.testing.assert_allclose([float(x) for x in found], [objective, entropy, value_loss], rtol=1e-5)


@pytest.mark.parametrize(("min_policy", "log_epsilon"), CASES)
def test_gradient_of_the_policy_loss_by_hand(batch, min_policy, log_epsilon):
    """With s = softmax, pi = (s + m) / (1 + m A), l = log(max(pi, floor)), k = [pi > floor], D = R - V:

    dL/dpi_j = -k_j D [j = a] / pi_j + beta (l_j + k_j); dpi_j/ds_j = 1 / (1 + m A);
    ds_j/dz_i = s_j ([i = j] - s_i).
    """
    logits, values, actions, returns = batch
    s = softmax(logits)
    pi, taken = raised(s, min_policy), np.eye(A)[actions]
    kept = (pi > (log_epsilon or 0)).astype(np.float64)
    if log_epsilon == FLOOR and not min_policy:
        assert 0 < kept.sum() < kept.size and 0 < (kept * taken).sum() < B, "the floor must matter here"
    advantages = (returns - values).astype(np.float64)[:, None]
    by_pi = -kept * advantages * taken / pi + BETA * (np.log(np.maximum(pi, log_epsilon or 0)) + kept)
    by_s = by_pi / (1 + min_policy * A)
    by_logits = s * (by_s - (by_s * s).sum(axis=1, keepdims=True))
    found_logits, found_values = tf_losses(batch, min_policy, log_epsilon)[3]
    np.testing.assert_allclose(found_logits, by_logits, rtol=1e-4, atol=1e-6)
    assert found_values is None, "the advantage is a constant: the policy loss must not teach the values"


def test_gradient_without_floor_in_its_well_known_form(batch):
    """-(onehot - pi) (R - V) + beta pi (log pi + H)."""
    logits, values, actions, returns = batch
    pi = softmax(logits)
    entropy = -(pi * np.log(pi)).sum(axis=1, keepdims=True)
    by_logits = -(np.eye(A)[actions] - pi) * (returns - values)[:, None] + BETA * pi * (np.log(pi) + entropy)
    np.testing.assert_allclose(tf_losses(batch, 0.0, None)[3][0], by_logits, rtol=1e-4, atol=1e-6)


def test_gradient_of_the_value_loss_by_hand(batch):
    found_logits, found_values = tf_losses(batch, 0.0, 1e-6)[4]
    np.testing.assert_allclose(found_values, batch[1] - batch[3], rtol=1e-6)
    assert found_logits is None


def test_policy_sums_to_one_and_keeps_its_minimum():
    logits = tf.constant([[0.0, 100.0, -100.0], [1.0, 1.0, 1.0]])
    policy = losses.policy(logits, 0.1).numpy()
    np.testing.assert_allclose(policy, [[0.1 / 1.3, 1.1 / 1.3, 0.1 / 1.3], [1 / 3] * 3], rtol=1e-6)
    np.testing.assert_allclose(losses.policy(logits).numpy(), [[0, 1, 0], [1 / 3] * 3], atol=1e-7)


def test_the_floor_bounds_the_logarithm_and_log_softmax_does_not():
    logits = tf.constant([[0.0, -50.0]])
    np.testing.assert_allclose(losses.log_policy(logits, log_epsilon=1e-6), [[0, np.log(1e-6)]], atol=1e-6)
    np.testing.assert_allclose(losses.log_policy(logits, log_epsilon=None), [[0, -50]], atol=1e-6)


def test_losses_are_summed_over_the_batch(batch):
    doubled = tuple(np.concatenate([part, part]) for part in batch)
    once, twice = tf_losses(batch, 0.0, 1e-6)[:3], tf_losses(doubled, 0.0, 1e-6)[:3]
    np.testing.assert_allclose([float(x) for x in twice], [2 * float(x) for x in once], rtol=1e-5)


# what later actor-critics do


@pytest.mark.parametrize("segment", SEGMENTS, ids=lambda segment: str(segment["seed"]))
def test_the_clipped_objective_is_that_of_the_reference(segment):
    log_pi, log_mu, gae = (tf.constant(segment[name], tf.float32) for name in ("log_pi", "log_mu", "gae"))
    found = clipped(tf.exp(log_pi - log_mu), gae, 1 - segment["ppo_clip"], 1 + segment["ppo_clip"])
    np.testing.assert_allclose(found, -np.array(segment["ppo_policy_losses"]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("clip_ratio", [0.0, 0.2])
@pytest.mark.parametrize("advantage", ["nstep", "gae"])
def test_the_policy_loss_and_its_gradient_with_the_options_are_the_slow_ones(
    batch, advantage, clip_ratio, normalize
):
    """An action counts with d(ratio) = ratio * d(log pi), unless the clip made its objective a constant."""
    logits, values, actions, returns = batch
    pi = softmax(logits)
    log_pi = np.log(pi[np.arange(B), actions])
    rng = np.random.default_rng(5)
    log_mu = (log_pi - rng.normal(0, 0.5, B)).astype(np.float32)
    mu_values = rng.normal(size=B).astype(np.float32)
    config = Config(advantage=advantage, clip_ratio=clip_ratio, normalize_advantages=normalize)
    with tf.GradientTape() as tape:
        variables = [tf.Variable(logits), tf.Variable(values)]
        columns = {
            "actions": actions,
            "returns": returns,
            "mu_log_probabilities": log_mu,
            "mu_values": mu_values,
        }
        columns = {name: tf.constant(column) for name, column in columns.items()}
        found = losses.actor_critic(
            Batch(logits=variables[0], values=variables[1], beta=BETA, **columns), config
        )
    by_logits, by_values = tape.gradient(found.policy_loss, variables)

    fixed = advantage == "gae" or clip_ratio > 0
    advantages = returns.astype(np.float64) - (mu_values if fixed else values)
    if normalize:
        mean = sum(advantages) / B
        advantages = (advantages - mean) / np.sqrt(sum((advantages - mean) ** 2) / B)
    ratio = np.exp(log_pi - log_mu)
    clipped = np.array([min(max(one, 1 - clip_ratio), 1 + clip_ratio) for one in ratio])
    objectives = np.minimum(ratio * advantages, clipped * advantages) if clip_ratio else log_pi * advantages
    counts = ratio * (ratio * advantages <= clipped * advantages) if clip_ratio else np.ones(B)
    if clip_ratio:
        assert 0 < np.count_nonzero(counts) < B, "some actions must be clipped, and some not"
    spread = -(pi * np.log(pi)).sum(axis=1)
    np.testing.assert_allclose(found.policy_loss, -(objectives + BETA * spread).sum(), rtol=1e-4)
    expected = -(np.eye(A)[actions] - pi) * (counts * advantages)[:, None]
    expected += BETA * pi * (np.log(pi) + spread[:, None])
    np.testing.assert_allclose(by_logits, expected, rtol=1e-3, atol=1e-5)
    assert by_values is None, "advantages are constants"
    np.testing.assert_allclose(found.value_loss, 0.5 * ((returns - values) ** 2).sum(), rtol=1e-5)


@pytest.mark.parametrize("size", [2, 5, 20, 128, 1023, 4096])
def test_equal_advantages_become_zeros(size):
    """Rounding gives some of them a mean that differs from all of them."""
    constants = np.random.default_rng(size).normal(0, 3, 500).astype(np.float32)
    as_graph = tf.function(lambda advantages: normalized(advantages, Batch()))
    for constant in (*constants, np.float32(0), np.float32(1e30)):
        assert not as_graph(tf.fill([size], constant)).numpy().any()


@pytest.mark.parametrize("mean", [0, 1, -1e4])
def test_advantages_that_differ_little_are_normalized_still(mean):
    advantages = (mean + np.array([-1, 0, 1, 2]) * max(1e-5, 1e-4 * abs(mean))).astype(np.float32)
    found = normalized(tf.constant(advantages), Batch()).numpy()
    np.testing.assert_allclose([found.mean(), found.std()], [0, 1], atol=5e-3)


def test_a_single_advantage_stays_as_it_is():
    """Minus the mean it would be 0, and the policy would never be trained."""
    assert normalized(tf.constant([-0.7]), Batch()).numpy() == np.float32(-0.7)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_advantages_that_are_not_finite_stay_so(wrong):
    assert not np.isfinite(normalized(tf.constant([1, wrong, 2], tf.float32), Batch())).any()

"""What the settings make of the losses and gradients before an update."""

import numpy as np
import pytest
from checks import batch_of

from ga3c_tf.algorithms.actor_critic.actor_critic import ActorCritic
from ga3c_tf.algorithms.actor_critic.losses import actor_critic
from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.config import Config
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.tensorflow import tf

SIZE = 6


def gradients(size=SIZE, **settings):
    """The gradients of one batch, in the order of the variables, with the losses that are reported."""
    version = tf.Variable(0, dtype=tf.int64)
    network = ActorCritic(Config(network="mlp", **settings), EnvironmentSpec((4,), "float32", 3), 0, version)
    rng = np.random.default_rng(1)
    batch = batch_of(
        rng.normal(size=(size, 4)).astype(np.float32),
        rng.integers(0, 3, size).astype(np.int32),
        rng.normal(0, 2, size).astype(np.float32),
        mu_values=np.zeros(size, np.float32),
        mu_log_probabilities=np.log(rng.uniform(0.2, 0.5, size)).astype(np.float32),
        rewards=rng.normal(0, 2, size).astype(np.float32),
        lengths=np.ones(size, np.int32),
        bootstrap_values=np.zeros(size, np.float32),
    )
    found = network.gradients(batch, 0.1)
    return [tensor.numpy() for tensor in found.tensors], found


def assert_equal(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


@pytest.fixture(scope="module")
def plain():
    return gradients()


def test_a_mean_loss_divides_the_gradients_by_the_states_and_reports_the_same(plain):
    found, reported = gradients(loss_reduction="mean")
    assert_equal(found, [gradient / SIZE for gradient in plain[0]])
    assert reported.metrics == pytest.approx(plain[1].metrics, rel=1e-5)


def test_the_value_coefficient_weighs_the_gradient_of_the_value_loss_alone(plain):
    policy_alone, none, half = (gradients(value_coefficient=weight) for weight in (1e-9, 0.0, 0.5))
    assert_equal(policy_alone[0], none[0])
    assert_equal(half[0], [(one + other) / 2 for one, other in zip(plain[0], none[0], strict=True)])
    assert any(np.abs(one - other).max() > 0.1 for one, other in zip(plain[0], none[0], strict=True))
    assert half[1].metrics["value_loss"] == pytest.approx(plain[1].metrics["value_loss"])


def test_the_global_clip_bounds_the_norm_of_all_gradients_together(plain):
    norm = float(np.sqrt(sum(np.square(gradient).sum() for gradient in plain[0])))
    assert_equal(gradients(grad_clip_global=norm / 4)[0], [gradient / 4 for gradient in plain[0]])
    assert_equal(gradients(grad_clip_global=norm * 2)[0], plain[0])


@pytest.mark.parametrize(
    "settings",
    [{}, {"advantage": "gae"}, {"clip_ratio": 0.2}, {"correction": "v-trace"}, {"correction": "one-step"}],
)
def test_normalized_advantages_train_the_policy_on_single_states_too(settings):
    """With segments of one step, each may be a batch."""
    found, _ = gradients(1, t_max=1, normalize_advantages=True, **settings)
    expected, _ = gradients(1, t_max=1, **settings)
    assert_equal(found, expected)


def reads_lengths(batch, config):
    policy_loss, value_loss, entropy = actor_critic(batch, config)
    return policy_loss, value_loss + 0.0 * tf.reduce_sum(tf.cast(batch.lengths, tf.float32)), entropy


@pytest.mark.parametrize(
    ("settings", "needed"),
    [
        ({}, False),
        ({"clip_ratio": 0.2, "correction": "decoupled-ppo"}, False),
        ({"loss": "test_objectives:reads_lengths"}, True),
        ({"correction": "v-trace"}, True),
        ({"clip_ratio": 0.2, "correction": "deepseek-v3.2"}, True),
        ({"network": "mlp-lstm"}, True),
    ],
)
def test_a_loss_or_a_network_that_reads_segments_needs_whole_ones(settings, needed):
    model = Model(Config(**{"network": "mlp", **settings}), EnvironmentSpec((4,), "float32", 3), 0)
    assert model.needs_segments is needed

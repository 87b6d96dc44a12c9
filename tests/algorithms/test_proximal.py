"""Proximal policies of decoupled PPO, and the step scale, in a model's updates."""

import numpy as np
import pytest
from checks import batch_of, update

from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.algorithms.actor_critic.proximal import BETA
from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.experience.columns import PROXIMAL
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.tensorflow import keras

SPEC = EnvironmentSpec((4,), "float32", 3)
SIZE = 12


def new_model(correction, **settings):
    settings = {"network": "mlp", "clip_ratio": 0.2, "correction": correction} | settings
    return Model(Config(**settings), SPEC, 0)


def new_batch():
    rng = np.random.default_rng(1)
    return batch_of(
        rng.normal(size=(SIZE, 4)).astype(np.float32),
        rng.integers(0, 3, SIZE).astype(np.int32),
        rng.normal(0, 2, SIZE).astype(np.float32),
        mu_values=np.zeros(SIZE, np.float32),
        mu_log_probabilities=np.log(rng.uniform(0.2, 0.5, SIZE)).astype(np.float32),
    )


def log_taken(model, batch):
    policy = model.predict(batch.states).policy
    return np.log(policy[np.arange(len(batch)), batch.actions])


def weights_of(model):
    return [variable.value.numpy() for variable in model.network.trainable_variables]


def test_the_recomputed_policy_is_that_before_the_first_update_on_a_batch():
    model, batch = new_model("clipped-is+decoupled-recompute"), new_batch()
    before = log_taken(model, batch)
    for rows in np.array_split(np.random.default_rng(2).permutation(SIZE), 3):
        part = batch.minibatch(rows)
        update(model, part, 0.05, 0.0)
        np.testing.assert_allclose(getattr(part, PROXIMAL.name), before[rows], rtol=1e-5)
    assert np.abs(log_taken(model, batch) - before).max() > 0.01
    again = new_batch()
    update(model, again, 0.05, 0.0)
    assert np.abs(getattr(again, PROXIMAL.name) - before).max() > 0.01


def test_the_averaged_policy_has_the_slow_average_of_the_weights():
    model, batch = new_model("decoupled-ewma", initialization="orthogonal"), new_batch()
    seen = [weights_of(model)]
    for _ in range(4):
        update(model, batch, 0.05, 0.0)
        seen.append(weights_of(model))
    update(model, batch, 0.05, 0.0)  # its proximal policy is the average before it
    counts = BETA ** np.arange(len(seen))[::-1]
    for variable, history in zip(model.network.trainable_variables, zip(*seen, strict=True), strict=True):
        variable.assign(
            sum(count * value for count, value in zip(counts, history, strict=True)) / counts.sum()
        )
    np.testing.assert_allclose(getattr(batch, PROXIMAL.name), log_taken(model, batch), rtol=1e-4, atol=1e-5)


def test_a_network_with_memory_has_no_proximal_policy():
    with pytest.raises(UserError, match="--correction impact is not for networks with memory"):
        Model(Config(network="mlp-lstm", clip_ratio=0.2, correction="impact"), SPEC, 0)


class Noise(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.seeds = keras.random.SeedGenerator(1)

    def call(self, numbers):
        return numbers + keras.random.normal(keras.ops.shape(numbers), seed=self.seeds)


def noisy(shape, dtype, num_actions):
    """A user's network that draws other numbers in each call, and counts them."""
    states = keras.Input(shape, dtype=dtype)
    hidden = Noise()(keras.layers.Dense(8)(states))
    values = keras.ops.squeeze(keras.layers.Dense(1)(hidden), -1)
    return keras.Model(states, (keras.layers.Dense(num_actions)(hidden), values))


@pytest.mark.parametrize("part", ["ewma", "recompute"])
def test_a_network_that_changes_by_itself_has_no_proximal_policy(part):
    with pytest.raises(UserError, match=f"--correction decoupled-{part} needs a network without a state"):
        new_model(f"decoupled-{part}", network=f"{__name__}:noisy")


@pytest.mark.parametrize("optimizer", ["rmsprop", "adam"])
def test_the_step_is_scaled_by_the_root_of_the_effective_sample_size(optimizer):
    settings = {"clip_ratio": 0.0, "optimizer": optimizer}
    scaled, plain = (new_model(name, **settings) for name in ("vcpo", "clipped-is"))
    batch = new_batch()
    ratios = np.exp(log_taken(plain, batch).astype(np.float64) - batch.mu_log_probabilities)
    scale = np.sqrt(sum(ratios) ** 2 / sum(ratio**2 for ratio in ratios) / SIZE)
    assert 0.3 < scale < 0.95
    start = weights_of(plain)
    update(scaled, batch, 0.01, 0.0)
    update(plain, batch, 0.01, 0.0)
    for before, one, other in zip(start, weights_of(scaled), weights_of(plain), strict=True):
        np.testing.assert_allclose(one - before, scale * (other - before), rtol=2e-3, atol=1e-6)


def test_without_lag_the_step_is_not_scaled():
    scaled, plain = (new_model(name, clip_ratio=0.0) for name in ("is+ess", "none"))
    batch = new_batch()
    vars(batch)["mu_log_probabilities"] = log_taken(plain, batch)
    for model in (scaled, plain):
        update(model, batch, 0.01, 0.0)
    for one, other in zip(weights_of(scaled), weights_of(plain), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)

"""The compiled model against the plain one: equal weights, statistics and losses on the same batches."""

import itertools

import numpy as np
import pytest

from ga3c_tf.algorithms.actor_critic.compiled import CompiledModel
from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.columns import Batch
from ga3c_tf.workers.minibatches import Minibatches

UPDATES = 300
SKIPPED = 17
"""Every so many batches one is not finite."""
CALLS = (1, 6)
"""Updates in one call, in turn."""
RATES = Rates(0.003, 0.02)
VECTOR = ((4,), "float32")
SCREEN = ((36, 36, 2), "uint8")
ACTIONS = 3
RMSPROP = {"rmsprop_epsilon": 1e-3}


def batches_of(config, shape, dtype, seed=0):
    """Endless batches as the settings make them, of random steps in segments of 1 to t_max steps."""
    rng = np.random.default_rng(seed)
    for number in itertools.count(1):
        lengths = []
        while sum(lengths) < config.states_per_update:
            lengths.append(int(rng.integers(1, config.t_max + 1)))
        size = sum(lengths)
        states = rng.normal(size=(size, *shape))
        if dtype == "uint8":
            states = np.clip(128 + 40 * states, 0, 255)
        batch = Batch(
            states=states.astype(dtype),
            agents=np.zeros(size, np.int64),
            actions=rng.integers(0, ACTIONS, size).astype(np.int32),
            rewards=rng.normal(size=size).astype(np.float32),
            mu_values=rng.normal(size=size).astype(np.float32),
            mu_log_probabilities=np.log(rng.uniform(0.2, 0.6, size)).astype(np.float32),
            versions=np.zeros(size, np.int64),
            returns=rng.normal(0, 2, size).astype(np.float32),
            lengths=np.array(lengths, np.int32),
            bootstrap_values=rng.normal(size=len(lengths)).astype(np.float32),
        )
        if number % SKIPPED == 0:
            batch.returns[0] = batch.rewards[-1] = np.nan
        yield batch


def updates_of(config, shape, dtype):
    """Endless updates: batches, or their minibatches."""
    minibatches = Minibatches(config)
    return itertools.chain.from_iterable(map(minibatches.of, batches_of(config, shape, dtype)))


def in_calls(updates, count, sizes=CALLS):
    """Cut the first updates into calls of these sizes, in turn."""
    updates = itertools.islice(updates, count)
    for size in itertools.cycle(sizes):
        call = list(itertools.islice(updates, size))
        if not call:
            return
        yield call


def models(settings, shape=VECTOR[0], dtype=VECTOR[1]):
    config = Config(**{"seed": 1, "min_training_batch": 6, "network": "mlp", **settings})
    made = [kind(config, shape, dtype, ACTIONS, 1) for kind in (Model, CompiledModel)]
    if config.normalize_observations:
        for model in made:
            model.standardize(np.full(shape, 0.5, np.float32), np.full(shape, 2.0, np.float32))
    return config, *made


def assert_same_state(plain, compiled, tolerance=1e-5):
    compiled.store()
    expected = plain.checkpoint_objects()
    found = compiled.checkpoint_objects()
    assert list(found) == list(expected)
    for group, variables in expected.items():
        for one, other in zip(found[group], variables, strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), tolerance, tolerance, err_msg=group)


def assert_same_results(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert (one.version, one.applied) == (other.version, other.applied)
        if one.applied:
            metrics = [list(result.metrics.values()) for result in (one, other)]
            np.testing.assert_allclose(*metrics, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(one.divergence, other.divergence, rtol=1e-4, atol=1e-4)


def assert_equal_over(updates, settings, shape=VECTOR[0], dtype=VECTOR[1]):
    """Make so many updates with both models, in calls of several, and compare all that comes out."""
    config, plain, compiled = models(settings, shape, dtype)
    skipped = 0
    for call in in_calls(updates_of(config, shape, dtype), updates):
        expected = plain.train(call, RATES)
        assert_same_results(compiled.train(call, RATES), expected)
        skipped += sum(not result.applied for result in expected)
    assert skipped and compiled.updates == plain.updates == updates - skipped
    assert_same_state(plain, compiled)
    states = next(batches_of(config, shape, dtype)).states
    for one, other in zip(compiled.predict(states), plain.predict(states), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    return compiled


FAST = {
    "paper": {},
    "ppo": {
        "clip_ratio": 0.2,
        "epochs": 2,
        "minibatch_size": 4,
        "normalize_advantages": True,
        "optimizer": "adam",
        "grad_clip_global": 0.5,
        "loss_reduction": "mean",
    },
    "v-trace-normalized": {"correction": "v-trace", "normalize_advantages": True, **RMSPROP},
    "dual-rmsprop": {"dual_rmsprop": True, "rmsprop_momentum": 0.5, "grad_clip_norm": 0.4, **RMSPROP},
}
SLOW = {
    "momentum-and-clip": {"rmsprop_momentum": 0.9, "grad_clip_norm": 0.001, **RMSPROP},
    "adam": {"optimizer": "adam"},
    "log-softmax-and-value-coefficient": {"log_softmax": True, "value_coefficient": 0.5},
    "min-policy": {"min_policy": 0.01},
    "clipped-is": {"correction": "clipped-is", "importance_clip": 1.5},
    "one-step": {"correction": "one-step"},
    "v-trace": {"correction": "v-trace"},
    "gae-normalized": {"advantage": "gae", "normalize_advantages": True},
    "standardized": {"normalize_observations": True, "loss_reduction": "mean", **RMSPROP},
}


@pytest.mark.parametrize("settings", FAST.values(), ids=FAST)
def test_the_compiled_model_computes_what_the_plain_one_does(settings):
    assert_equal_over(UPDATES, settings)


@pytest.mark.slow  # half a minute
@pytest.mark.parametrize("settings", SLOW.values(), ids=SLOW)
def test_with_every_setting_the_compiled_model_computes_what_the_plain_one_does(settings):
    assert_equal_over(UPDATES, settings)


@pytest.mark.slow  # a minute
@pytest.mark.parametrize("settings", [{"network": "small"}, {"network": "small", "normalize_images": True}])
def test_on_screens_the_compiled_model_computes_what_the_plain_one_does(settings):
    assert_equal_over(UPDATES, settings, *SCREEN)

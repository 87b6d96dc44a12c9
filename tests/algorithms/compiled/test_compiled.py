"""The compiled model against the plain one: equal weights, statistics and losses on the same batches."""

import itertools
import os
import pkgutil
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import keras
import numpy as np
import pytest
from batches import ACTIONS, batches_of, updates_of

from ga3c_tf.algorithms import factory
from ga3c_tf.algorithms.actor_critic import losses
from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.algorithms.compiled.batch_upload import UpdateSize
from ga3c_tf.algorithms.compiled.model import CompiledModel
from ga3c_tf.algorithms.compiled.sizes import UpdateSizes
from ga3c_tf.algorithms.factory import new_model
from ga3c_tf.algorithms.q_learning.dqn import DQN
from ga3c_tf.config import Config
from ga3c_tf.config.declaration import ALGORITHM_MODELS
from ga3c_tf.config.rates import Rates
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model import networks
from ga3c_tf.model.tensorflow import eager_execute, tf
from ga3c_tf.plugins.objects import name_of

UPDATES = 300
CALLS = (1, 6)
"""Updates in one call, in turn."""
RATES = Rates(0.003, 0.02)
VECTOR = ((4,), "float32")
SCREEN = ((36, 36, 2), "uint8")
RMSPROP = {"rmsprop_epsilon": 1e-3}
OF_DQN = {"algorithm": "dqn", "replay_batch": 6, "training_intensity": 1.0, "target_period": 7}


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
    kind = pkgutil.resolve_name(ALGORITHM_MODELS[config.algorithm])
    plain, wrapped = (kind(config, EnvironmentSpec(shape, dtype, ACTIONS), 1) for _ in range(2))
    made = plain, CompiledModel(config, wrapped)
    made[1].load()  # as before a training begins
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
            if other.errors is not None:
                np.testing.assert_allclose(one.errors, other.errors, rtol=1e-4, atol=1e-4)


def assert_equal_over(updates, settings, shape=VECTOR[0], dtype=VECTOR[1], seed=0):
    """Make so many updates with both models, in calls of several, and compare all that comes out."""
    config, plain, compiled = models(settings, shape, dtype)
    skipped = 0
    sizes = [min(size, compiled.updates_per_call) for size in CALLS]
    for call in in_calls(updates_of(config, plain, shape, dtype, seed), updates, sizes):
        expected = plain.train(call, RATES)
        results = compiled.train(call, RATES)
        assert_same_results(results, expected)
        for one, other in zip(results, expected, strict=True):
            np.testing.assert_allclose(one.divergence, other.divergence, rtol=1e-4, atol=1e-4)
        skipped += sum(not result.applied for result in expected)
    assert skipped and compiled.updates == plain.updates == updates - skipped
    assert_same_state(plain, compiled)
    states = next(batches_of(config, shape, dtype)).states
    for one, other in zip(compiled.predict(states)[:3], plain.predict(states)[:3], strict=True):
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
    "v-trace+ppo": {
        "correction": "v-trace+ppo",
        "clip_ratio": 0.2,
        "epochs": 2,
        "minibatch_size": 4,
        **RMSPROP,
    },
    "pqn": {
        "algorithm": "pqn",
        "epochs": 2,
        "minibatch_size": 4,
        "optimizer": "adam",
        "grad_clip_global": 0.5,
        "loss_reduction": "mean",
    },
    "dqn": {**OF_DQN, "optimizer": "adam", "loss_reduction": "mean"},
}
SLOW = {
    "dqn-centred": {
        **OF_DQN,
        **RMSPROP,
        "double_q": False,
        "dueling": True,
        "rmsprop_centred": True,
        "rmsprop_momentum": 0.9,
        "grad_clip_global": 0.5,
        "normalize_observations": True,
    },
    "v-trace-normalized": {"correction": "v-trace", "normalize_advantages": True, **RMSPROP},
    "dual-rmsprop": {"dual_rmsprop": True, "rmsprop_momentum": 0.5, "grad_clip_norm": 0.4, **RMSPROP},
    "momentum-and-clip": {"rmsprop_momentum": 0.9, "grad_clip_norm": 0.001, **RMSPROP},
    "adam": {"optimizer": "adam"},
    "log-softmax-and-value-coefficient": {"log_softmax": True, "value_coefficient": 0.5},
    "min-policy": {"min_policy": 0.01},
    "clipped-is": {"correction": "clipped-is", "importance_clip": 1.5},
    "one-step": {"correction": "one-step"},
    "v-trace": {"correction": "v-trace"},
    "decoupled-ppo": {"correction": "decoupled-ppo", "clip_ratio": 0.2},
    "m2po": {"correction": "m2po"},
    "deepseek-v3.2": {"correction": "deepseek-v3.2", "clip_ratio": 0.2},
    "v-trace+ratio-mask+m2po": {"correction": "v-trace+ratio-mask+m2po"},
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


ON_SCREENS = """
import sys
sys.path += sys.argv[1:]
import test_compiled
test_compiled.without_kinks()
test_compiled.assert_equal_over(test_compiled.UPDATES, {settings}, *test_compiled.SCREEN)
"""


def without_kinks():
    """Build networks with GELU: near the kink of a ReLU, rounding decides whether a model has a gradient."""
    for name in ("_conv", "_dense"):
        made = getattr(networks, name)
        setattr(networks, name, partial(smooth, made))


def smooth(made, *args):
    layer = made(*args)
    if layer.activation is keras.activations.relu:
        layer.activation = keras.activations.gelu
    return layer


@pytest.mark.slow  # a minute
@pytest.mark.parametrize("settings", [{"network": "small"}, {"network": "small", "normalize_images": True}])
def test_on_screens_the_compiled_model_computes_what_the_plain_one_does(settings):
    """Without oneDNN, whose convolutions are rounded so that weights differ by 1e-5 after 50 updates."""
    program = ON_SCREENS.format(settings=settings)
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[2])]
    environment = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": "0"}
    done = subprocess.run(
        [sys.executable, "-c", program, *folders], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def own_network(shape, dtype, num_actions):
    """A user's network: with layers that have no place in the built-in ones."""
    states = keras.Input(shape, dtype=dtype)
    hidden = keras.layers.LayerNormalization()(keras.layers.Dense(8, activation="gelu")(states))
    values = keras.ops.squeeze(keras.layers.Dense(1)(hidden), -1)
    return keras.Model(states, (keras.layers.Dense(num_actions)(hidden), values))


def with_layer(layer):
    """Return a user's network with this layer."""

    def build(shape, dtype, num_actions):
        states = keras.Input(shape, dtype=dtype)
        hidden = layer(keras.layers.Dense(8)(states))
        values = keras.ops.squeeze(keras.layers.Dense(1)(hidden), -1)
        return keras.Model(states, (keras.layers.Dense(num_actions)(hidden), values))

    return build


class Text(keras.layers.Layer):
    """Has operations that XLA does not have."""

    def call(self, numbers):
        return tf.strings.to_number(tf.strings.as_string(numbers))


def test_a_users_network_is_compiled_too():
    assert_equal_over(34, {"network": name_of(own_network), "optimizer": "adam"})


def said_of(compile="on", device="/CPU:0", **settings):
    """The model that is made, and what is said."""
    said = []
    config = Config(seed=1, compile=compile, min_training_batch=6, num_agents=4, **settings)
    model = new_model(config, EnvironmentSpec((4,), "float32", ACTIONS), 1, device, say=said.append)
    return model, said


@pytest.mark.parametrize(
    ("network", "reason"),
    [
        (with_layer(keras.layers.Dropout(0.5)), "by itself, as with dropout"),
        (with_layer(keras.layers.BatchNormalization()), "by itself, as with dropout"),
        (with_layer(Text()), "XLA cannot do it: .*AsString"),
    ],
    ids=["dropout", "batch-normalization", "not-in-xla"],
)
def test_a_network_that_cannot_be_compiled_is_trained_as_before_and_a_line_says_why(network, reason):
    model, said = said_of(network=name_of(network))
    assert type(model) is Model and re.search(reason, said[-1]) and "\n" not in said[-1]
    [batch] = itertools.islice(batches_of(Config(), *VECTOR), 1)
    assert model.train([batch], RATES)[0].applied


def test_a_dqn_that_cannot_be_compiled_copies_its_own_weights_to_the_target_network():
    settings = {**OF_DQN, "target_period": 1, "network": name_of(with_layer(Text()))}
    model, said = said_of(**settings)
    assert type(model) is DQN and "XLA cannot do it" in said[-1]
    model.load()
    [batch] = itertools.islice(batches_of(Config(**OF_DQN), *VECTOR), 1)
    assert model.train([batch], RATES)[0].applied
    for target, weight in zip(model.target.weights, model.network.weights, strict=True):
        np.testing.assert_array_equal(target.numpy(), weight.numpy())


def own_loss(batch, config):
    """A user's loss."""
    return losses.actor_critic(batch, config)


def test_a_users_loss_is_not_compiled():
    model, said = said_of(loss=name_of(own_loss))
    assert type(model) is Model and "rows of padding would count in it" in said[-1]


@pytest.mark.parametrize("correction", ["vcpo", "decoupled-recompute", "impact"])
def test_a_correction_with_a_step_scale_or_a_policy_of_its_own_is_not_compiled(correction):
    model, said = said_of(correction=correction, clip_ratio=0.2 * (correction != "vcpo"))
    assert type(model) is Model and "between the updates of a call" in said[-1]


@pytest.mark.parametrize(
    ("compile", "device", "is_compiled"),
    [("auto", "/GPU:0", True), ("auto", "/CPU:0", False), ("on", "/CPU:0", True), ("off", "/GPU:0", False)],
)
def test_on_a_gpu_the_model_is_compiled_unless_the_settings_say_otherwise(compile, device, is_compiled):
    assert factory._is_compiled(Config(compile=compile), device) == is_compiled


def hand_over(before, after):
    """Continue with another model, as from a checkpoint."""
    before.store()
    saved = before.checkpoint_objects()
    for group, variables in after.checkpoint_objects().items():
        for variable, value in zip(variables, saved[group], strict=True):
            variable.assign(value)
    after.load()


@pytest.fixture(scope="module")
def pair():
    return models(RMSPROP)


@pytest.fixture
def trained(pair):
    """Settings, and a plain and a compiled model after the same updates."""
    config, plain, compiled = pair
    for call in in_calls(updates_of(config, plain, *VECTOR), 20):
        plain.train(call, RATES)
    hand_over(plain, compiled)
    return pair


def test_checkpoints_of_one_are_continued_by_the_other(trained):
    config, plain, compiled = trained
    updates = updates_of(config, plain, *VECTOR)
    other = Model(config, EnvironmentSpec(*VECTOR, ACTIONS), 2)
    for before, after in ((compiled, other), (other, compiled), (compiled, other)):
        hand_over(before, after)
        for call in in_calls(updates, 14):
            assert_same_results(after.train(call, RATES), plain.train(call, RATES))
    assert_same_state(plain, other)


def test_larger_batches_than_usual_are_trained_on_and_predicted_for(trained):
    config, plain, compiled = trained
    [batch] = itertools.islice(batches_of(config.replace(min_training_batch=30), *VECTOR), 1)
    assert_same_results(compiled.train([batch], RATES), plain.train([batch], RATES))
    for size in (1, 8, 9, 31):
        states = batch.states[:size]
        for one, other in zip(compiled.predict(states)[:3], plain.predict(states)[:3], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_only_what_a_system_trains_on_is_compiled():
    a_round = UpdateSize(steps=1024, updates=1, rows=1024)
    assert UpdateSizes(Config(system="a2c", num_agents=8, t_max=128)).usual() == [a_round]
    ga3c = UpdateSizes(Config(min_training_batch=1023, t_max=128)).usual()
    assert [(size.updates, size.rows) for size in ga3c] == [(1, 1151), (2, 1151), (4, 1151), (8, 1151)]


def test_a_call_is_one_operation_and_makes_no_tensor_of_the_states(trained, monkeypatch):
    config, _, compiled = trained
    call = next(in_calls(updates_of(config, compiled, *VECTOR), 6, sizes=[6]))
    compiled.train(call, RATES)
    compiled.predict(call[0].states)
    run = []
    execute = eager_execute.quick_execute

    def counted(name, *arguments):
        run.append(name)
        return execute(name, *arguments)

    for name in ("constant", "convert_to_tensor"):
        monkeypatch.setattr(tf, name, None)
    monkeypatch.setattr(eager_execute, "quick_execute", counted)
    compiled.train(call, RATES)
    compiled.predict(call[0].states)
    assert len(run) == 2


def test_states_of_a_wrong_shape_are_refused(trained):
    config, _, compiled = trained
    [batch] = itertools.islice(batches_of(config, (5,), "float32"), 1)
    with pytest.raises(ValueError, match="the model takes float32"):
        compiled.train([batch], RATES)
    with pytest.raises(ValueError, match="the model takes float32"):
        compiled.predict(batch.states)

"""A model on several devices against one on one device. In the tests of this process all replicas share its
only device; `tests/systems/test_devices.py` starts programs with several.
"""

import contextlib
import functools
import itertools
import subprocess
import sys
import threading

import numpy as np
import pytest
from batches import ACTIONS, SKIPPED, batches_of, updates_of

from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.algorithms.actor_critic.replicas import device_threads, parts
from ga3c_tf.algorithms.actor_critic.replicas.asynchronous import AsynchronousReplicas
from ga3c_tf.algorithms.actor_critic.replicas.compiled import CompiledReplica
from ga3c_tf.algorithms.actor_critic.replicas.parts import parts_of
from ga3c_tf.algorithms.actor_critic.replicas.replica import Replica
from ga3c_tf.algorithms.actor_critic.replicas.synchronous import SynchronousReplicas
from ga3c_tf.algorithms.factory import new_model
from ga3c_tf.config import Config
from ga3c_tf.config.rates import Rates
from ga3c_tf.errors import DeviceStopped, UserError
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.tensorflow import keras

RATES = Rates(0.003, 0.02)
SHAPE = (4,)
SPEC = EnvironmentSpec(SHAPE, "float32", ACTIONS)
RMSPROP = {"rmsprop_epsilon": 1e-3}
SETTINGS = {
    "paper": RMSPROP,
    "clipped-mean": {"grad_clip_norm": 0.01, "loss_reduction": "mean", **RMSPROP},
    "dual": {"dual_rmsprop": True, "grad_clip_norm": 0.5, **RMSPROP},
    "v-trace": {"correction": "v-trace", "value_coefficient": 0.5, **RMSPROP},
    "minibatches": {
        "clip_ratio": 0.2,
        "epochs": 2,
        "minibatch_size": 7,
        "optimizer": "adam",
        "grad_clip_global": 0.5,
        "loss_reduction": "mean",
    },
    "v-trace+ppo": {
        "correction": "v-trace+ppo",
        "clip_ratio": 0.2,
        "epochs": 2,
        "minibatch_size": 7,
        **RMSPROP,
    },
}


def with_statistics(shape, dtype, num_actions):
    """Return a network with weights that are not trained."""
    states = keras.Input(shape, dtype=dtype)
    hidden = keras.layers.BatchNormalization()(states)
    values = keras.ops.squeeze(keras.layers.Dense(1)(hidden), -1)
    return keras.Model(states, (keras.layers.Dense(num_actions)(hidden), values))


def test_a_network_with_weights_that_are_not_trained_is_refused(monkeypatch):
    monkeypatch.setattr(Config, "device_names", ["/CPU:0", "/CPU:0"])
    config = Config(devices="cpu:2", network="test_replicas:with_statistics")
    with pytest.raises(
        UserError, match="--devices share trainable weights only, and the network has 2 others"
    ):
        new_model(config, SPEC, 0, None)


@pytest.fixture(autouse=True)
def in_parts(monkeypatch):
    """Also batches as small as those of these tests are cut into parts."""
    monkeypatch.setattr(parts, "SMALLEST_WORK", 1)


def config_of(devices=2, **settings):
    return Config(
        **{"seed": 1, "min_training_batch": 20, "network": "mlp", "devices": f"cpu:{devices}", **settings}
    )


def replicas_of(config, kind=SynchronousReplicas, replica=Replica):
    made = kind(config, [replica(config, SPEC, seed, "/CPU:0") for seed in range(len(config.device_names))])
    made.load()
    return made


def plain_of(config, weights_of):
    """The model on one device, with the weights of another."""
    model = Model(config, SPEC, seed=7)
    for variable, other in zip(model.network.weights, weights_of.network.weights, strict=True):
        variable.assign(other)
    return model


def state_of(model):
    model.store()
    return {
        group: [variable.numpy() for variable in variables]
        for group, variables in model.checkpoint_objects().items()
    }


def assert_same_state(one, other, tolerance=0.0):
    found = state_of(one)
    expected = state_of(other)
    assert list(found) == list(expected)
    for group, arrays in expected.items():
        for array, wanted in zip(found[group], arrays, strict=True):
            np.testing.assert_allclose(array, wanted, rtol=tolerance, atol=tolerance, err_msg=group)


def assert_same_weights(replicas):
    """All devices have the same weights, and count the same updates, once all have been lent."""
    with contextlib.ExitStack() as stack:
        for _ in replicas.replicas:
            stack.enter_context(replicas.lent())
    first, *others = replicas.replicas
    for other in others:
        assert other.updates == first.updates
        for weights, expected in zip(other.weights(), first.weights(), strict=True):
            np.testing.assert_array_equal(weights, expected)


CASES = [(name, devices, Replica) for name, devices in zip(SETTINGS, itertools.cycle([2, 3]))]
COMPILED = [pytest.param(name, 2, CompiledReplica, marks=pytest.mark.slow) for name in SETTINGS]  # 5 s each


@pytest.mark.parametrize(("settings", "devices", "replica"), [*CASES, *COMPILED])
def test_several_devices_train_as_one_does_on_the_whole_batch(settings, devices, replica):
    config = config_of(devices, **SETTINGS[settings])
    replicas = replicas_of(config, replica=replica)
    model = plain_of(config, replicas)
    for batch in updates_of(config, model, SHAPE, "float32"):
        [result] = replicas.train([batch], RATES)
        [expected] = model.train([batch], RATES)
        assert (result.version, result.applied) == (expected.version, expected.applied)
        assert_same_state(replicas, model, 1e-6)
        if not expected.applied:
            break
        metrics = [list(learned.metrics.values()) for learned in (result, expected)]
        np.testing.assert_allclose(*metrics, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(result.divergence, expected.divergence, rtol=1e-5, atol=1e-6)
    assert model.updates >= SKIPPED - 1
    assert_same_weights(replicas)


def test_a_compiled_replica_computes_what_a_plain_one_does():
    config = config_of(**SETTINGS["clipped-mean"])
    plain, compiled = (kind(config, SPEC, 1, "/CPU:0") for kind in (Replica, CompiledReplica))
    for batch in itertools.islice(batches_of(config, SHAPE, "float32"), 3):
        expected = plain.gradients(batch, RATES.beta)
        gradients = compiled.gradients(batch, RATES.beta)
        np.testing.assert_allclose(gradients.log_pi, expected.log_pi, rtol=1e-5)
        np.testing.assert_allclose([*gradients.metrics.values()], [*expected.metrics.values()], rtol=1e-5)
        for replica, tensors in ((plain, expected.tensors), (compiled, gradients.tensors)):
            replica.apply(tensors, RATES.learning_rate)
        assert_same_state(compiled, plain, 1e-6)
    compiled.replace([np.zeros_like(weights) for weights in compiled.weights()], 7)
    assert compiled.updates == compiled.predict(batch.states).version == 7
    np.testing.assert_array_equal(compiled.weights()[0], 0)


@pytest.mark.parametrize("devices", [1, 2, 3, 7])
def test_parts_have_every_step_once_in_whole_segments_of_nearly_equal_number(devices):
    config = config_of(min_training_batch=60)
    for batch in itertools.islice(batches_of(config, SHAPE, "float32"), 10):
        cut = parts_of(batch, devices)
        assert len(cut) == devices
        for name, column in vars(batch).items():
            np.testing.assert_array_equal(np.concatenate([getattr(part, name) for part in cut]), column)
        for part in cut:
            assert part.lengths.sum() == len(part)
            assert abs(len(part) - len(batch) / devices) <= config.t_max


def test_a_batch_of_few_segments_has_fewer_parts():
    [batch] = itertools.islice(batches_of(config_of(min_training_batch=0), SHAPE, "float32"), 1)
    [part] = parts_of(batch, 4)
    np.testing.assert_array_equal(part.states, batch.states)
    assert [len(part) for part in parts_of(batch.minibatch(np.array([2, 0])), 4)] == [1, 1]


def test_what_is_too_small_to_be_shared_is_for_the_first_device(monkeypatch):
    monkeypatch.setattr(parts, "SMALLEST_WORK", 10**9)
    assert [parts.number_of_parts(states, 10**6, 4) for states in (20, 2_000, 3_999, 10**5)] == [1, 2, 3, 4]
    config = config_of(2, **RMSPROP)
    replicas = replicas_of(config)
    used = []
    for number, replica in enumerate(replicas.replicas):
        for call in ("gradients", "predict"):
            monkeypatch.setattr(
                replica, call, functools.partial(noting, used, number, getattr(replica, call))
            )
    model = plain_of(config, replicas)
    for batch in itertools.islice(batches_of(config, SHAPE, "float32"), 6):
        replicas.train([batch], RATES)
        model.train([batch], RATES)
        replicas.predict(batch.states)
    assert used == [0] * 12
    assert_same_state(replicas, model)
    assert_same_weights(replicas)


def noting(used, number, function, *arguments):
    used.append(number)
    return function(*arguments)


def test_several_trainers_make_the_updates_in_one_order_on_all_devices():
    config = config_of(3, **RMSPROP)
    replicas = replicas_of(config)
    batches = list(itertools.islice(batches_of(config, SHAPE, "float32"), 2 * SKIPPED))
    trainers = [
        threading.Thread(target=replicas.train, args=(batches[start::4], RATES)) for start in range(4)
    ]
    for trainer in trainers:
        trainer.start()
    for trainer in trainers:
        trainer.join()
    assert replicas.updates == len(batches) - len(batches) // SKIPPED
    assert_same_weights(replicas)


def test_copies_that_are_never_old_train_as_one_device_does():
    config = config_of(3, sync="none", pull_updates=1, **RMSPROP)
    replicas = replicas_of(config, AsynchronousReplicas)
    model = plain_of(config, replicas)
    for batch in itertools.islice(batches_of(config, SHAPE, "float32"), 2 * SKIPPED):
        [result] = replicas.train([batch], RATES)
        [expected] = model.train([batch], RATES)
        assert (result.version, result.applied) == (expected.version, expected.applied)
        assert result.metrics["replica_lag"] == 0 or not result.applied
    assert_same_state(replicas, model, 1e-6)


def test_a_copy_is_pulled_once_it_is_so_many_updates_old_and_its_lag_is_measured():
    config = config_of(2, sync="none", pull_updates=3, **RMSPROP)
    replicas = replicas_of(config, AsynchronousReplicas)
    lags = []
    for batch in itertools.islice(batches_of(config, SHAPE, "float32"), 12):
        [result] = replicas.train([batch], RATES)
        lags.append(result.metrics["replica_lag"] / len(batch))
    # The devices train in turn. The first has the central weights; the copy is 1, 3 -> 0, 2, 4 -> 0 ... old.
    assert lags == [0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0]
    versions = {replicas.predict(batch.states).version for _ in range(2)}
    assert versions == {12, 11}
    replicas.align()
    assert_same_weights(replicas)


def test_predictions_are_made_on_the_device_with_the_fewest_under_way():
    replicas = replicas_of(config_of(3))
    with replicas.lent() as first, replicas.lent() as second, replicas.lent() as third:
        assert {first, second, third} == {0, 1, 2}
        with replicas.lent():
            pass
    with replicas.lent() as first, replicas.lent() as second:
        assert first != second


def failing(*_):
    raise OSError("the device is gone")


@pytest.mark.parametrize("call", ["gradients", "replace"])
def test_the_error_of_a_device_is_that_of_the_update(monkeypatch, call):
    config = config_of(2)
    replicas = replicas_of(config)
    monkeypatch.setattr(replicas.replicas[1], call, failing)
    with pytest.raises(OSError, match="the device is gone"):  # it pulls weights before its second part
        replicas.train(list(itertools.islice(batches_of(config, SHAPE, "float32"), 2)), RATES)


@pytest.mark.parametrize("call", ["gradients", "replace"])
def test_a_device_that_does_not_answer_ends_the_update_in_one_line(monkeypatch, call):
    config = config_of(2)
    replicas = replicas_of(config)
    batches = list(itertools.islice(batches_of(config, SHAPE, "float32"), 2))
    replicas.train(batches, RATES)  # traced now, so that the other device answers in time
    test_ends = threading.Event()
    monkeypatch.setattr(replicas.replicas[1], call, lambda *_: test_ends.wait())
    try:
        for limit in (3, 4):  # it is not waited for again
            monkeypatch.setattr(device_threads, "LIMIT_SECONDS", limit)
            with pytest.raises(DeviceStopped, match=r"^the replica on /CPU:1 has not answered for 3 s"):
                replicas.train(batches, RATES)
    finally:
        test_ends.set()


def test_an_error_of_one_device_does_not_wait_for_another(monkeypatch):
    monkeypatch.setattr(device_threads, "LIMIT_SECONDS", 3)
    test_ends = threading.Event()
    with pytest.raises(OSError, match="the device is gone"):
        device_threads.call_on_devices(["/CPU:0", "/CPU:1"], lambda call: call(), [test_ends.wait, failing])
    test_ends.set()


PAUSED = """
import os
import subprocess

from ga3c_tf.algorithms.actor_critic.replicas import device_threads

device_threads.LIMIT_SECONDS = 3
program = os.getpid()
pause = subprocess.Popen(["sh", "-c", f"kill -STOP {program}; sleep 4; kill -CONT {program}"])
assert device_threads.call_on_devices(["/CPU:1"], pause.wait, [None]) == [0]
"""
"""A program that is stopped for longer than a device may take. It is none of a shell, which would notice."""


def test_a_pause_of_the_program_is_no_fault_of_a_device():
    subprocess.run([sys.executable, "-c", PAUSED], check=True)

"""Hidden layers in bfloat16: what stays float32, how far gradients differ, and when 'auto' chooses it."""

import json

import keras
import numpy as np
import pytest
from checks import batch_of, update

import ga3c_tf
from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.config import Config
from ga3c_tf.config.rules import check_effects
from ga3c_tf.errors import UserError
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model import bfloat16, device
from ga3c_tf.model.device import resolve_dtype_policy
from ga3c_tf.model.networks import build_network

OBSERVATIONS = {
    "small": ((84, 84, 4), "uint8"),
    "minatar": ((10, 10, 6), "uint8"),
    "mlp": ((4,), "float32"),
}
HEADS = {"logits_p", "logits_v"}
SCALING = {"rescale", "standardize", "cast"}


def network_of(name, policy, standardized):
    config = Config(network=name, normalize_observations=standardized)
    return build_network(config, EnvironmentSpec(*OBSERVATIONS[name], 3), 0, policy)


def states_of(name, count=8):
    shape, dtype = OBSERVATIONS[name]
    return np.random.default_rng(0).integers(0, 256, (count, *shape)).astype(dtype)


@pytest.mark.parametrize("standardized", [False, True])
@pytest.mark.parametrize("name", OBSERVATIONS)
def test_only_hidden_layers_compute_in_bfloat16(name, standardized):
    network = network_of(name, "mixed_bfloat16", standardized)
    for layer in network.layers:
        if layer.trainable_weights:
            assert layer.compute_dtype == ("float32" if layer.name in HEADS else "bfloat16")
        if layer.name in SCALING:
            assert layer.compute_dtype == "float32"
    assert {weight.dtype for weight in network.weights} == {"float32"}
    logits, values = network(states_of(name))
    assert (logits.dtype.name, values.dtype.name) == ("float32", "float32")
    assert keras.config.dtype_policy().name == "float32"  # of whatever is built next


@pytest.mark.parametrize("name", OBSERVATIONS)
def test_updates_are_those_of_float32_within_the_rounding(name):
    shape, dtype = OBSERVATIONS[name]
    states = (
        states_of(name)
        if dtype == "uint8"
        else np.random.default_rng(0).normal(size=(8, *shape)).astype(dtype)
    )
    batch = batch_of(states, np.arange(8, dtype=np.int32) % 3, np.linspace(-2, 2, 8, dtype=np.float32))
    found = {}
    for policy in ("float32", "mixed_bfloat16"):
        trained = Model(Config(dtype_policy=policy), EnvironmentSpec(shape, dtype, 3), 0)
        assert trained.dtype_policy == policy
        before = np.concatenate([np.ravel(weight) for weight in trained.network.trainable_weights])
        assert update(trained, batch, 0.01, 0.01).applied
        after = np.concatenate([np.ravel(weight) for weight in trained.network.trainable_weights])
        found[policy] = after - before
    exact = found["float32"]
    rounded = found["mixed_bfloat16"]
    cosine = exact @ rounded / (np.linalg.norm(exact) * np.linalg.norm(rounded))
    assert 0.99 < cosine < 1 - 1e-9  # bfloat16 has 8 significant bits, so some units near 0 turn on or off
    assert np.linalg.norm(rounded) == pytest.approx(np.linalg.norm(exact), rel=0.02)


@pytest.mark.parametrize(
    ("policy", "where", "faster", "resolved"),
    [
        ("auto", "/CPU:0", True, "mixed_bfloat16"),
        ("auto", None, True, "mixed_bfloat16"),
        ("auto", "/CPU:0", False, "float32"),
        ("auto", "/GPU:0", True, "float32"),
        ("mixed_bfloat16", "/CPU:0", False, "mixed_bfloat16"),
        ("float32", "/CPU:0", True, "float32"),
    ],
)
def test_auto_is_bfloat16_where_the_processor_is_faster_with_it(monkeypatch, policy, where, faster, resolved):
    monkeypatch.setattr(device, "bfloat16_is_faster", lambda: faster)
    assert resolve_dtype_policy(policy, where) == resolved


@pytest.mark.parametrize(("slowed", "faster"), [("float32", True), ("bfloat16", False)])
def test_the_faster_of_two_computations_is_found(monkeypatch, slowed, faster):
    """Both are computed, and the clock moves on as if one of them took longer."""
    computation = bfloat16._work
    now = [0.0]

    def timed(dtype):
        compute = computation(dtype)
        seconds = 0.5 if dtype.name == slowed else 0.1
        return lambda: (compute(), now.append(now[-1] + seconds))

    monkeypatch.setattr(bfloat16, "_work", timed)
    monkeypatch.setattr(bfloat16.time, "perf_counter", lambda: now[-1])
    monkeypatch.setattr(bfloat16, "CALLS", 2)
    assert bfloat16.bfloat16_is_faster.__wrapped__() == faster


@pytest.mark.parametrize("system", ["ga3c", "a2c"])
def test_a_run_records_its_policy_resumes_and_is_evaluated_in_float32(tmp_path, system):
    settings = {
        "preset": "smoke",
        "num_agents": 2,
        "device": "cpu",
        "seed": 1,
        "progress": False,
        "system": system,
    }
    run = ga3c_tf.train(
        "CartPole-v1", run_dir=str(tmp_path / "run"), steps=500, dtype_policy="mixed_bfloat16", **settings
    )
    run = run.resume(steps=1000, progress=False)
    sessions = json.loads((run.path / "meta.json").read_text())["sessions"]
    assert [session["dtype_policy"] for session in sessions] == ["mixed_bfloat16"] * 2
    assert ga3c_tf.load_agent(run.path)._trained.model.dtype_policy == "float32"


def test_it_is_refused_with_a3c():
    with pytest.raises(UserError, match="has no effect with --system a3c"):
        check_effects(Config(system="a3c"), ["dtype_policy"])

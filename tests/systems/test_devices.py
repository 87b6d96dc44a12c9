"""Runs on several logical devices of the CPU, in programs of their own: TensorFlow has to start with them."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from commands import ga3c_tf, output_of

from ga3c_tf.algorithms.actor_critic.replicas.replica import Replica
from ga3c_tf.config import Config
from ga3c_tf.environments.environment import describe_environment
from ga3c_tf.errors import UserError
from ga3c_tf.model.tensorflow import tf
from ga3c_tf.runs.checkpoints import Checkpoints
from ga3c_tf.runs.csv_rows import ADJUSTMENT_COLUMNS, METRIC_COLUMNS, read_rows
from ga3c_tf.runs.folder import RunFolder
from ga3c_tf.systems.ga3c.system import GA3C
from ga3c_tf.systems.training import Training

TRAIN = ("train", "CartPole-v1", "--preset", "smoke", "--seed", 1, "--log-seconds", 0.2)
SERIAL = (
    "train",
    "MinAtar/Breakout-v1",
    "--preset",
    "smoke",
    "--seed",
    1,
    "--system",
    "serial",
    "--steps",
    2500,
)
LARGE = ("--min-training-batch", 600)
"""Large enough a batch for two devices to compute on."""


def train(folder, *options):
    return json.loads(output_of(*options, "--run-dir", folder, "--json").splitlines()[-1])


def weights_of(folder):
    """The trained weights of the newest checkpoint."""
    path = max((folder / "checkpoints").iterdir()) / "checkpoint"
    return [
        tf.train.load_variable(str(path), name)
        for name, _ in tf.train.list_variables(str(path))
        if name.startswith(("weights/", "mean_square/"))
    ]


def metrics_of(folder):
    return read_rows(folder / "metrics.csv", METRIC_COLUMNS)


def resume(folder, steps, *changes):
    words = [word for change in changes for word in ("--set", change)]
    return json.loads(output_of("resume", folder, "--steps", steps, *words, "--json").splitlines()[-1])


def test_serial_training_is_the_same_on_several_devices(tmp_path):
    train(tmp_path / "one", *SERIAL, *LARGE)
    assert train(tmp_path / "two", *SERIAL, *LARGE, "--devices", "cpu:2")["updates"] == 4
    for weights, of_two in zip(weights_of(tmp_path / "one"), weights_of(tmp_path / "two"), strict=True):
        np.testing.assert_allclose(of_two, weights, rtol=1e-6, atol=1e-6)


def test_a_run_resumes_on_another_number_of_devices_and_without_waiting_for_others(tmp_path):
    run = tmp_path / "run"
    first = train(run, *TRAIN, "--devices", "cpu:2")
    assert json.loads((run / "meta.json").read_text())["sessions"][0]["device"] == "/CPU:0,/CPU:1"
    summary = resume(run, 2 * first["agent_steps"], "devices=cpu:3", "sync=none", "pull_updates=2")
    assert summary["updates"] > first["updates"] > 0 and summary["skipped_updates"] == 0
    lags = [row["replica_lag"] for row in metrics_of(run)]
    assert lags[0] == "" and any(float(lag) > 0 for lag in lags if lag)


@pytest.mark.slow  # 20 s
def test_a2c_resumes_on_other_devices_and_on_one(tmp_path):
    run = tmp_path / "run"
    steps = train(run, *TRAIN, "--system", "a2c", "--devices", "cpu:2")["agent_steps"]
    resume(run, 2 * steps, "devices=cpu:2", "sync=none")
    assert resume(run, 3 * steps, "devices=none")["agent_steps"] >= 3 * steps
    output_of("evaluate", run, "--episodes", 1)


@pytest.mark.slow  # 20 s
def test_agents_and_threads_are_adjusted_on_several_devices(tmp_path):
    words = ("--adjustment", "fast", "--adjustment-seconds", 1, "--steps", 10**6, "--minutes", 0.3)
    assert train(tmp_path, *TRAIN, *words, "--devices", "cpu:2", "--sync", "none")["updates"] > 0
    rows = read_rows(tmp_path / "adjustment.csv", ADJUSTMENT_COLUMNS)
    assert len({(row["agents"], row["predictors"], row["trainers"]) for row in rows}) > 1


def test_an_error_on_one_device_ends_the_run_with_it_and_a_checkpoint(tmp_path, monkeypatch):
    """The devices of this process are one, so that both replicas are on it."""
    monkeypatch.setattr(Config, "device_names", ["/CPU:0", "/CPU:0"])
    gradients = Replica.gradients
    calls = itertools.count()

    def fail_at_last(self, *arguments):
        if next(calls) == 40:
            raise OSError("the device is gone")
        return gradients(self, *arguments)

    monkeypatch.setattr(Replica, "gradients", fail_at_last)
    settings = {"env_id": "CartPole-v1", "network": "mlp", "seed": 1, "num_agents": 4, "agent_processes": 1}
    config = Config(**settings, devices="cpu:2", steps=10**6, run_dir=str(tmp_path))
    training = Training(
        GA3C, config, describe_environment(config), RunFolder(tmp_path, config), "/CPU:0", print
    )
    with pytest.raises(OSError, match="the device is gone"):
        training.run()
    steps = Checkpoints(tmp_path, training.session.model.checkpoint_objects()).steps()
    assert len(steps) == 2 and training.session.model.updates > 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"devices": "gpu"}, "--devices gpu must be like gpu:0,gpu:1 or cpu:4"),
        ({"devices": "cpu:0"}, "--devices cpu:0 must be like"),
        ({"devices": "cpu:2", "device": "cpu"}, "--devices cpu:2 cannot be combined with --device cpu"),
        ({"devices": "cpu:2", "system": "a3c"}, "--devices"),
        ({"devices": "cpu:2", "algorithm": "pqn"}, "--devices"),
        ({"devices": "gpu:1,gpu:0,gpu:1"}, "--devices gpu:1,gpu:0,gpu:1 names a device twice"),
        (
            {"devices": "cpu:1", "sync": "none"},
            "--sync none is for several devices, and --devices cpu:1 is one",
        ),
    ],
)
def test_devices_that_cannot_be_are_refused_in_one_line(settings, message):
    with pytest.raises(UserError, match=message):
        Config(**settings)


def test_a_gpu_that_is_not_there_is_refused_in_one_line(tmp_path):
    done = ga3c_tf(*TRAIN, "--devices", "gpu:0,gpu:7", "--run-dir", tmp_path / "run")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert (
        "TensorFlow finds no gpu:0 here; name others, or cpu:N to" in done.stderr
        and not Path(tmp_path / "run").exists()
    )

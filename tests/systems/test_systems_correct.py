"""Corrections of policy lag train with real networks: each in one system, and each system with some."""

import itertools

import pytest

from ga3c_tf.config import Config
from ga3c_tf.runner import new_training

SETTINGS = {"num_agents": 2, "num_predictors": 1, "num_trainers": 1, "seed": 1, "steps": 400}
SYSTEMS = {
    "serial": {"system": "serial"},
    # Else all steps may be made before the second update, on a busy machine.
    "ga3c": {"max_training_queue": 4},
    "a2c": {"system": "a2c"},
    "a3c": {"system": "a3c"},
}
CORRECTIONS = ("none", "epsilon", "clipped-is", "one-step", "v-trace", "ppo")
PAIRS = set(itertools.product(SYSTEMS, CORRECTIONS)) - {("a3c", "ppo")}  # A3C has no --clip-ratio


def settings_of(system, correction):
    return SETTINGS | SYSTEMS[system] | {"correction": correction, "clip_ratio": 0.2 * (correction == "ppo")}


@pytest.mark.parametrize(("system", "correction"), sorted(PAIRS))
def test_every_system_takes_every_correction(system, correction):
    config = Config(env_id="CartPole-v1", **settings_of(system, correction))
    assert config.correction_used == correction


# Not every pair: the systems share the loss and differ in how columns get to it, and V-trace reads all
# columns that any correction reads. Tests of the losses are in tests/algorithms/test_corrections.py, of the
# columns in tests/experience/test_columns.py, and of equal updates in the three systems, with V-trace too, in
# test_a3c.py.
@pytest.mark.parametrize(
    ("env_id", "system", "correction"),
    [
        *(("CartPole-v1", "serial", correction) for correction in CORRECTIONS),
        ("CartPole-v1", "ga3c", "v-trace"),
        ("CartPole-v1", "ga3c", "ppo"),
        ("CartPole-v1", "a2c", "v-trace"),
        ("CartPole-v1", "a2c", "ppo"),
        ("CartPole-v1", "a3c", "v-trace"),
        ("MinAtar/Breakout-v1", "ga3c", "v-trace"),
    ],
)
def test_it_trains(tmp_path, env_id, system, correction):
    config = Config(env_id=env_id, run_dir=str(tmp_path / "run"), **settings_of(system, correction))
    training, run = new_training(config, ["train"], print)
    try:
        summary = training.run(lambda row: None)
    finally:
        run.close()
    assert summary["ended"] == "steps"
    assert summary["updates"] > 10
    assert summary["skipped_updates"] == 0

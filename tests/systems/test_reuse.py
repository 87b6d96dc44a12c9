"""Batches that are trained on in several epochs, lambda-returns, and a queue that stays below one batch."""

import collections

import numpy as np
import pytest
from checks import (
    GAMMA,
    HeldBack,
    KeepingModel,
    Killed,
    check_nothing_lost_or_repeated,
    run_counting,
    slow_updates,
)

from ga3c_tf.config import Config
from ga3c_tf.host.machine import usable_cores
from ga3c_tf.runner import new_training
from ga3c_tf.systems.a2c import A2C
from ga3c_tf.systems.ga3c.system import GA3C
from ga3c_tf.systems.serial import SerialGA3C

EPOCHS = 3
REUSE = {"epochs": EPOCHS, "clip_ratio": 0.2, "minibatch_size": 15, "t_max": 8, "min_training_batch": 30}


GREEDY = {"algorithm": "pqn", "epsilon": 0.0, "epsilon_end": 0.0}
"""PQN whose agents follow the policy of the checking model."""


@pytest.mark.parametrize("algorithm", [{"clip_ratio": 0.2}, GREEDY], ids=["ppo", "pqn"])
@pytest.mark.parametrize(("kind", "system"), [(GA3C, "ga3c"), (SerialGA3C, "ga3c"), (A2C, "a2c")])
def test_every_step_is_trained_on_once_an_epoch(tmp_path, monkeypatch, kind, system, algorithm):
    settings = {"epochs": EPOCHS, "minibatch_size": 15, "t_max": 8, "min_training_batch": 30, **algorithm}
    model, training, summary = run_counting(tmp_path, monkeypatch, kind, system=system, **settings)
    rows = [row for batch in model.batches for row in batch]
    assert set(collections.Counter(place for place, _, _ in rows).values()) == {EPOCHS}
    check_nothing_lost_or_repeated(sorted(set(rows)), agents=6)
    assert {len(batch) for batch in model.batches} <= set(range(12, 24))
    assert summary["updates"] == len(model.batches) == training.session.stats.updates
    assert summary["trained_steps"] == len(rows)


@pytest.mark.parametrize("algorithm", [{"advantage": "gae"}, GREEDY], ids=["gae", "pqn"])
@pytest.mark.parametrize(("kind", "system"), [(GA3C, "ga3c"), (SerialGA3C, "ga3c"), (A2C, "a2c")])
def test_the_returns_are_lambda_returns(tmp_path, monkeypatch, kind, system, algorithm):
    settings = {"system": system, "gae_lambda": 0.5, "t_max": 8, **algorithm}
    model, _, _ = run_counting(tmp_path, monkeypatch, kind, model=KeepingModel, steps=1000, **settings)
    for batch, _ in model.whole:
        starts = np.cumsum(batch.lengths) - batch.lengths
        for start, length, bootstrap in zip(starts, batch.lengths, batch.bootstrap_values, strict=True):
            steps = slice(start, start + length)
            values = np.append(batch.mu_values[steps], bootstrap)
            errors = batch.rewards[steps] + GAMMA * values[1:] - values[:-1]
            advantages = [
                sum((GAMMA * 0.5) ** (k - i) * errors[k] for k in range(i, length)) for i in range(length)
            ]
            np.testing.assert_allclose(batch.returns[steps] - values[:-1], advantages, rtol=1e-4, atol=1e-5)


def test_agents_wait_when_one_batch_waits(tmp_path, monkeypatch):
    """Each of 16 agents may have a segment in the queue; but 2 segments are a batch."""
    settings = {
        **REUSE,
        "min_training_batch": 15,
        "num_trainers": 1,
        "num_predictors": 1,
        "max_prediction_batch": 1,
    }
    model, training, _ = run_counting(tmp_path, monkeypatch, HeldBack, steps=1000, num_agents=16, **settings)
    assert training.system.stood_still
    assert 2 <= training.system.waiting <= 8  # a few may be on their way when it holds
    check_nothing_lost_or_repeated(sorted({row for batch in model.batches for row in batch}), agents=16)


def test_processes_that_die_while_checkpoints_are_written_hold_nothing_up(tmp_path, monkeypatch):
    """Predictors wait for trainers here, and trainers for the checkpoint."""
    slow_updates(monkeypatch, 0.02)
    monkeypatch.setattr(Killed, "kills", 6)
    settings = {
        **REUSE,
        "num_agents": 16,
        "agent_processes": 4,
        "steps": None,
        "max_failures": 100,
    }
    _, _, summary = run_counting(tmp_path, monkeypatch, Killed, checkpoint_minutes=0.001, **settings)
    assert summary["ended"] == "all again" and summary["replaced_processes"] == 6


def test_updates_may_use_the_cores_that_waiting_agents_leave(tmp_path, monkeypatch):
    threads = []
    configure = "ga3c_tf.model.device.configure_device"
    monkeypatch.setattr(
        configure, lambda device, intra_op_threads: threads.append(intra_op_threads) or "/CPU:0"
    )
    for number, settings in enumerate([{}, {"epochs": 2, "clip_ratio": 0.1}]):
        config = Config(
            env_id="CartPole-v1", seed=1, num_agents=1, run_dir=str(tmp_path / str(number)), **settings
        )
        _, folder = new_training(config, ["train"], print)
        folder.close()
    assert threads == [None, usable_cores()]

"""Whole runs of Q-learning: a task whose values are known, the same bits again, and every command."""

import json

import gymnasium
import numpy as np
import onnxruntime
import pytest
from commands import ga3c_tf, output_of
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from ga3c_tf.config import Config
from ga3c_tf.model.tensorflow import keras
from ga3c_tf.runner import new_training
from ga3c_tf.runs.csv_rows import METRIC_COLUMNS, read_columns
from ga3c_tf.trained.exporting.export import SUFFIXES

CELLS = 5
GAMMA = 0.9
SMALL = {"algorithm": "pqn", "num_agents": 4, "seed": 1}


class Corridor(gymnasium.Env):
    """Cells in a row: action 1 goes right, 0 left, and the step out of the last cell gives 1 and ends."""

    observation_space = gymnasium.spaces.Box(0, 1, (CELLS,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = int(self.np_random.integers(CELLS))
        return np.eye(CELLS, dtype=np.float32)[self.cell], {}

    def step(self, action):
        self.cell = max(0, self.cell + (1 if action else -1))
        ended = self.cell == CELLS
        state = np.eye(CELLS, dtype=np.float32)[min(self.cell, CELLS - 1)]
        return state, float(ended), ended, False, {}


gymnasium.register("Corridor-v0", Corridor)


def trained(folder, **settings):
    config = Config(run_dir=str(folder), **SMALL | settings)
    training, run = new_training(config, ["train"], print)
    summary = training.run()
    run.close()
    return training.session.model, summary


# with lambda 0, so that random actions do not count among the rewards after an action
OF_PQN = {"algorithm": "pqn", "gae_lambda": 0.0, "min_training_batch": 63, "epochs": 2}
OF_DQN = {"algorithm": "dqn", "replay_size": 2000, "replay_batch": 64, "target_period": 50}


@pytest.mark.parametrize("algorithm", [OF_PQN, OF_DQN], ids=["pqn", "dqn"])
def test_the_values_of_a_corridor_are_learned(tmp_path, algorithm):
    settings = {"gamma": GAMMA, "epsilon_end": 1.0, "t_max": 8, "loss_reduction": "mean"}
    settings |= {"optimizer": "adam", "learning_rate": 0.01, "learning_rate_end": 0.0, "anneal_fraction": 1.0}
    settings |= {"env_id": "Corridor-v0", "system": "serial", "network": "mlp", "steps": 16_000, **algorithm}
    model, _ = trained(tmp_path / "run", **settings)
    right = GAMMA ** np.arange(CELLS - 1, -1, -1)
    left = GAMMA * right[np.maximum(np.arange(CELLS) - 1, 0)]
    learned = model.network(np.eye(CELLS, dtype=np.float32)).numpy()
    np.testing.assert_allclose(learned, np.stack([left, right], axis=1), atol=0.05)


TWICE = {"epochs": 2, "minibatch_size": 10}
SAMPLED = {"algorithm": "dqn", "replay_start": 100, "priority_exponent": 0.6, "n_step": 3}


@pytest.mark.parametrize("algorithm", [TWICE, SAMPLED], ids=["pqn", "dqn"])
def test_serial_runs_have_the_same_weights_to_the_last_bit(tmp_path, algorithm):
    settings = {"system": "serial", "env_id": "CartPole-v1", "steps": 600, "epsilon_steps": 400, **algorithm}
    weights = []
    for name in ("one", "other"):
        model, _ = trained(tmp_path / name, **settings)
        weights.append([weight.numpy() for weight in model.network.weights])
    for one, other in zip(*weights, strict=True):
        np.testing.assert_array_equal(one, other)


def test_every_agent_has_an_epsilon_of_its_own(tmp_path):
    """The least likely action of two has half of it."""
    settings = {"system": "serial", "env_id": "CartPole-v1", "steps": 40, "num_agents": 4}
    ape_x = {"epsilon": 0.4, "epsilon_end": 0.4, "epsilon_spread": 7.0}
    config = Config(run_dir=str(tmp_path / "run"), **SMALL | settings | ape_x)
    training, run = new_training(config, ["train"], print)
    training.run()
    run.close()
    expected = [0.4 ** (1 + 7 * agent / 3) / 2 for agent in range(4)]
    np.testing.assert_allclose(training.session.memory.policy.min(axis=1), expected, rtol=1e-3)


@pytest.mark.parametrize(("system", "algorithm"), [("ga3c", TWICE), ("a2c", TWICE), ("ga3c", SAMPLED)])
def test_lag_and_metrics_are_measured(tmp_path, system, algorithm):
    settings = {"system": system, "env_id": "CartPole-v1", "steps": 3000, "log_seconds": 0.5}
    trained(tmp_path / "run", **settings, **algorithm)
    metrics = read_columns(tmp_path / "run" / "metrics.csv", METRIC_COLUMNS)
    updated = metrics["tps"] > 0
    assert updated.any() and metrics["policy_lag_mean"][updated].max() >= 0.5  # minibatches of one batch
    for name in ("q_loss", "q_value", "policy_lag_states"):
        assert np.isfinite(metrics[name][updated]).all()
    if algorithm is SAMPLED:
        assert metrics["sample_age"][updated].max() > 10  # of up to 3,000 steps
        # Over the whole run: training catches up in one row with what came in while it compiled in another.
        trained_states = metrics["updates"][-1] * Config().replay_batch
        intensity = trained_states / (metrics["agent_steps"][-1] - algorithm["replay_start"])
        assert 0.8 * Config().training_intensity < intensity <= Config().training_intensity
        by_rows = np.nansum(metrics["training_intensity"] * np.diff(metrics["agent_steps"], prepend=0))
        assert by_rows == pytest.approx(trained_states, rel=0.05)
    for name in ("policy_loss", "value_loss", "entropy", "kl"):
        assert np.isnan(metrics[name]).all()


@pytest.mark.slow  # 40 s
@pytest.mark.timeout(600)  # ten processes with TensorFlow, on a machine that may be slow
@pytest.mark.parametrize(
    ("algorithm", "options"), [("pqn", []), ("dqn", ["--replay-start", 200, "--save-replay", "--dueling"])]
)
def test_every_command_takes_a_run(tmp_path, algorithm, options):
    run = tmp_path / "run"
    words = ["--algorithm", algorithm, "--agents", 2, "--steps", 3000, "--seed", 1, "--compile", "on"]
    words += ["--log-seconds", 0.02]
    done = ga3c_tf("train", "CartPole-v1", "--run-dir", run, *words, *options)
    assert done.returncode == 0 and "the model is not compiled" not in done.stderr
    recorded = json.loads((run / "config.json").read_text())
    assert (recorded["algorithm"], recorded["network"]) == (algorithm, "mlp")
    output_of("resume", run, "--steps", 4000)
    events = EventAccumulator(str(run))
    events.Reload()
    assert all(np.isfinite(event.value) for event in events.Scalars("metrics/q_value"))
    greedy, sampled = (
        json.loads(output_of("evaluate", run, "--episodes", 3, way, "--json"))["mean"]
        for way in ("--greedy", "--sample")
    )
    assert greedy == sampled > 0
    output_of("plot", run)
    output_of("play", run, "--video", tmp_path / "episodes.gif", "--episodes", 1)
    for form, suffix in SUFFIXES.items():
        output_of("export", run, "--format", form, "--output", tmp_path / f"agent{suffix}")
    outputs = json.loads((tmp_path / "agent.keras.json").read_text())["outputs"]
    assert [*outputs] == ["policy", "value", "q_values"]
    exported = keras.saving.load_model(tmp_path / "agent.keras")
    found = exported(np.eye(4, dtype=np.float32))
    q_values = found["q_values"].numpy()
    np.testing.assert_allclose(found["value"], q_values.max(axis=1))
    np.testing.assert_array_equal(found["policy"], np.eye(2)[q_values.argmax(axis=1)])
    session = onnxruntime.InferenceSession(tmp_path / "agent.onnx", providers=["CPUExecutionProvider"])
    by_onnx = session.run(["q_values", "policy"], {session.get_inputs()[0].name: np.eye(4, dtype=np.float32)})
    np.testing.assert_allclose(by_onnx[0], q_values, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(by_onnx[1], found["policy"])
    output_of("publish", run, tmp_path / "published")
    output_of("evaluate", tmp_path / "published", "--episodes", 1)
    measured = json.loads(output_of("bench", "--env", "CartPole-v1", *words[:4], "--seconds", 2, "--json"))
    assert measured

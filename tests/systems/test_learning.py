"""Learning is proved on tasks of seconds; the longer ones are marked slow and named in the README."""

import json
import re
import signal
import subprocess

import pytest
import warm
from commands import output_of


def train_and_evaluate(folder, env_id, *options, seed, episodes=20):
    """Mean score of `episodes` sampled episodes after a training with these options."""
    output_of("train", env_id, "--run-dir", folder, "--seed", seed, *options)
    return json.loads(output_of("evaluate", folder, "--episodes", episodes, "--seed", seed, "--json"))["mean"]


@pytest.mark.timeout(600)
def test_cartpole_is_learned_by_the_asynchronous_system(tmp_path):
    """It is stopped as soon as the training score shows that it has learned: after 10 s on a fast machine.

    The evaluation shows that the weights saved are those that learned. A checkpoint in the middle of training
    may score half of the rolling mean, so the limit is only twice the random policy's 22.
    """
    options = ["--run-dir", tmp_path / "run", "--seed", 1, "--steps", 600_000, "--log-seconds", 1]
    training = warm.Popen(["train", "CartPole-v1", *options], stdout=subprocess.PIPE)
    for line in training.stdout:
        score = re.search(r"RScore: +([\d.]+)", line)
        if score and float(score[1]) >= 180:
            training.send_signal(signal.SIGINT)
            break
    training.communicate()
    scores = output_of(
        "evaluate", tmp_path / "run", "--checkpoint", "latest", "--episodes", 20, "--seed", 1, "--json"
    )
    assert score and float(score[1]) >= 180
    assert json.loads(scores)["mean"] >= 45


@pytest.mark.slow
def test_cartpole_is_learned_by_the_serial_system(tmp_path):
    options = ["--system", "serial", "--steps", 100_000, "--agents", 8, "--min-training-batch", 0]
    assert train_and_evaluate(tmp_path / "run", "CartPole-v1", *options, seed=1) >= 100


@pytest.mark.slow  # half a minute each
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("system", "agents"), [("a2c", 8), ("a3c", 4)])
def test_cartpole_is_learned_by_the_systems_compared(tmp_path, system, agents):
    options = ["--system", system, "--steps", 100_000, "--agents", agents]
    assert train_and_evaluate(tmp_path / "run", "CartPole-v1", *options, seed=1) >= 100  # random policy: 22


@pytest.mark.slow  # half a minute each of pqn, 2 minutes of dqn
@pytest.mark.timeout(600)
@pytest.mark.parametrize("preset", ["pqn", "dqn"])
@pytest.mark.parametrize(
    ("seed", "system"), [(1, "ga3c"), (2, "ga3c"), (3, "ga3c"), (1, "a2c"), (1, "serial")]
)
def test_cartpole_is_solved_by_q_learning(tmp_path, preset, system, seed):
    options = ["--preset", preset, "--system", system]
    assert train_and_evaluate(tmp_path / "run", "CartPole-v1", *options, seed=seed) >= 475


@pytest.mark.slow  # 4 minutes a seed
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_cartpole_is_solved(tmp_path, seed):
    assert train_and_evaluate(tmp_path / "run", "CartPole-v1", "--minutes", 3, seed=seed) >= 400


@pytest.mark.slow  # 10 minutes
@pytest.mark.timeout(1200)
def test_minatar_breakout_is_learned(tmp_path):
    pytest.importorskip("minatar")
    score = train_and_evaluate(tmp_path / "run", "MinAtar/Breakout-v1", "--minutes", 9, seed=1, episodes=100)
    assert score >= 3  # random policy: about 0.5

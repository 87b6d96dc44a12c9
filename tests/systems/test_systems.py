"""All systems: with corrections of policy lag, interrupted, resumed, killed and evaluated."""

import itertools
import json
import os
import signal

import pytest
from checks import freeze_agents, send_two_signals, start_training, wait_for_the_end_of
from commands import output_of

from ga3c_tf.config import Config
from ga3c_tf.runner import new_training
from ga3c_tf.runs.csv_rows import EPISODE_COLUMNS, METRIC_COLUMNS, read_rows
from ga3c_tf.trained.evaluation import evaluate
from ga3c_tf.trained.policies import TrainedAgent

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


@pytest.mark.parametrize("system", ["a2c", pytest.param("a3c", marks=pytest.mark.slow)])
def test_a_run_is_interrupted_resumed_and_evaluated(tmp_path, system):
    run = tmp_path / "run"
    with start_training(run, "--system", system, "--agents", 3) as (process, children):
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate()
        assert process.returncode == 130
        assert "\ninterrupted: " in output and "Traceback" not in output
        wait_for_the_end_of(children)
    saved = max(int(path.name) for path in (run / "checkpoints").glob("0*"))
    before = read_rows(run / "episodes.csv", EPISODE_COLUMNS)
    summary = json.loads(output_of("resume", run, "--steps", saved + 2000, "--json").splitlines()[-1])
    assert summary["ended"] == "steps" and saved + 2000 <= summary["agent_steps"]
    episodes = read_rows(run / "episodes.csv", EPISODE_COLUMNS)
    assert episodes[: len(before)] == before and len(episodes) == summary["episodes"] > len(before)
    metrics = read_rows(run / "metrics.csv", METRIC_COLUMNS)
    for column in ("time_s", "agent_steps", "updates"):
        values = [float(row[column]) for row in metrics]
        assert all(later >= earlier for earlier, later in itertools.pairwise(values)) and values[-1] > 0
    lags = {float(row["policy_lag_mean"]) for row in metrics if row["policy_lag_mean"]}
    assert lags == {0.0} if system == "a2c" else max(lags) > 0
    assert {row["agents"] for row in metrics} == {"3"}
    assert any(row["kl"] for row in metrics) == (system != "a3c") and any(row["floored"] for row in metrics)
    agent = TrainedAgent(run, "latest", greedy=False, seed=0, device="/CPU:0", warn=print)
    assert agent.agent_steps == summary["agent_steps"] and len(evaluate(agent, 3, seed=0).scores) == 3


@pytest.mark.slow
def test_killing_the_server_of_a3c_ends_the_agents(tmp_path):
    with start_training(tmp_path / "run", "--system", "a3c", "--agents", 2) as (process, children):
        process.kill()
        process.wait()
        wait_for_the_end_of(children)


@pytest.mark.slow
def test_a_second_signal_ends_a3c_at_once(tmp_path):
    with start_training(tmp_path / "run", "--system", "a3c", "--agents", 2) as (process, children):
        freeze_agents(process.pid, children)
        send_two_signals(process)
        process.wait()
        assert process.returncode == 143
        wait_for_the_end_of(children)

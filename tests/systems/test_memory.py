"""Networks with memory in all systems: what is carried from state to state, and that they train."""

import helpers
import numpy as np
import pytest
from checks import KeepingModel, Killed, run_counting
from commands import ga3c_tf as run_command
from commands import output_of

import ga3c_tf
import ga3c_tf.systems.ga3c.agents
from ga3c_tf.config import Config
from ga3c_tf.experience.columns import NO_VERSION
from ga3c_tf.experience.divergence import segment_lag
from ga3c_tf.runner import new_training
from ga3c_tf.runs.csv_rows import METRIC_COLUMNS, read_columns
from ga3c_tf.systems.a2c import A2C
from ga3c_tf.systems.ga3c.system import GA3C
from ga3c_tf.systems.serial import SerialGA3C

AT_THE_START = np.array([-1, 7], np.float32)


def carry_before(identity, episode, step):
    """The carry of the carrying model before a step: the number of the last one, and which episode it is."""
    if step == 0:
        return AT_THE_START
    return np.array([step - 1, identity % 1000 * 1000 + episode], np.float32)


class CarryingModel(KeepingModel):
    """Checks the carry that it gets with each state, and gives one that says which state it was."""

    initial_carry = AT_THE_START

    def predict(self, states, carry):
        prediction = super().predict(states)
        places = [helpers.decode(state) for state in states]
        expected = [carry_before(*place) for place in places]
        if not np.array_equal(carry, expected):
            raise AssertionError(f"carries {carry.tolist()} at {places}")
        after = [carry_before(identity, episode, step + 1) for identity, episode, step in places]
        return prediction._replace(carry=np.array(after, np.float32))


class KilledOnce(Killed):
    """Its successors begin without memory, and the carry of the dead is in no batch."""

    kills = 1


KILLED = {"num_agents": 4, "agent_processes": 2, "steps": None, "minutes": 2.0, "max_failures": 100}
HERE_AND_THERE = {"num_agents": 2, "agent_processes": 2, "remote_agents": 4, "agents_per_actor": 2}


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (GA3C, {"min_training_batch": 12}),
        (GA3C, {"train_last_transition": False}),
        (GA3C, HERE_AND_THERE),
        (KilledOnce, KILLED),
        (A2C, {"lag": 2}),
        (SerialGA3C, {}),
    ],
)
def test_memory_begins_with_an_episode_and_lasts_as_long(tmp_path, monkeypatch, kind, settings):
    monkeypatch.setattr(ga3c_tf.systems.ga3c.agents, "run_bridge", helpers.run_bridge_without_ray)
    model, _, _ = run_counting(tmp_path, monkeypatch, kind, model=CarryingModel, **settings)
    firsts = set()
    for batch, version in model.whole:
        starts = np.cumsum(batch.lengths) - batch.lengths
        for number, start in enumerate(starts):
            place = helpers.decode(batch.states[start])
            np.testing.assert_array_equal(batch.carries[number], carry_before(*place))
            before = batch.carry_versions[number]
            assert (before == NO_VERSION) == (place[2] == 0)
            assert before <= batch.versions[start] < version
            firsts.add(place[2])
    assert {0, 5, 10} <= firsts
    if kind is A2C:  # of the round before; the first two rounds after the lag have the same version
        batch, version = model.whole[-1]
        assert segment_lag(batch, version - 1).carry_age == 3


def train(folder, **settings):
    """Train on CartPole without velocities, or another environment; return the summary and the training."""
    settings = {"env_id": "GA3C/CartPoleMemory-v0", "network": "lstm", "num_agents": 2, **settings}
    config = Config(run_dir=str(folder), log_seconds=0.2, seed=1, **settings)
    training, run = new_training(config, ["train"], print)
    try:
        return training.run(lambda row: None), training
    finally:
        run.close()


@pytest.mark.parametrize(
    "settings",
    [
        {"correction": "v-trace", "max_training_queue": 4, "minibatch_size": 10},
        pytest.param({"system": "a3c"}, marks=pytest.mark.slow),  # each agent starts TensorFlow
        pytest.param({"system": "a2c", "env_id": "MinAtar/Breakout-v1"}, marks=pytest.mark.slow),
    ],
)
def test_it_trains(tmp_path, settings):
    summary, _ = train(tmp_path / "run", steps=400, **settings)
    assert summary["updates"] > 10 and summary["skipped_updates"] == 0
    metrics = read_columns(tmp_path / "run" / "metrics.csv", METRIC_COLUMNS)
    ages = metrics["carry_age"][np.isfinite(metrics["carry_age"])]
    assert len(ages) and (ages >= 0).all()
    if settings.get("system") == "a2c":  # the carry is of the round before, the policy of this one
        assert (ages == 1).all() and np.nanmax(metrics["total_variation"]) < 1e-5


def test_a_seed_gives_the_same_weights_again(tmp_path):
    """With PPO, whose minibatches are shuffled segments."""
    settings = {"clip_ratio": 0.2, "advantage": "gae", "epochs": 2, "minibatch_size": 10}
    weights = []
    for name in ("one", "two"):
        summary, training = train(tmp_path / name, system="serial", steps=300, **settings)
        assert summary["updates"] > 10 and summary["skipped_updates"] == 0
        weights.append(training.session.model.network.get_weights())
    for one, other in zip(*weights, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run folder of a network with memory."""
    folder = tmp_path_factory.mktemp("memory") / "run"
    words = ["--network", "lstm", "--steps", 300, "--agents", 2, "--seed", 1, "--system", "serial"]
    output_of("train", "GA3C/CartPoleMemory-v0", "--run-dir", folder, *words)
    return folder


def test_a_trained_agent_remembers_the_episode_until_it_is_reset(trained):
    agent = ga3c_tf.load_agent(trained, device="cpu")
    model = agent._trained.model
    states = np.random.default_rng(0).normal(size=(4, 2)).astype(np.float32)
    carry = model.initial_carry[None]
    for state in states:
        carry = model.predict(state[None], carry).carry
        agent.act(state)
        np.testing.assert_array_equal(agent._trained._carry, carry)
    agent.reset()
    agent.act(states[0])
    first = model.predict(states[:1], model.initial_carry[None])
    np.testing.assert_array_equal(agent._trained._carry, first.carry)
    np.testing.assert_array_equal(agent.policy(states[:1])[0], first.policy)


def test_evaluations_and_videos_are_of_episodes_that_begin_without_memory(trained, tmp_path):
    agent = ga3c_tf.load_agent(trained, device="cpu")
    predict = agent._trained.model.predict
    begun = []

    def watch(states, carry):
        begun.append((~carry.any(axis=1)).sum())
        return predict(states, carry)

    agent._trained.model.predict = watch
    scores = agent.evaluate(episodes=13)
    assert sum(begun) == 13 == len(scores.scores)
    begun.clear()
    assert agent.record(tmp_path / "two.gif", episodes=2) and sum(begun) == 2
    assert agent.evaluate(episodes=13).scores == scores.scores


def test_a_network_with_memory_is_refused_by_q_learning_in_one_line():
    done = run_command("train", "CartPole-v1", "--network", "lstm", "--algorithm", "pqn")
    assert done.returncode == 2
    assert (
        "--network lstm cannot be combined with --algorithm pqn: its networks have no memory" in done.stderr
    )

"""The Python API: train, resume, evaluate, load an agent; functions as environments, networks and losses."""

import gc
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import warm
from commands import ga3c_tf as command
from gymnasium.envs.classic_control import CartPoleEnv
from helpers import train_and_evaluate

import ga3c_tf
from ga3c_tf.algorithms.actor_critic import losses
from ga3c_tf.config import Config
from ga3c_tf.environments.statistics import observation_statistics
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.networks import build_network
from ga3c_tf.model.tensorflow import keras
from ga3c_tf.runs.checkpoint_folders import checkpoint_folders
from ga3c_tf.runs.folder import RunFolder
from ga3c_tf.systems.ga3c.agents import AgentProcesses
from ga3c_tf.systems.ga3c.system import GA3C

SMALL = {"preset": "smoke", "num_agents": 2, "device": "cpu", "seed": 1, "progress": False}


@pytest.fixture
def run(smoke_run, tmp_path):
    """A short CartPole run that has reached its budget, in a folder of its own."""
    return ga3c_tf.Run(shutil.copytree(smoke_run[0], tmp_path / "run"))


def test_importing_the_package_loads_nothing_heavy():
    program = "import sys, ga3c_tf; print(*{'tensorflow', 'numpy', 'gymnasium', 'click'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "\n"


def test_a_resumed_serial_run_has_other_global_random_numbers(tmp_path, capsys):
    """Its environment draws the score of each episode from the global generator."""
    settings = {**SMALL, "system": "serial", "run_dir": str(tmp_path / "run"), "callbacks": None}
    before = random.getstate(), str(np.random.get_state())  # noqa: NPY002
    run = ga3c_tf.train("helpers:Lottery-v0", steps=40, **settings)
    first = run.episodes()["score"]
    both = run.resume(steps=80, progress=False).episodes()["score"]
    assert not capsys.readouterr().out
    # This program keeps its own.
    assert (random.getstate(), str(np.random.get_state())) == before  # noqa: NPY002
    assert 40 <= len(first) < len(both) and not set(first) & set(both[len(first) :])


@pytest.mark.parametrize("system", ["ga3c", "a2c"])
def test_normalized_observations_are_measured_before_the_training_and_kept(tmp_path, system):
    settings = {**SMALL, "system": system, "normalize_observations": True}
    run = ga3c_tf.train("CartPole-v1", run_dir=str(tmp_path / "run"), steps=500, **settings)
    run = run.resume(steps=1000, progress=False)
    config = ga3c_tf.Config.from_json((tmp_path / "run" / "config.json").read_text())
    mean, variance = observation_statistics(config)
    layer = ga3c_tf.load_agent(run.path)._trained.model.network.get_layer("standardize")
    np.testing.assert_allclose(layer.mean, mean, rtol=1e-6)
    np.testing.assert_allclose(layer.deviation, np.sqrt(variance + 1e-5), rtol=1e-6)


@pytest.mark.parametrize(
    "system",
    [
        {"system": "ga3c"},
        {"system": "serial"},
        pytest.param({"system": "a2c"}, marks=pytest.mark.slow),
        pytest.param({"system": "a3c"}, marks=pytest.mark.slow),
    ],
)
def test_every_system_ends_at_the_target_score_and_may_be_given_a_higher_one(tmp_path, system):
    settings = {**SMALL, **system, "rolling_episodes": 5, "run_dir": str(tmp_path / "run")}
    run = ga3c_tf.train("CartPole-v1", target_score=9.0, steps=100_000, **settings)
    assert run.summary["ended"] == "target_score" and run.summary["episodes"] < 20
    with pytest.raises(
        ga3c_tf.UserError, match=r"has reached its target score, 9; give a larger --target-score"
    ):
        run.resume()
    run = run.resume(target_score=30.0, progress=False)
    assert 30 <= run.summary["rolling_score"] == np.mean(run.episodes()["score"][-5:])
    more = run.summary["agent_steps"] + 500
    with pytest.raises(
        ga3c_tf.UserError, match=r"has reached its target score, 30; .* --set target_score=none"
    ):
        run.resume(steps=more)
    assert run.resume(target_score=None, steps=more, progress=False).summary["ended"] == "steps"


def test_a_run_is_trained_continued_evaluated_and_loaded(tmp_path, capsys):
    settings = {**SMALL, "progress": True, "log_seconds": 0.2}
    run = ga3c_tf.train("CartPole-v1", run_dir=str(tmp_path / "run"), steps=1000, **settings)
    assert run.summary["ended"] == "steps" and run.summary["agent_steps"] >= 1000
    assert re.search(r"RScore: +[\d.]+", capsys.readouterr().out)
    assert run.metrics()["agent_steps"][-1] > 0
    assert len(run.episodes()["score"]) == run.summary["episodes"]
    assert run.episodes()["length"].sum() <= run.summary["agent_steps"]
    again = run.resume(steps=2000, progress=False)
    assert again.summary["agent_steps"] >= 2000 and again.path == run.path
    scores = again.evaluate(episodes=4, seed=3)
    assert (
        len(scores.scores) == 4
        and scores.mean == np.mean(scores.scores)
        and "4 whole episodes" in scores.protocol
    )
    assert scores.interval_95[0] <= scores.mean <= scores.interval_95[1]
    assert again.evaluate(episodes=4, seed=3) == scores
    assert "most probable action" in again.evaluate(episodes=1, greedy=True).protocol
    sampling = ga3c_tf.load_agent(run.path, seed=7)
    assert sampling.evaluate(episodes=4, seed=3).scores == sampling.evaluate(episodes=4, seed=3).scores
    agent = ga3c_tf.load_agent(run.path, checkpoint="latest", greedy=True)
    environment = agent.make_environment()
    state, _ = environment.reset(seed=0)
    policy, values = agent.policy(state[None])
    assert agent.act(state) == policy.argmax() and values.shape == (1,) and agent.agent_steps >= 2000


def test_trainings_one_after_another_leave_no_files_open(tmp_path):
    gc.disable()  # a script may train many times before the collector comes to what has ended
    try:
        ga3c_tf.train("CartPole-v1", run_dir=str(tmp_path / "0"), steps=1000, **SMALL)
        opened = len(os.listdir("/proc/self/fd"))
        for number in (1, 2):
            run = ga3c_tf.train("CartPole-v1", run_dir=str(tmp_path / str(number)), steps=1000, **SMALL)
        run.resume(steps=2000, progress=False)
        assert len(os.listdir("/proc/self/fd")) <= opened + 2
    finally:
        gc.enable()


@pytest.mark.parametrize(("dtype", "told"), [(np.float32, True), (np.uint8, False)])
def test_images_that_become_vectors_are_told(tmp_path, capsys, dtype, told):
    class Images(CartPoleEnv):
        def __init__(self):
            super().__init__()
            self.observation_space = gymnasium.spaces.Box(0, 255, (40, 40, 3), dtype)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return np.zeros((40, 40, 3), dtype), {}

        def step(self, action):
            _, *results = super().step(action)
            return np.zeros((40, 40, 3), dtype), *results

    ga3c_tf.train(Images, **{**SMALL, "run_dir": str(tmp_path / "run"), "steps": 10})
    assert ("become vectors of 4,800 numbers; if they are images, " in capsys.readouterr().err) == told


def shared(env):
    return lambda: env


def registered(env):
    gymnasium.register("Ga3cTest/Shared-v0", entry_point=lambda: env)
    return "Ga3cTest/Shared-v0"


@pytest.mark.parametrize("pass_on", [shared, registered])
@pytest.mark.parametrize("wrapped", [False, True])
def test_one_environment_for_all_agents_is_refused(tmp_path, pass_on, wrapped):
    """Each agent would play in the episodes of the others."""
    env = gymnasium.make("CartPole-v1")
    settings = {**SMALL, "run_dir": str(tmp_path / "run")}
    with pytest.raises(
        ga3c_tf.UserError, match=r"returned the same environment twice; it must make a new one"
    ):
        ga3c_tf.train(pass_on(env if wrapped else env.unwrapped), steps=10, **settings)
    assert not (tmp_path / "run").exists()
    gymnasium.registry.pop("Ga3cTest/Shared-v0", None)


@pytest.mark.parametrize("system", [{"system": "serial"}, {"system": "ga3c"}])
def test_an_environment_may_change_the_working_folder(tmp_path, monkeypatch, system):
    """It finds its files there, and the program finds its own where it was."""
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    (tmp_path / "there" / "level").touch()
    monkeypatch.chdir(tmp_path / "here")

    class Elsewhere(CartPoleEnv):
        def __init__(self, render_mode=None):
            super().__init__(render_mode=render_mode)
            os.chdir(tmp_path / "there")

        def step(self, action):
            assert os.path.exists("level")
            return super().step(action)

    settings = {**SMALL, **system, "normalize_observations": True, "steps": 200}
    run = ga3c_tf.train(lambda render_mode=None: Elsewhere(render_mode), run_dir="run", **settings)
    run = run.resume(steps=400, progress=False)
    run.evaluate(episodes=2)
    assert run.evaluate(episodes=2, max_episode_steps=3).protocol.endswith("2 of them ended after 3 steps")
    agent = run.agent()
    agent.record("game.gif")
    assert agent.export("policy.keras", "keras")["training"]["commits"]
    assert os.getcwd() == str(tmp_path / "here") and os.listdir(tmp_path / "there") == ["level"]
    assert {"run", "game.gif", "policy.keras"} <= set(os.listdir(tmp_path / "here"))


@pytest.mark.parametrize("system", ["ga3c", pytest.param("a3c", marks=pytest.mark.slow)])
def test_an_environment_may_start_processes(tmp_path, system):
    """Agent processes are daemonic, and multiprocessing forbids these to start processes."""
    settings = {**SMALL, "system": system, "run_dir": str(tmp_path / "run")}
    run = ga3c_tf.train("helpers:Simulated-v0", steps=200, **settings)
    assert run.summary["ended"] == "steps" and run.summary["replaced_processes"] == 0
    assert len(run.evaluate(episodes=2).scores) == 2


def test_a_worker_of_a_pool_may_train(tmp_path):
    """It is daemonic too."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        ended, mean = pool.apply(train_and_evaluate, [str(tmp_path / "run")])
    assert ended == "steps" and abs(mean) < 1.01


def test_published_weights_are_loaded_by_name(monkeypatch):
    """With oneDNN for screens, as by `ga3c-tf evaluate`."""
    enabled = []
    monkeypatch.setattr("ga3c_tf.trained.opening.enable_onednn", lambda: enabled.append("pong"))
    ga3c_tf.load_agent("minatar_breakout", device="cpu")
    assert enabled == []
    agent = ga3c_tf.load_agent("pong", device="cpu")
    assert enabled == ["pong"]
    environment = agent.make_environment()
    state, _ = environment.reset(seed=0)
    assert state.shape == (84, 84, 4) and 0 <= agent.act(state) < 6


def test_an_agent_plays_with_other_sticky_actions_and_no_op_starts_than_in_training():
    agent = ga3c_tf.load_agent("pong", device="cpu", repeat_action_probability=0.0, noop_max=9)
    protocol = agent.evaluate(episodes=1, max_episode_steps=2).protocol
    assert "sticky actions 0, at most 9 no-ops at the start" in protocol
    assert agent.make_environment().unwrapped.spec.kwargs["settings"]["noop_max"] == 9


def test_an_evaluation_ends_episodes_after_the_steps_that_are_given():
    scores = ga3c_tf.load_agent("minatar_breakout", device="cpu").evaluate(episodes=2, max_episode_steps=3)
    assert scores.protocol.endswith(", 2 of them ended after 3 steps")


class Locked(CartPoleEnv):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()


def holding_a_lock():
    lock = threading.Lock()

    def make(render_mode=None):
        with lock:
            return gymnasium.make("CartPole-v1")

    return make


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ga3c_tf.train("Nowhere-v0", minutes=1), "unknown environment 'Nowhere-v0'"),
        (lambda: ga3c_tf.train("CartPole-v1", minuts=1), "unknown setting 'minuts'; close: minutes"),
        (
            lambda: ga3c_tf.train("CartPole-v1", total_timesteps=9),
            "unknown setting 'total_timesteps'; it is steps here",
        ),
        (lambda: ga3c_tf.train("CartPole-v1", agents=4), "unknown setting 'agents'; it is num_agents here"),
        (
            lambda: ga3c_tf.train("CartPole-v1", preset="papr", steps=10),
            "unknown preset 'papr'; close: paper",
        ),
        (lambda: ga3c_tf.train(None), "train needs an environment"),
        (
            lambda: ga3c_tf.train(holding_a_lock(), steps=10),
            "object:make cannot be handed to another process",
        ),
        (lambda: ga3c_tf.load_agent("pong", seed=-1), "seed is -1; it must be at least 0"),
        (lambda: ga3c_tf.load_agent("pong", epsilon=2), "epsilon is 2; it must be from 0 to 1"),
        (lambda: ga3c_tf.load_agent("pong", epsilon=0.1), "epsilon is for Q-learning; this agent"),
        (
            lambda: ga3c_tf.load_agent("minatar_breakout", noop_max=30),
            "--noop-max is for Atari games, such as ALE/Pong-v5; this agent plays MinAtar/Breakout-v1",
        ),
        (
            lambda: ga3c_tf.load_agent("pong", device="cpu").evaluate(episodes=0),
            "episodes is 0; it must be at least 1",
        ),
        (
            lambda: ga3c_tf.train("CartPole-v1", network=3, minutes=1),
            "network is of the type int; it must be the name of a network, a keras.Model, or a function "
            "(state_shape, state_dtype, num_actions) that returns one",
        ),
        (
            lambda: ga3c_tf.train("CartPole-v1", network=keras.Sequential(), minutes=1),
            "network 'object:Sequential' cannot take float32 states of shape (4,): ValueError: ",
        ),
        (
            lambda: ga3c_tf.train(3, minutes=1),
            "env is of the type int; it must be the id of an environment, a gymnasium.Env, or a function "
            "that makes one, such as lambda render_mode=None: gymnasium.make('CartPole-v1', "
            "render_mode=render_mode)",
        ),
        (
            lambda: ga3c_tf.train(Locked(), minutes=1),
            "this Locked cannot be copied, and each process needs one of its own (TypeError: cannot pickle "
            "'_thread.lock' object); pass a function that makes one",
        ),
        (
            lambda: ga3c_tf.train(gymnasium.make_vec("CartPole-v1", 2, "sync"), minutes=1),
            "env is a SyncVectorEnv; pass one environment, whose copies the agents play in, and num_agents",
        ),
        (
            lambda: ga3c_tf.train("CartPole-v1", loss=0.5, minutes=1),
            "loss is of the type float; it must be the name of a loss, or a function (batch, config) that "
            "returns (policy loss, value loss, entropy)",
        ),
        (
            lambda: ga3c_tf.load_agent("pingpong"),
            "pingpong is not a run folder, and no published weights have this name; close: pong",
        ),
        (
            lambda: ga3c_tf.load_agent("runs/none"),
            "runs/none is not a run folder: there is no such folder; published weights are amidar, boxing, ",
        ),
        (lambda: ga3c_tf.load_agent("."), ". is not a run folder: it has no readable config.json"),
        (
            lambda: ga3c_tf.load_agent("pong", device="cpu").export("x.keras", "onnx"),
            "x.keras does not end in .onnx, as a file of the format onnx does; the format of .keras is keras",
        ),
        (
            lambda: ga3c_tf.load_agent("pong", device="cpu").export("x.h5"),
            "x.h5: no format has the suffix .h5; it must be .onnx, .keras or none",
        ),
        (lambda: ga3c_tf.resume("nowhere"), "nowhere is not a run folder"),
    ],
)
def test_bad_input_is_one_line(call, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ga3c_tf.UserError, match=re.escape(words)):
        call()
    assert not list(tmp_path.iterdir())


def test_what_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'trian'"):
        ga3c_tf.trian  # noqa: B018


def test_environment_network_and_loss_may_be_functions(tmp_path):
    called = tmp_path / "called"

    def short_pole(render_mode=None):
        with called.open("a") as stream:
            print(os.getpid(), "tensorflow" in sys.modules, file=stream)
        return gymnasium.wrappers.TimeLimit(
            gymnasium.make("CartPole-v1", render_mode=render_mode).unwrapped, 7
        )

    def tiny_network(state_shape, state_dtype, num_actions):
        spec = EnvironmentSpec(state_shape, state_dtype.name, num_actions)
        return build_network(Config(network="mlp"), spec, 5)

    def doubled(*arguments):
        policy_loss, value_loss, entropy = losses.actor_critic(*arguments)
        return policy_loss, 2.0 * value_loss, entropy

    code = {"network": tiny_network, "loss": doubled}
    run = ga3c_tf.train(short_pole, run_dir=str(tmp_path / "run"), steps=1000, **code, **SMALL)
    elsewhere = {
        line.split()[1] for line in called.read_text().splitlines() if int(line.split()[0]) != os.getpid()
    }
    assert elsewhere == {"False"}  # an agent process needs the environment only
    assert run.config.env_id == "object:short_pole" and run.config.loss == "object:doubled"
    assert run.summary["episodes"] > 50 and max(run.evaluate(episodes=5).scores) <= 7
    elsewhere = command("resume", run.path, "--steps", 2000, "--trust-code")
    assert "the environment was passed as a Python object: pass it again, from Python" in elsewhere.stderr
    with pytest.raises(ga3c_tf.UserError, match="checkpoint is 'bset'"):
        run.evaluate(checkpoint="bset")
    again = ga3c_tf.resume(run.path, steps=2000, env=short_pole, progress=False, **code)
    assert again.summary["agent_steps"] >= 2000


def test_functions_of_one_name_are_told_apart(tmp_path):
    def limited(steps):
        def make(render_mode=None):
            return gymnasium.wrappers.TimeLimit(gymnasium.make("CartPole-v1").unwrapped, steps)

        return make

    runs = [
        ga3c_tf.train(
            limited(steps), run_dir=str(tmp_path / str(steps)), **{**SMALL, "num_agents": 1}, steps=300
        )
        for steps in (5, 8)
    ]
    assert runs[0].config.env_id != runs[1].config.env_id
    assert [run.evaluate(episodes=2).scores for run in runs] == [[5.0, 5.0], [8.0, 8.0]]
    assert "pass it again" in command("evaluate", runs[0].path).stderr  # by another process
    agent = ga3c_tf.load_agent(runs[0].path, env=limited(6), device="cpu")
    assert agent.evaluate(episodes=1).scores == [6.0]


def test_agents_that_were_trained_with_functions_of_one_name_play_their_own_environments(smoke_run, tmp_path):
    """Both runs are of other processes, and their environments have one name."""

    def limited(steps):
        def make(render_mode=None):
            return gymnasium.wrappers.TimeLimit(gymnasium.make("CartPole-v1").unwrapped, steps)

        return make

    for steps in (5, 8):
        folder = shutil.copytree(smoke_run[0], tmp_path / str(steps))
        config = folder / "config.json"
        config.write_text(config.read_text().replace('"env_id": "CartPole-v1"', '"env_id": "object:make"'))
        (folder / "meta.json").unlink()  # or the settings would be refused, as edited
    agents = [ga3c_tf.load_agent(tmp_path / str(steps), env=limited(steps), device="cpu") for steps in (5, 8)]
    assert [agent.evaluate(episodes=1).scores for agent in agents] == [[5.0], [8.0]]
    again = ga3c_tf.resume(tmp_path / "5", steps=2600, env=limited(6), progress=False)
    assert again.config.env_id == "object:make"
    assert again.evaluate(episodes=1).scores == [6.0]
    assert [agent.evaluate(episodes=1).scores for agent in agents] == [[5.0], [8.0]]


def test_an_environment_that_a_script_without_a_guard_registers_is_known_to_its_agents(tmp_path):
    (tmp_path / "script.py").write_text(
        "import gymnasium, ga3c_tf\n"
        "print('begins')\n"
        "class Short(gymnasium.Wrapper):\n"
        "    def __init__(self, render_mode=None):\n"
        "        super().__init__(gymnasium.wrappers.TimeLimit(gymnasium.make('CartPole-v1').unwrapped, 5))\n"
        "gymnasium.register('Short-v0', Short)\n"
        "run = ga3c_tf.train('Short-v0', run_dir='run', steps=300, num_agents=2, device='cpu', "
        "progress=False)\n"
        "print(run.evaluate(episodes=2).scores)\n"
    )
    done = warm.run(["script.py"], cwd=tmp_path)
    assert done.stdout.splitlines()[-1:] == ["[5.0, 5.0]"], done.stderr
    assert done.returncode == 0
    assert done.stdout.splitlines().count("begins") == 1


def test_an_environment_of_gymnasium_under_another_id_is_known_to_the_agents(tmp_path):
    entry = "gymnasium.envs.classic_control.cartpole:CartPoleEnv"
    gymnasium.register("ShortPole-v0", entry_point=entry, max_episode_steps=5)
    try:
        run = ga3c_tf.train("ShortPole-v0", run_dir=tmp_path / "run", steps=300, num_agents=2, device="cpu")
        assert run.evaluate(episodes=2).scores == [5.0, 5.0]
    finally:
        del gymnasium.registry["ShortPole-v0"]


def test_a_recording_is_the_same_for_the_same_seed(tmp_path, monkeypatch):
    monkeypatch.delenv("SDL_VIDEODRIVER", raising=False)
    agent = ga3c_tf.load_agent("minatar_breakout", device="cpu")
    first, again, other = (agent.record(tmp_path / "game.gif", seed=seed) for seed in (3, 3, 4))
    assert first == again != other
    assert "SDL_VIDEODRIVER" not in os.environ  # or later windows would be invisible
    with pytest.raises(ga3c_tf.UserError, match="episodes is 0; it must be at least 1"):
        agent.record(tmp_path / "game.gif", episodes=0)
    agent.record(tmp_path / "short.gif", seed=3, max_episode_steps=2)
    assert (tmp_path / "short.gif").stat().st_size < (tmp_path / "game.gif").stat().st_size
    with pytest.raises(ga3c_tf.UserError, match="max_episode_steps is 0; it must be at least 1"):
        agent.record(tmp_path / "game.gif", max_episode_steps=0)


def test_an_environment_under_two_names_is_refused():
    with pytest.raises(ga3c_tf.UserError, match="env and env_id are the same setting; give one of them"):
        ga3c_tf.train("CartPole-v1", env_id="ALE/Pong-v5", steps=100)


def test_a_budget_of_none_is_none_that_was_given(run):
    with pytest.raises(ga3c_tf.UserError, match="has reached its budget"):
        run.resume(steps=None)


def test_a_network_with_losses_of_its_own_is_refused_for_a_new_run(tmp_path):
    """They would not be trained on. An older run with such a network can still be played."""

    def regularized(state_shape, state_dtype, num_actions):
        states = keras.Input(state_shape)
        hidden = keras.layers.Dense(5, kernel_regularizer="l2")(states)
        values = keras.ops.squeeze(keras.layers.Dense(1)(hidden), -1)
        return keras.Model(states, (keras.layers.Dense(num_actions)(hidden), values))

    with pytest.raises(
        ga3c_tf.UserError, match="'object:regularized' has losses of its own, such as regularizers"
    ):
        ga3c_tf.train("CartPole-v1", network=regularized, run_dir=str(tmp_path / "run"), steps=300, **SMALL)
    assert not (tmp_path / "run").exists()


def test_code_that_somebody_elses_folder_names_is_not_run_unasked(run, tmp_path, monkeypatch):
    config = run.path / "config.json"
    config.write_text(config.read_text().replace('"loss": "paper"', '"loss": "evil:loss"'))
    (run.path / "meta.json").unlink()
    (tmp_path / "evil.py").write_text("raise SystemExit('it ran')")
    monkeypatch.chdir(tmp_path)
    for call in (
        lambda: ga3c_tf.Run(run.path).evaluate(),
        lambda: ga3c_tf.load_agent(run.path),
        lambda: ga3c_tf.resume(run.path, steps=900),
    ):
        with pytest.raises(ga3c_tf.UserError, match=r"name code to run: evil:loss; .* trust_code=True"):
            call()


def test_a3c_has_its_network_and_loss_in_the_agents_processes(tmp_path):
    def halved(batch, config):
        found = losses.actor_critic(batch, config)
        return 0.5 * found.policy_loss, 0.5 * found.value_loss, found.entropy

    run = ga3c_tf.train(
        "CartPole-v1", run_dir=str(tmp_path / "run"), steps=300, system="a3c", loss=halved, **SMALL
    )
    assert run.summary["updates"] > 10 and run.config.loss == "object:halved"


SCRIPT = """
import gymnasium
import ga3c_tf

def make(render_mode=None):
    return gymnasium.make("CartPole-v1", render_mode=render_mode)

print("begins")
run = ga3c_tf.train(make, run_dir="run", steps=10**9, seed=1, num_agents=4, device="cpu", log_seconds=0.5)
print("ended", run.summary["ended"], *run.evaluate(episodes=3).scores)
"""


ROWS = """
import ga3c_tf.callbacks

class Rows(ga3c_tf.callbacks.Callback):
    def on_row(self, row):
        print("row")
"""


def make_pole(render_mode=None):
    return gymnasium.make("CartPole-v1", render_mode=render_mode)


def test_a_script_without_a_guard_begins_once_and_ends_cleanly_at_ctrl_c(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(ga3c_tf.__file__).parents[1]),
        "PYTHONUNBUFFERED": "1",
    }
    process = warm.Popen(["script.py"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE)
    lines = []
    for line in process.stdout:
        if "RScore" in line and not any("RScore" in earlier for earlier in lines):
            process.send_signal(signal.SIGINT)
        lines.append(line)
    assert process.wait() == 0
    assert lines.count("begins\n") == 1
    word, reason, *scores = lines[-1].split()
    agent = ga3c_tf.load_agent(tmp_path / "run", env=make_pole)
    assert (word, reason) == ("ended", "interrupted")
    assert list(map(float, scores)) == agent.evaluate(episodes=3).scores


def test_sigterm_ends_a_script_with_a_checkpoint_and_its_output(tmp_path):
    """The output goes to a pipe and the training is silent, so what a callback prints waits in a buffer."""
    options = "seed=1, progress=False, callbacks=Rows()"
    (tmp_path / "script.py").write_text(ROWS + SCRIPT.replace("seed=1", options))
    environment = {**os.environ, "PYTHONPATH": str(Path(ga3c_tf.__file__).parents[1])}
    environment.pop("PYTHONUNBUFFERED", None)
    process = subprocess.Popen(
        [sys.executable, "script.py"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    )
    metrics = tmp_path / "run" / "metrics.csv"
    steps = []
    while not any(steps):
        assert process.poll() is None
        time.sleep(0.1)
        rows = metrics.read_text().splitlines()[1:] if metrics.exists() else []
        steps = [int(row.split(",")[1]) for row in rows[:-1]]  # the last row may be half written
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate()
    assert process.returncode == -signal.SIGTERM
    assert output.startswith("begins\nrow\nrow\n") and "ended" not in output
    assert max(checkpoint_folders(tmp_path / "run")) > 0


def test_a_training_in_another_thread_leaves_ctrl_c_to_the_program(tmp_path):
    """Python allows signal handlers in the main thread only."""
    before = signal.getsignal(signal.SIGINT)
    with ThreadPoolExecutor(1) as threads:
        training = threads.submit(
            ga3c_tf.train, "CartPole-v1", run_dir=str(tmp_path / "run"), steps=300, **SMALL
        )
        run = training.result()
    assert run.summary["ended"] == "steps" and signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("handler", [signal.SIG_DFL, lambda *_: None])
def test_sigterm_ends_a_program_after_a_checkpoint(tmp_path, monkeypatch, handler):
    """A program that handles it does so during a training too."""
    poll = GA3C.poll
    send = signal.raise_signal
    raised = []

    def terminate(system, seconds):
        poll(system, seconds)
        if system.session.agent_steps:
            send(signal.SIGTERM)
            monkeypatch.setattr(GA3C, "poll", poll)

    monkeypatch.setattr(GA3C, "poll", terminate)
    monkeypatch.setattr(signal, "raise_signal", raised.append)
    before = signal.signal(signal.SIGTERM, handler)
    try:
        run = ga3c_tf.train("CartPole-v1", run_dir=str(tmp_path / "run"), steps=2000, **SMALL)
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)
    is_ours = handler is signal.SIG_DFL
    assert run.summary["ended"] == ("interrupted" if is_ours else "steps")
    assert raised == ([signal.SIGTERM] if is_ours else [])


def test_a_second_ctrl_c_kills_the_agents_of_a_training(tmp_path, monkeypatch):
    poll = GA3C.poll
    stop = AgentProcesses.stop
    processes = []

    def first_interrupt(system, seconds):
        poll(system, seconds)
        if system.session.agent_steps and not system.session.stopping:
            signal.raise_signal(signal.SIGINT)

    def second_interrupt(agents):
        processes.extend(agents.processes._processes.values())
        signal.raise_signal(signal.SIGINT)
        stop(agents)

    monkeypatch.setattr(GA3C, "poll", first_interrupt)
    monkeypatch.setattr(AgentProcesses, "stop", second_interrupt)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        ga3c_tf.train("CartPole-v1", run_dir=str(tmp_path / "run"), steps=10**9, **SMALL)
    for process in processes:
        process.join()
    assert processes and {process.exitcode for process in processes} == {-signal.SIGKILL}
    assert signal.getsignal(signal.SIGINT) is before


def test_a_run_that_begins_in_the_second_of_another_has_a_folder_of_its_own(tmp_path, monkeypatch):
    """The name of a default folder is planned before the folder is made, seconds later."""
    monkeypatch.chdir(tmp_path)
    plan = RunFolder.plan

    def plan_beside_another(config):
        run = plan(config)
        run.path.mkdir(parents=True)  # as another program makes it meanwhile
        return run

    monkeypatch.setattr(RunFolder, "plan", plan_beside_another)
    run = ga3c_tf.train("CartPole-v1", system="serial", steps=300, progress=False, device="cpu")
    assert run.path.name.endswith("-2") and checkpoint_folders(run.path)
    assert (run.path / "metrics.csv").is_file()
    assert not list(run.path.with_name(run.path.name.removesuffix("-2")).iterdir())

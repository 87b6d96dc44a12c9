"""Exported networks give the policy of ours, and what lies beside them is enough to feed them frames."""

import errno
import importlib.util
import json
import os
import re
import runpy
import shutil
import zipfile
from pathlib import Path

import gymnasium
import keras_globals
import numpy as np
import onnxruntime
import pytest
from commands import ga3c_tf
from gymnasium import spaces

import ga3c_tf as package
from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.algorithms.q_learning.pqn import PQN
from ga3c_tf.config import Config
from ga3c_tf.environments.environment import StateEnvironment, make_environment
from ga3c_tf.errors import UserError
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.model.layer_norm import LayerNorm
from ga3c_tf.model.tensorflow import keras, tf
from ga3c_tf.trained.exporting import export, metadata
from ga3c_tf.trained.exporting.export import SUFFIXES, check_export, metadata_of
from ga3c_tf.trained.exporting.metadata import describe_agent, published_score
from ga3c_tf.trained.exporting.network_files import write_network
from ga3c_tf.trained.policies import TrainedAgent
from ga3c_tf.trained.pretrained import PUBLISHED

PAGE = Path(__file__).resolve().parents[2] / "docs" / "export.md"
NAMES = ["pong", "minatar_breakout"]


@pytest.fixture(scope="module")
def agents():
    return {name: package.load_agent(name, device="cpu") for name in NAMES}


def recorded_states(agent, steps=24):
    """States of an episode that the agent plays: every third one."""
    environment = agent.make_environment()
    states = [environment.reset(seed=3)[0].copy()]
    for _ in range(3 * steps):
        state, _, terminated, truncated, _ = environment.step(agent.act(states[-1]))
        states.append(state.copy())
        if terminated or truncated:
            states.append(environment.reset()[0].copy())
    return np.stack(states[::3])


def outputs_of(file, form, states):
    """What another program gets of an exported network: policy and value."""
    if form == "onnx":
        session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        return session.run(["policy", "value"], {"states": states})
    loaded = keras.saving.load_model(file) if form == "keras" else tf.saved_model.load(file)
    found = loaded(states) if form == "keras" else loaded.serve(states)
    return found["policy"].numpy(), found["value"].numpy()


def assert_same_outputs(file, form, states, model):
    policy, value, *_ = model.predict(states)
    their_policy, their_value = outputs_of(file, form, states)
    np.testing.assert_allclose(their_policy, policy, rtol=0, atol=1e-5)
    np.testing.assert_allclose(their_value, value, rtol=1e-5, atol=1e-5)
    assert their_policy.dtype == their_value.dtype == np.float32
    assert np.ptp(policy, axis=0).max() > 1e-3  # else any constant would do


@pytest.mark.parametrize(
    ("name", "form"), [*(("pong", form) for form in SUFFIXES), ("minatar_breakout", "onnx")]
)
def test_exported_weights_give_our_policy_on_recorded_states(agents, tmp_path, name, form):
    agent = agents[name]
    file = tmp_path / f"agent{SUFFIXES[form]}"
    metadata = agent.export(file, form)
    assert_same_outputs(file, form, recorded_states(agent), agent._trained.model)
    assert json.loads(metadata_of(file).read_text()) == metadata


@pytest.mark.parametrize("network", ["large", "nature"])
def test_the_other_networks_are_exported_with_their_scaling(tmp_path, network):
    model = Model(
        Config(network=network, normalize_images=True), EnvironmentSpec((84, 84, 4), "uint8", 6), seed=1
    )
    write_network(model, 0.0, tmp_path / "agent.onnx", "onnx", {})
    states = np.random.default_rng(0).integers(0, 256, (6, 84, 84, 4), np.uint8)
    states[:3] //= 16
    assert_same_outputs(tmp_path / "agent.onnx", "onnx", states, model)


@pytest.mark.parametrize(
    ("network", "shape", "dtype", "form"),
    [
        *(("mlp", (4,), np.float32, form) for form in SUFFIXES),
        ("small", (84, 84, 4), np.uint8, "onnx"),
        # Where built-in layers scale images, which are of whole numbers.
        ("small", (84, 84, 4), np.uint8, "keras"),
    ],
)
def test_scaling_by_mean_and_deviation_and_the_minimum_of_the_policy_are_exported(
    tmp_path, network, shape, dtype, form
):
    rng = np.random.default_rng(0)
    config = Config(network=network, normalize_observations=True, min_policy=0.05)
    model = Model(config, EnvironmentSpec(shape, np.dtype(dtype).name, 6), seed=1)
    model.standardize(
        rng.uniform(0, 9, shape).astype(np.float32), rng.uniform(0, 900, shape).astype(np.float32)
    )
    file = tmp_path / f"agent{SUFFIXES[form]}"
    write_network(model, 0.05, file, form, {})
    states = rng.integers(0, 256, (6, *shape)).astype(dtype)
    assert_same_outputs(file, form, states, model)
    if form == "keras":  # for programs without this package
        with zipfile.ZipFile(file) as archive:
            assert "ga3c_tf" not in archive.read("config.json").decode()


@pytest.mark.parametrize("form", SUFFIXES)
def test_layer_normalization_is_exported_in_keras_layers(tmp_path, form):
    model = PQN(
        Config(network="minatar", algorithm="pqn"), EnvironmentSpec((10, 10, 4), "float32", 3), seed=1
    )
    rng = np.random.default_rng(0)
    for layer in model.network.layers:
        if isinstance(layer, LayerNorm):
            layer.set_weights([rng.normal(size=weights.shape) for weights in layer.get_weights()])
    file = tmp_path / f"agent{SUFFIXES[form]}"
    write_network(model, 0.0, file, form, {})
    states = rng.integers(0, 2, (24, 10, 10, 4)).astype(np.float32)
    assert_same_outputs(file, form, states, model)
    if form == "keras":  # for programs without this package
        with zipfile.ZipFile(file) as archive:
            assert "ga3c_tf" not in archive.read("config.json").decode()


@pytest.mark.parametrize("form", SUFFIXES)
def test_the_carry_is_an_input_and_an_output(tmp_path, form):
    model = Model(
        Config(network="mlp-lstm", normalize_observations=True), EnvironmentSpec((4,), "float32", 3), seed=1
    )
    file = tmp_path / f"agent{SUFFIXES[form]}"
    write_network(model, 0.0, file, form, {})
    rng = np.random.default_rng(0)
    inputs = {"states": rng.normal(size=(5, 4)), "carry": rng.normal(size=(5, 128))}
    inputs = {name: values.astype(np.float32) for name, values in inputs.items()}
    expected = model.predict(**inputs)
    if form == "onnx":
        names = ["policy", "value", "next_carry"]
        outputs = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"]).run(names, inputs)
        outputs = dict(zip(names, outputs, strict=True))
    else:
        loaded = keras.saving.load_model(file) if form == "keras" else tf.saved_model.load(file)
        outputs = loaded(inputs) if form == "keras" else loaded.serve(inputs)
    for name, values in zip(("policy", "value", "next_carry"), expected[:2] + expected[3:], strict=True):
        np.testing.assert_allclose(outputs[name], values, rtol=1e-5, atol=1e-5)
    if form == "keras":  # for programs without this package
        with zipfile.ZipFile(file) as archive:
            assert "ga3c_tf" not in archive.read("config.json").decode()


@pytest.mark.parametrize("setting", keras_globals.CHANGED)
@pytest.mark.parametrize("form", ["onnx", "keras"])
def test_no_global_setting_of_keras_changes_an_exported_network(tmp_path, setting, form):
    config = Config(network="minatar", normalize_observations=True)
    model = Model(config, EnvironmentSpec((10, 10, 4), "uint8", 6), seed=1)
    model.standardize(np.zeros((10, 10, 4), np.float32), np.full((10, 10, 4), 0.001, np.float32))
    file = tmp_path / f"agent{SUFFIXES[form]}"
    with keras_globals.changed(setting):
        write_network(model, 0.0, file, form, {})
    assert_same_outputs(
        file, form, np.random.default_rng(0).integers(0, 2, (6, 10, 10, 4)).astype(np.uint8), model
    )


class OwnNetwork(keras.Model):
    """A subclass, whose layers Keras does not know before it is called."""

    def __init__(self, num_actions):
        super().__init__()
        self.hidden = keras.layers.Dense(8, activation="tanh")
        self.heads = keras.layers.Dense(num_actions + 1)

    def call(self, states):
        found = self.heads(self.hidden(states))
        return found[:, :-1], found[:, -1]


class PythonNetwork(OwnNetwork):
    """What no converter can look into: a function of Python."""

    def call(self, states):
        doubled = tf.numpy_function(lambda each: 2 * each, [states], tf.float32)
        return super().call(tf.ensure_shape(doubled, (None, 4)))


def own_model(network):
    return Model(Config(), EnvironmentSpec((4,), "float32", 3), seed=1, network=network)


@pytest.mark.parametrize("form", ["onnx", "savedmodel"])
def test_a_network_of_the_users_own_is_exported(tmp_path, form):
    keras.utils.set_random_seed(1)
    model = own_model(OwnNetwork(3))
    file = tmp_path / f"agent{SUFFIXES[form]}"
    write_network(model, 0.0, file, form, {})
    states = np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32)
    assert_same_outputs(file, form, states, model)


def test_a_network_that_cannot_be_converted_is_one_line(tmp_path):
    model = own_model(PythonNetwork(3))
    with pytest.raises(
        UserError, match=r"network 'python_network.*' cannot be exported as onnx: .*PyFunc"
    ) as caught:
        write_network(model, 0.0, tmp_path / "agent.onnx", "onnx", {})
    assert "\n" not in str(caught.value)


# metadata


@pytest.mark.parametrize(
    ("error", "raised", "words"),
    [
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
            UserError,
            r"cannot write .*keras\.json: No space left",
        ),
        (SystemExit(130), SystemExit, "130"),  # as a signal ends the command
    ],
)
def test_nothing_is_left_of_an_export_that_does_not_come_to_its_end(
    agents, tmp_path, monkeypatch, error, raised, words
):
    def failing(file, text):
        raise error

    monkeypatch.setattr(export, "write_aside", failing)
    with pytest.raises(raised, match=words):
        agents["minatar_breakout"].export(tmp_path / "agent.keras", "keras")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "raised", "words"),
    [
        (ValueError("no such layer"), UserError, "cannot be exported as onnx: .*no such layer"),
        (SystemExit(130), SystemExit, "130"),
    ],
)
def test_nothing_is_left_of_a_network_that_is_not_converted_to_the_end(
    agents, tmp_path, monkeypatch, error, raised, words
):
    def failing(file, metadata):
        assert file.exists()
        raise error

    monkeypatch.setattr("ga3c_tf.trained.exporting.network_files._finish_onnx", failing)
    with pytest.raises(raised, match=words):
        agents["minatar_breakout"].export(tmp_path / "agent.onnx")
    assert list(tmp_path.iterdir()) == []


def test_the_onnx_file_explains_itself(agents, tmp_path):
    file = tmp_path / "pong.onnx"
    metadata = agents["pong"].export(file)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    within = session.get_modelmeta().custom_metadata_map
    words = ("format", "environment", "algorithm", "system", "network", "ga3c_tf")
    assert {name: text if name in words else json.loads(text) for name, text in within.items()} == metadata
    [states] = session.get_inputs()
    assert (states.name, states.type, states.shape) == ("states", "tensor(uint8)", ["batch", 84, 84, 4])
    assert [(each.name, each.shape) for each in session.get_outputs()] == [
        ("policy", ["batch", 6]),
        ("value", ["batch"]),
    ]


def test_the_metadata_say_what_the_agent_is(agents):
    pong, breakout = (describe_agent(agents[name]._trained) for name in NAMES)
    assert pong["environment"] == "ALE/Pong-v5" and pong["network"] == "small"
    assert pong["actions"] == ["NOOP", "FIRE", "RIGHT", "LEFT", "RIGHTFIRE", "LEFTFIRE"]
    assert pong["inputs"]["states"] == {"dtype": "uint8", "shape": ["batch", 84, 84, 4]}
    assert pong["preprocessing"]["scaling"].startswith("inside the model: (x - mean) / deviation")
    assert pong["training"]["agent_steps"] == 4_000_253 and pong["training"]["seed"] == 6
    assert pong["score"]["mean"] == 17.82 and len(pong["score"]["interval_95"]) == 2
    assert breakout["actions"] == ["n", "l", "r"] and breakout["preprocessing"]["scaling"] == "none"
    assert breakout["preprocessing"]["observation"] == "as the environment gives it, as uint8"


@pytest.mark.parametrize(
    ("shape", "high", "said"),
    [
        ((36, 48, 3), 255, "as the environment gives it, as uint8"),
        ((36, 48), 255, "as the environment gives it, as uint8, a channel axis added"),
        ((4, 36, 48), 15, "as the environment gives it, as uint8, channels moved to the last axis, times 17"),
        ((4, 36, 48, 3), 255, "as the environment gives it, as uint8, the frames of the stack as channels"),
        ((12, 10), 255, "divided by 255, as float32, a channel axis added"),
        ((2, 2, 2, 2), 9, "divided by 9, as float32, flattened"),
    ],
)
def test_the_metadata_say_how_images_are_changed(shape, high, said):
    images = gymnasium.Env()
    images.observation_space = spaces.Box(0, high, shape, np.uint8)
    images.action_space = spaces.Discrete(2)
    observations = metadata._observations(Config(), StateEnvironment(images, "Mine-v0"))
    assert observations["observation"] == said


class ThreeActions(gymnasium.ActionWrapper):
    """Has other actions than the game that it wraps."""

    def __init__(self, game):
        super().__init__(game)
        self.action_space = spaces.Discrete(3)

    def action(self, action):
        return (0, 2, 3)[action]


def test_actions_are_those_of_the_outermost_environment():
    wrapped = StateEnvironment(ThreeActions(gymnasium.make("ALE/Pong-v5")), "Mine-v0")
    assert metadata._action_meanings(wrapped, 3) == ["0", "1", "2"]
    shifted = gymnasium.Env()
    shifted.observation_space = spaces.Box(0, 1, (2,))
    shifted.action_space = spaces.Discrete(3, start=5)
    assert metadata._action_meanings(StateEnvironment(shifted, "Mine-v0"), 3) == ["5", "6", "7"]


@pytest.mark.parametrize(("clips", "of"), [(True, ", of rewards clipped to [-1, 1]"), (False, "")])
def test_the_value_is_told_with_its_discount_and_rewards(clips, of):
    config = Config(gamma=0.97, clip_rewards=clips)
    assert metadata._value_meaning(config) == f"expected return, discounted by 0.97 at each step{of}"


def test_a_score_in_a_run_folder_is_not_the_agents(run, tmp_path):
    (run / "score.json").write_text(json.dumps({"mean": -1.0, "agent_steps": 0}))
    found = package.load_agent(run, device="cpu").export(tmp_path / "agent.keras", "keras")
    assert found["score"] is None and found["training"]["agent_steps"] > 0


def test_states_made_as_the_metadata_say_are_ours(agents):
    made = describe_agent(agents["pong"]._trained)["preprocessing"]
    assert (made["noop_max"], made["stack_order"]) == (0, "last axis, newest frame last")
    game = gymnasium.make(
        "ALE/Pong-v5", frameskip=1, repeat_action_probability=made["repeat_action_probability"]
    )
    frames = gymnasium.wrappers.AtariPreprocessing(game, noop_max=0, frame_skip=made["frame_skip"])
    theirs = gymnasium.wrappers.FrameStackObservation(frames, made["frame_stack"], padding_type="reset")
    ours = make_environment(agents["pong"].config)
    state, _ = ours.reset(seed=5)
    stack, _ = theirs.reset(seed=5)
    for action in np.random.default_rng(0).integers(6, size=60):
        np.testing.assert_array_equal(state, np.moveaxis(stack, 0, -1))
        state, *_ = ours.step(action)
        stack, *_ = theirs.step(action)


def test_the_program_of_the_page_plays(agents, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    agents["pong"].export("pong.onnx")
    [program] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert program.count("terminated or truncated") == 1
    shorter = program.replace("terminated or truncated", "game.unwrapped.ale.getEpisodeFrameNumber() > 1200")
    Path("play.py").write_text(shorter)
    played = runpy.run_path("play.py")
    # A random policy loses a point in this time or two.
    assert float(capsys.readouterr().out) == played["score"] >= 0
    np.testing.assert_allclose(
        played["policy"], agents["pong"].policy(played["states"])[0], rtol=0, atol=1e-5
    )


# the command


@pytest.fixture
def run(smoke_run, tmp_path):
    """A short CartPole run, in a folder of its own."""
    return shutil.copytree(smoke_run[0], tmp_path / "runs" / "pole")


def test_a_run_is_exported_by_the_command_with_its_score(run, tmp_path):
    done = ga3c_tf("export", run, "--format", "onnx", "--episodes", 3, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith(
        "pole.onnx: policy and value of CartPole"
    )
    agent = package.load_agent(run, device="cpu")
    assert_same_outputs(tmp_path / "pole.onnx", "onnx", 20 * recorded_states(agent), agent._trained.model)
    metadata = json.loads((tmp_path / "pole.onnx.json").read_text())
    assert metadata["network"] == "mlp-two-trunks"
    assert metadata["score"]["episodes"] == 3 and metadata["actions"] == ["0", "1"]
    [session] = json.loads((run / "meta.json").read_text())["sessions"]
    assert [commit[:12] for commit in metadata["training"]["commits"]] == [session["commit"][:12]]
    assert metadata["training"]["agent_steps"] == agent.agent_steps


def test_metadata_of_weights_with_a_new_score_have_the_commits_of_the_training():
    folder = PUBLISHED / "minatar_seaquest"
    agent = TrainedAgent(folder, "best", True, 0, "/CPU:0", print)
    score = {key: value for key, value in published_score(folder).items() if key != "training"}
    commits = describe_agent(agent, score)["training"]["commits"]
    assert commits == published_score(folder)["training"]["commits"] != []


def test_a_run_in_a_folder_of_any_name_is_trained_resumed_evaluated_and_exported(tmp_path):
    folder = tmp_path / os.fsdecode(b"[1] a\\b \xff")
    run = folder / "run"
    words = ("train", "CartPole-v1", "--system", "serial", "--agents", 2, "--steps", 50, "--run-dir", run)
    for arguments in (
        words,
        ("resume", run, "--steps", 90),
        ("evaluate", run, "--episodes", 1),
        ("export", run, "--format", "onnx", "-o", folder / "agent.onnx"),
        ("export", run, "-o", folder / "agent.keras"),
    ):
        done = ga3c_tf(*arguments)
        assert done.returncode == 0, done.stderr
    done = ga3c_tf("export", run, "--format", "savedmodel", "-o", folder / "agent-savedmodel")
    assert done.returncode == 2 and "cannot load a SavedModel whose path has [ or \\" in done.stderr
    states = np.zeros((3, 4), np.float32)
    copies = [(shutil.copy(folder / f"agent.{form}", tmp_path), form) for form in ("onnx", "keras")]
    for one, other in zip(*(outputs_of(file, form, states) for file, form in copies), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("words", "form", "file"),
    [(["pong"], "savedmodel", "agent"), (["--pretrained", "minatar_breakout"], "keras", "agent.keras")],
)
def test_published_weights_are_named_in_either_way(tmp_path, words, form, file):
    done = ga3c_tf("export", *words, "--format", form, "-o", file, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in tmp_path.iterdir()} == {file, f"{file}.json"}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["nowhere", "--format", "onnx"], "nowhere is not a run folder"),
        (["--format", "onnx"], "name either a folder RUN or --pretrained weights"),
        (["pong"], "name a --format, or an --output that ends in .onnx or .keras"),
        (["pong", "-o", "x.h5"], "x.h5: no format has the suffix .h5; it must be .onnx, .keras or none"),
        (["pong", "--format", "torch"], "'torch' is not one of 'onnx', 'savedmodel', 'keras'"),
        (["pong", "--format", "keras", "-o", "x.h5"], "x.h5 does not end in .keras"),
        (["pong", "--format", "onnx", "-o", "taken.onnx"], "taken.onnx exists; name another file"),
        (["pong", "--format", "onnx", "-o", "free.onnx"], "free.onnx.json exists; name another file"),
        (["pong", "--format", "savedmodel", "-o", "x.onnx"], "the format of .onnx is onnx"),
        (["pong", "--format", "savedmodel", "-o", "."], "'.' is no file to write to; name one"),
        (["pong", "--format", "onnx", "--checkpoint", "latest"], "no checkpoints to choose from"),
        (
            ["pong", "--format", "onnx", "-o", "none/x.onnx", "--episodes", "100000"],
            "write none/x.onnx: none is not a folder",
        ),
        (
            ["pong", "--format", "keras", "-o", "taken.onnx/x.keras"],
            "cannot write taken.onnx/x.keras: taken.onnx is not",
        ),
    ],
)
def test_what_cannot_be_exported_is_one_line(tmp_path, words, line):
    for name in ("taken.onnx", "free.onnx.json"):
        (tmp_path / name).write_text("mine")
    done = ga3c_tf("export", *words, cwd=tmp_path)
    assert done.returncode == 2 and line in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(
        ("taken.onnx", "free.onnx.json"), "mine"
    )


def test_a_missing_package_is_one_line_before_anything_is_loaded(tmp_path, monkeypatch):
    there = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "tf2onnx" else there(name))
    with pytest.raises(UserError, match=re.escape("--format onnx needs pip install '.[export]' in a clone")):
        check_export(tmp_path / "agent.onnx", "onnx")
    check_export(tmp_path / "agent.keras", "keras")

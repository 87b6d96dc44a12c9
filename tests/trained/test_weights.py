"""Weights that are handed on: the same agent as the run's, no code in them, damage told in one line."""

import errno
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from commands import ga3c_tf
from gymnasium.envs.classic_control import CartPoleEnv
from PIL import Image

from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.config import Config
from ga3c_tf.environments.environment import describe_environment
from ga3c_tf.errors import UserError
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.runs.csv_rows import EPISODE_COLUMNS, read_rows
from ga3c_tf.runs.curve import curve_of, read_curve
from ga3c_tf.runs.folder import read_config
from ga3c_tf.trained import weights
from ga3c_tf.trained.policies import TrainedAgent
from ga3c_tf.trained.pretrained import published_folder, published_names, weights_called
from ga3c_tf.trained.publishing import publish
from ga3c_tf.trained.publishing.markdown import number

SPEC = EnvironmentSpec((4,), "float32", 2)


@pytest.fixture(scope="module")
def published(smoke_run, tmp_path_factory):
    """What `publish` writes of a CartPole run, with a copy of the run beside it."""
    folder = tmp_path_factory.mktemp("weights")
    shutil.copytree(smoke_run[0], folder / "run")
    options = ("--checkpoint", "latest")  # a run of 100 short episodes has a best one, another has not
    done = ga3c_tf("publish", folder / "run", folder / "pole", "--episodes", 4, *options)
    assert done.returncode == 0, done.stderr
    return folder / "pole"


def no_picture(curve, config, stem):
    """In place of the drawing of the curve, which the command line has."""


@pytest.fixture
def copy(published, tmp_path):
    return shutil.copytree(published, tmp_path / "pole")


def test_published_weights_act_as_the_run_does(published):
    # The checkpoint's own, as `publish` scored it.
    of_run = json.loads((published / "score.json").read_text())
    again = json.loads(ga3c_tf("evaluate", published, "--episodes", 4, "--json").stdout)
    assert again["scores"] == of_run["scores"] and again["agent_steps"] == of_run["agent_steps"] >= 2000
    assert "latest checkpoint" in of_run["protocol"] and "published checkpoint" in again["protocol"]


def test_the_card_says_how_they_were_trained_and_scored(published):
    card, session = (
        (published / "README.md").read_text(),
        json.loads((published.parent / "run" / "meta.json").read_text()),
    )
    [session] = session["sessions"]
    score = json.loads((published / "score.json").read_text())
    assert f"**{score['mean']:.2f}**" in card and f"{score['agent_steps']:,} agent steps" in card
    worse = score["mean"] <= score["random_policy"]
    assert f"random policy scores {number(score['random_policy'])} by the same" in card
    assert ("**This agent is worse than the random policy.**" in card) == worse
    assert "To use it: `ga3c-tf play pole " in card
    # Without the path of this machine.
    command = re.sub(r"(?<=--run-dir )\S+", "cartpole", session["command"])
    assert command != session["command"]
    assert f"`{command}`" in card and session["cpu"] in card and score["protocol"] in card
    assert Config.from_json((published / "config.json").read_text()).run_dir is None


def test_the_card_has_the_learning_curve(published):
    curve = read_curve(published)
    run = read_rows(published.parent / "run" / "episodes.csv", EPISODE_COLUMNS)
    assert curve["agent_steps"][-1] == float(run[-1]["agent_steps"]) and (np.diff(curve["time_s"]) > 0).all()
    assert curve["rolling_score"][-1] == pytest.approx(
        np.mean([float(row["score"]) for row in run[-100:]]), rel=1e-5
    )
    card = (published / "README.md").read_text()
    assert (
        "with seed 4." in card
        and f"at {int(curve['agent_steps'][-1]):,} agent steps" in card
        and "(curve.svg)" in card
    )
    assert (published / "curve.svg").read_text().startswith("<?xml")


def test_the_card_shows_how_the_agent_plays(published):
    with Image.open(published / weights.EPISODE) as picture:
        assert picture.format == "GIF" and 5 < picture.n_frames <= publish.EPISODE_STEPS + 1
    assert f"({weights.EPISODE})" in (published / "README.md").read_text()


def test_an_environment_without_pictures_is_published_without_one(published, tmp_path, monkeypatch):
    def refuse(*_):
        raise UserError("this environment draws no pictures")

    monkeypatch.setattr(publish, "record", refuse)
    agent = TrainedAgent(published.parent / "run", "latest", True, 0, "/CPU:0", print)
    score = publish.publish(published.parent / "run", tmp_path / "pole", agent, 1, 0, "publish", no_picture)
    assert score["interval_95"] is None
    assert "(no interval for one episode, standard deviation" in (tmp_path / "pole" / "README.md").read_text()
    assert (
        "Mean raw score" in (card := (tmp_path / "pole" / "README.md").read_text())
        and weights.EPISODE not in card
    )
    assert not (tmp_path / "pole" / weights.EPISODE).exists()


def test_every_weight_is_there_as_float32(published):
    agent = TrainedAgent(published, "best", True, 0, "/CPU:0", print)
    with np.load(published / weights.FILE, allow_pickle=False) as archive:
        stored = [archive[str(number)] for number in range(len(archive.files))]
    assert all(array.dtype == np.float32 for array in stored)
    for array, own in zip(stored, agent.model.network.get_weights(), strict=True):
        np.testing.assert_array_equal(array, own)
    fresh = Model(agent.config, SPEC, seed=5)
    states = np.random.default_rng(0).normal(size=(7, 4)).astype(np.float32)
    assert not np.allclose(fresh.predict(states)[0], agent.model.predict(states)[0])
    weights.load_weights(published, fresh)
    np.testing.assert_array_equal(fresh.predict(states)[0], agent.model.predict(states)[0])


@pytest.mark.parametrize("name", published_names())
def test_published_weights_are_loaded_in_the_order_of_their_numbers(name):
    """Some have twelve arrays, and as a text '10' would come before '2'."""
    folder = published_folder(name)
    config = read_config(folder)
    model = Model(config, describe_environment(config), 0, device="/CPU:0")
    weights.load_weights(folder, model)
    loaded = model.network.get_weights()
    with np.load(folder / weights.FILE) as archive:
        assert len(archive.files) == len(loaded)
        for number, array in enumerate(loaded):
            np.testing.assert_array_equal(array, archive[str(number)])


def test_weights_recorded_before_networks_were_named_are_those_of_one_trunk(copy, tmp_path):
    """Records of version 0.2 say 'auto', which meant one trunk for vectors. A run from them has it too."""
    model = Model(Config(network="mlp"), SPEC, seed=3)
    settings = json.loads((copy / "config.json").read_text())
    assert settings["network"] == "mlp-two-trunks"
    (copy / "config.json").write_text(json.dumps(settings | {"network": "auto"}))
    (copy / weights.FILE).write_bytes(weights.packed_weights(model))
    loaded = TrainedAgent(copy, "best", True, 0, "/CPU:0", print).model.network
    assert loaded.name == "mlp"
    for array, expected in zip(loaded.get_weights(), model.network.get_weights(), strict=True):
        np.testing.assert_array_equal(array, expected)
    options = ("--preset", "smoke", "--steps", 10, "--run-dir", tmp_path / "run", "--initial-weights", copy)
    assert ga3c_tf("train", "CartPole-v1", *options).returncode == 0
    assert read_config(tmp_path / "run").network == "mlp"


def test_damaged_weights_are_refused(copy):
    """Or, where the damage is in a time or the like, they are the same."""
    whole = (copy / weights.FILE).read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    own = TrainedAgent(copy, "best", True, 0, "/CPU:0", print).model
    model = Model(Config(network="mlp-two-trunks"), SPEC, seed=0)
    for cut in (0, 10, len(whole) // 2, len(whole) - 1):
        (copy / weights.FILE).write_bytes(whole[:cut])
        with pytest.raises(UserError, match="is damaged"):
            TrainedAgent(copy, "best", True, 0, "/CPU:0", print)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[int(rng.integers(len(whole)))] ^= 1 << int(rng.integers(8))
        (copy / weights.FILE).write_bytes(damaged)
        try:
            weights.load_weights(copy, model)
            for array, expected in zip(model.network.get_weights(), own.network.get_weights(), strict=True):
                np.testing.assert_array_equal(array, expected)
        except UserError:
            refused += 1
    assert refused > 200


def test_weights_are_for_one_scaling_of_the_states(copy, monkeypatch):
    config = read_config(copy)
    with monkeypatch.context() as patched:
        patched.setattr(weights, "read_config", lambda _: config.replace(normalize_observations=True))
        with pytest.raises(UserError, match="has --no-normalize-observations; --system a3c cannot"):
            weights.check_same_scaling(copy, config.replace(system="a3c"))
    weights.check_same_scaling(copy, config)
    with pytest.raises(
        UserError, match="with --no-normalize-observations, and this run has --normalize-observations"
    ):
        weights.check_same_scaling(copy, config.replace(normalize_observations=True))
    with pytest.raises(UserError, match="with --algorithm actor-critic, and this run has --algorithm dqn"):
        weights.check_same_scaling(copy, config.replace(algorithm="dqn", network="mlp"))
    done = ga3c_tf(
        "train", "CartPole-v1", "--normalize-observations", "--steps", 10, "--initial-weights", copy
    )
    assert done.returncode == 2 and "give --no-normalize-observations" in done.stderr


def test_a_run_goes_on_from_published_weights(copy, tmp_path):
    """With no learning rate to speak of it ends with the weights it began with."""
    before = json.loads((copy / "score.json").read_text())
    before["training"]["minutes"] = 7.5
    (copy / "score.json").write_text(json.dumps(before))
    options = ("--preset", "smoke", "--seed", 2, "--learning-rate", 1e-30, "--initial-weights", copy)
    options += ("--rolling-episodes", 5)
    done = ga3c_tf("train", "CartPole-v1", "--run-dir", tmp_path / "run", *options)
    assert done.returncode == 0, done.stderr
    began, ended = (
        TrainedAgent(folder, "best", True, 0, "/CPU:0", print) for folder in (copy, tmp_path / "run")
    )
    for ours, theirs in zip(
        ended.model.network.get_weights(), began.model.network.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    done = ga3c_tf("publish", tmp_path / "run", tmp_path / "again", "--episodes", 2)
    assert done.returncode == 0, done.stderr
    assert read_config(tmp_path / "again").initial_weights == copy.name  # no folder of this machine
    score = json.loads((tmp_path / "again" / "score.json").read_text())
    assert score["agent_steps"] == ended.agent_steps + before["agent_steps"]
    assert 7.5 <= score["training"]["minutes"] < 8.5
    card = (tmp_path / "again" / "README.md").read_text()
    origin = tmp_path / "again" / weights.ORIGIN
    assert f"of {before['agent_steps']:,} agent steps and" in card and f"({weights.ORIGIN}/README.md)" in card
    assert (origin / "README.md").read_text() == (copy / "README.md").read_text()
    assert (origin / "curve.csv").exists() and not (origin / weights.FILE).exists()
    whole = read_curve(tmp_path / "again")
    led = read_curve(copy)
    own = curve_of(tmp_path / "run", 5)
    own = {name: column[own["episodes"] >= 5] for name, column in own.items()}
    count = np.searchsorted(led["agent_steps"], before["agent_steps"], side="right")
    added = {"time_s": 450, "agent_steps": before["agent_steps"], "episodes": led["episodes"][count - 1]}
    assert count > 1
    assert 1 < len(own["episodes"]) == len(whole["episodes"]) - count
    for name, column in whole.items():
        np.testing.assert_array_equal(column[:count], led[name][:count])
        np.testing.assert_allclose(column[count:], own[name] + added.get(name, 0), rtol=1e-5)
    (tmp_path / "run" / weights.ORIGIN / "score.json").write_text("{")
    done = ga3c_tf("publish", tmp_path / "run", tmp_path / "third")
    assert done.returncode == 2 and "score.json is missing or damaged" in done.stderr
    assert not (tmp_path / "third").exists()


@pytest.mark.parametrize(
    ("env_id", "origin", "words"),
    [
        ("CartPole-v1", "nowhere", "no pretrained weights 'nowhere'"),
        ("CartPole-v1", "../run", "is a run folder; make weights of it with ga3c-tf publish"),
        ("Acrobot-v1", "", "is of another network"),
    ],
)
def test_weights_that_a_run_cannot_begin_with_are_refused_and_nothing_is_written(
    published, tmp_path, env_id, origin, words
):
    options = (
        "--run-dir",
        tmp_path / "run",
        "--initial-weights",
        published / origin if origin != "nowhere" else origin,
    )
    done = ga3c_tf("train", env_id, "--preset", "smoke", *options)
    assert done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_links_are_neither_copied_nor_handed_on(tmp_path):
    """A linked private file would be copied into the run, and published with it."""
    (tmp_path / "private").write_text("mine")
    handed = tmp_path / "handed"
    run = tmp_path / "run"
    for folder in (handed, run / weights.ORIGIN):
        folder.mkdir(parents=True)
        (folder / weights.SCORE).write_text('{"agent_steps": 1, "training": {"minutes": 1.0}}')
        (folder / "README.md").symlink_to(tmp_path / "private")
    (handed / weights.FILE).write_bytes(b"")
    for refuse in (lambda: weights_called(str(handed)), lambda: publish._before(run)):
        with pytest.raises(UserError, match=r"README\.md is a link"):
            refuse()


@pytest.mark.parametrize("place", ["run", "file", "link"])
def test_nothing_else_is_overwritten(published, tmp_path, place):
    """A run's settings above all, without which it could not be resumed."""
    folder = shutil.copytree(published.parent / "run", tmp_path / "run")
    if place == "file":
        folder = tmp_path / "other"
        folder.mkdir()
        (folder / "README.md").write_text("mine")
    if place == "link":
        folder = tmp_path / "link"
        folder.symlink_to(published)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = ga3c_tf("publish", published.parent / "run", folder)
    assert done.returncode == 2 and "name a new folder for the weights" in done.stderr
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_there_is_no_checkpoint_to_choose(published):
    done = ga3c_tf("evaluate", published, "--checkpoint", "latest")
    assert done.returncode == 2 and "no checkpoints to choose from" in done.stderr


def test_weights_that_cannot_be_read_now_are_not_called_damaged(copy, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(np, "load", refuse)
    with pytest.raises(UserError, match=r"cannot be read now: OSError: .*Too many open files"):
        TrainedAgent(copy, "best", True, 0, "/CPU:0", print)


def test_the_damaged_or_missing_file_is_named(copy):
    (copy / weights.SCORE).write_text("{}")
    with pytest.raises(UserError, match=r"score\.json is damaged: KeyError"):
        TrainedAgent(copy, "best", True, 0, "/CPU:0", print)
    (copy / weights.SCORE).unlink()
    with pytest.raises(UserError, match=r"score\.json is missing"):
        TrainedAgent(copy, "best", True, 0, "/CPU:0", print)


def test_the_score_is_replaced_last_and_nothing_is_if_a_file_cannot_be_written(copy, monkeypatch):
    renamed = []
    monkeypatch.setattr(Path, "rename", lambda file, target: renamed.append(target.name))
    weights.save_weights(copy, b"new", "{}", {"mean": 9.0})
    assert renamed[0] == weights.FILE and renamed[-1] == weights.SCORE
    monkeypatch.undo()
    before = {file.name: file.read_bytes() for file in copy.iterdir()}
    synced = []

    def sync(descriptor):
        synced.append(descriptor)
        if len(synced) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(weights, "sync", sync)
    with pytest.raises(UserError, match="No space left"):
        weights.save_weights(copy, b"new", "{}", {"mean": 9.0})
    assert {file.name: file.read_bytes() for file in copy.iterdir()} == before


def test_pickled_objects_are_not_loaded(copy):
    np.savez(copy / weights.FILE, **{"00": np.array([print], object)})
    with pytest.raises(UserError, match="is damaged"):
        TrainedAgent(copy, "best", True, 0, "/CPU:0", print)


@pytest.mark.parametrize("value", [np.nan, np.inf, "text"])
def test_weights_that_are_no_numbers_are_damaged(copy, value):
    with np.load(copy / weights.FILE) as archive:
        arrays = dict(archive)
    arrays["0"] = np.full(arrays["0"].shape, value)
    np.savez(copy / weights.FILE, **arrays)
    with pytest.raises(UserError, match="is damaged"):
        TrainedAgent(copy, "best", True, 0, "/CPU:0", print)


def test_weights_that_are_too_large_are_refused_before_the_evaluation(published, tmp_path, monkeypatch):
    monkeypatch.setattr(weights, "MOST_BYTES", 1000)
    monkeypatch.setattr(publish, "evaluate", None)
    agent = TrainedAgent(published.parent / "run", "latest", True, 0, "/CPU:0", print)
    with pytest.raises(UserError, match="--format huggingface has no limit"):
        publish.publish(published.parent / "run", tmp_path / "pole", agent, 1, 0, "publish", no_picture)
    assert not (tmp_path / "pole").exists()


def test_a_folder_that_is_not_complete_has_no_card(published, copy, monkeypatch):
    def fill_disk(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(publish, "write_curve", fill_disk)
    agent = TrainedAgent(published.parent / "run", "latest", True, 0, "/CPU:0", print)
    with pytest.raises(UserError, match=r"cannot write to .*: No space left on device; publish to it again"):
        publish.publish(published.parent / "run", copy, agent, 1, 0, "publish", no_picture)
    assert not (copy / weights.CARD).exists()


def test_an_environment_that_cannot_draw_has_a_card_without_a_picture(published, copy, monkeypatch):
    def render(self):
        raise NotImplementedError

    monkeypatch.setattr(CartPoleEnv, "render", render)
    agent = TrainedAgent(published.parent / "run", "latest", True, 0, "/CPU:0", print)
    publish.publish(published.parent / "run", copy, agent, 1, 0, "publish", no_picture)
    assert weights.EPISODE not in (copy / weights.CARD).read_text() and not (copy / weights.EPISODE).exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(UserError, match="Permission denied"):
        weights.check_free(tmp_path / "new" / "pole")


def test_a_folder_whose_name_is_too_long_is_refused():
    with pytest.raises(UserError, match="File name too long"):
        weights.check_free(Path("x" * 300))


def test_weights_that_cannot_be_written_leave_the_earlier_ones_with_their_score(copy, monkeypatch):
    model = TrainedAgent(copy, "best", True, 0, "/CPU:0", print).model
    before = {path.name: path.read_bytes() for path in copy.iterdir() if path.is_file()}
    monkeypatch.setattr(weights, "SCORE", "no such folder/score.json")
    with pytest.raises(UserError, match="cannot write to"):
        weights.save_weights(copy, weights.packed_weights(model), "{}", {"mean": 1.0})
    assert {path.name: path.read_bytes() for path in copy.iterdir() if path.is_file()} == before


def test_weights_of_another_network_are_refused(copy):
    with pytest.raises(
        UserError, match=r"another network: the shape of its array 0 is \(4, 64\), and here \(5, 64\)"
    ):
        weights.load_weights(
            copy, Model(Config(network="mlp-two-trunks"), EnvironmentSpec((5,), "float32", 2), seed=0)
        )


def test_weights_with_fewer_arrays_are_of_another_network(copy):
    with np.load(copy / weights.FILE) as archive:
        fewer = dict(list(archive.items())[:-1])
    np.savez(copy / weights.FILE, **fewer)
    with pytest.raises(UserError, match=r"the shape of its array 11 is missing, and here \(2,\)"):
        weights.load_weights(copy, Model(Config(network="mlp-two-trunks"), SPEC, seed=0))


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["evaluate"], "name either a folder RUN or --pretrained"),
        (["play", "--video", "x.mp4"], "name either a folder RUN or --pretrained"),
        (["evaluate", "a", "--pretrained", "pong"], "name either a folder RUN or --pretrained"),
        (["evaluate", "--pretrained", "pond"], "no pretrained weights 'pond'"),
        (["publish", "nowhere", "x"], "nowhere is not a run folder"),
    ],
)
def test_what_is_not_there_is_one_line(words, line):
    done = ga3c_tf(*words)
    assert done.returncode == 2 and line in done.stderr and done.stderr.count("\n") == 1

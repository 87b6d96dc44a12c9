"""docs/extending.md, done: its file lies outside the package, and its commands train with it."""

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from checks import update

from ga3c_tf.algorithms.actor_critic import losses
from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.experience.columns import Batch
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.runs.csv_rows import EPISODE_COLUMNS, read_rows

SPEC = EnvironmentSpec((4,), "float32", 2)
ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder outside the package with the page's mine.py and its program, as the current one."""
    three_changes, correction, program = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "mine.py").write_text(f"{three_changes}\n\n{correction}")
    (tmp_path / "program.py").write_text(program)
    monkeypatch.chdir(tmp_path)
    sys.modules.pop("mine", None)  # that of another test
    yield tmp_path
    sys.modules.pop("mine", None)


@pytest.mark.slow
def test_the_pages_commands_do_what_it_says(folder):
    commands = [shlex.split(line, comments=True) for line in PAGE.splitlines() if line.startswith("ga3c-tf ")]
    assert [command[1] for command in commands] == ["train"] * 4 + ["evaluate", "plot", "reproduce", "train"]
    commands = [command for command in commands if "--loss" in command or command[1] == "evaluate"]
    program = [str(Path(sys.executable).with_name("ga3c-tf"))]
    for command in commands:
        arguments = " ".join(command[1:]).replace("--minutes 2", "--steps 400 --log-seconds 1").split()
        arguments = " ".join(arguments).replace("--seeds 3", "--budget smoke").split()
        if "--agents" not in arguments and command[1] == "train":
            arguments += ["--agents", "4"]
        done = subprocess.run([*program, *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    for system, run in (("ga3c", "mine"), ("a2c", "mine-a2c"), ("a3c", "mine-a3c")):
        config = json.loads((folder / "runs" / run / "config.json").read_text())
        assert (config["system"], config["loss"], config["network"]) == (system, "mine:huber", "mine:wide")
        reader = tf.train.load_checkpoint(
            str(max((folder / "runs" / run / "checkpoints").iterdir()) / "checkpoint")
        )
        assert reader.get_tensor("version/0/.ATTRIBUTES/VARIABLE_VALUE") > 0
        assert reader.get_tensor("weights/0/.ATTRIBUTES/VARIABLE_VALUE").shape == (4, 256)


@pytest.mark.slow
def test_the_pages_system_trains(folder):
    """Takes 10 s."""
    program = (folder / "program.py").read_text()
    assert program.count("minutes=2") == 1
    (folder / "program.py").write_text(program.replace("minutes=2", "steps=2000"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, "program.py"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *rows, score = done.stdout.splitlines()
    assert re.fullmatch(r"\d+ updates", rows[-1])
    [run] = (folder / "runs").iterdir()
    scores = [float(row["score"]) for row in read_rows(run / "episodes.csv", EPISODE_COLUMNS)]
    assert float(score) == pytest.approx(np.mean(scores[-100:]))  # the rolling score is of 100 episodes
    assert max(int(path.name) for path in (run / "checkpoints").iterdir()) >= 2000


def batch_of(returns, **columns):
    rng = np.random.default_rng(0)
    returns = np.asarray(returns, np.float32)
    states = rng.normal(size=(len(returns), 4)).astype(np.float32)
    return Batch(states=states, actions=np.zeros(len(returns), np.int32), returns=returns, **columns)


def test_the_loss_is_the_users(folder):
    """Far from the value, Huber's gradient no longer grows: ten times the error moves it no further."""
    moved = {}
    for loss in ("paper", "mine:huber"):
        for error in (10.0, 100.0):
            model = Model(Config(network="mlp", loss=loss, rmsprop_epsilon=1e6), SPEC, seed=0)
            batch = batch_of([error] * 5)
            before = model.network.get_layer("logits_v").bias.numpy()
            result = update(model, batch, 1.0, 0.0)
            moved[loss, error] = float(np.abs(model.network.get_layer("logits_v").bias.numpy() - before)[0])
            assert np.isfinite(result.metrics["value_loss"])
    assert moved["paper", 100.0] > 8 * moved["paper", 10.0]
    assert moved["mine:huber", 100.0] == pytest.approx(moved["mine:huber", 10.0], rel=0.01)


@pytest.mark.parametrize("lag", [0, 3])
def test_the_pages_correction_is_one_step_importance_sampling_by_lag(folder, lag):
    """Without an entropy bonus, a lag of 3 for all steps divides the policy loss by 4."""
    log_mu = np.log(np.array([0.9, 0.1, 0.3], np.float32))  # ratios of about 1/2, 5 and 5/3
    batch = batch_of([1.0, -2.0, 3.0], mu_log_probabilities=log_mu, versions=np.zeros(3, np.int64))
    results = []
    for settings in ({"correction": "one-step"}, {"loss": "mine:one_step_by_lag"}):
        model = Model(Config(network="mlp", rho_bar=1.2, **settings), SPEC, seed=0)
        model.version.assign(lag)
        results.append(update(model, batch, 0.01, 0.1 if lag == 0 else 0.0))
    one_step, by_lag = [result.metrics for result in results]
    assert by_lag["policy_loss"] == pytest.approx(one_step["policy_loss"] / (1 + lag), rel=1e-5)
    assert (by_lag["value_loss"], by_lag["entropy"]) == pytest.approx(
        (one_step["value_loss"], one_step["entropy"]), rel=1e-5
    )


EXAMPLE = ROOT / "examples" / "correction.py"


def test_the_examples_correction_is_none_without_lag_and_bounded_with_it():
    example = runpy.run_path(str(EXAMPLE))["saturating"]
    logits = tf.Variable(np.random.default_rng(0).normal(size=(3, 2)), dtype=tf.float32)
    log_pi = losses.log_taken(losses.log_policy(logits, log_epsilon=None), tf.constant([0, 1, 1]))
    gradients = {}
    for lag, log_mu in (("none", log_pi), ("high", log_pi - 20.0)):
        columns = {
            "values": tf.zeros(3),
            "actions": tf.constant([0, 1, 1]),
            "returns": tf.constant([1.0, 2, 3]),
        }
        with tf.GradientTape(persistent=True) as tape:
            batch = Batch(logits=logits, beta=0.0, mu_log_probabilities=log_mu, **columns)
            both = example(batch, None)[0], losses.actor_critic(batch, Config(correction="none"))[0]
        gradients[lag] = [tape.gradient(loss, logits).numpy() for loss in both]
    for lag, factor in (("none", 1.0), ("high", 2.0)):
        corrected, plain = gradients[lag]
        np.testing.assert_allclose(corrected, factor * plain, rtol=1e-5)


@pytest.mark.slow
def test_the_example_prints_a_table_of_corrections_by_lag(tmp_path):
    words = [sys.executable, str(EXAMPLE), "--steps", "1600", "--lags", "0", "1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.splitlines()
    assert head.split() == ["correction", "lag", "0", "lag", "1"]
    assert [row.split()[0] for row in rows] == ["none", "one-step", "ppo", "saturating"]
    assert len({row.split()[1] for row in rows}) == 1, "without lag, all have the same gradient"
    assert all(float(number) > 5 for row in rows for number in row.split()[1:])


def test_the_papers_loss_by_its_own_function_makes_the_same_update(folder):
    Path("same.py").write_text("from ga3c_tf.algorithms.actor_critic.losses import actor_critic as again\n")
    weights = []
    for loss in ("paper", "same:again"):
        model = Model(Config(network="mlp", loss=loss, min_policy=0.1), SPEC, seed=0)
        update(model, batch_of([1.0, -2.0, 3.0]), 0.01, 0.01)
        weights.append([weight.numpy() for weight in model.network.weights])
    assert all(np.array_equal(one, other) for one, other in zip(*weights, strict=True))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("huber", "unknown loss 'huber'; it must be paper or 'module:function'"),
        ("nowhere:huber", "the module 'nowhere' cannot be imported"),
        ("mine:hubert", "has no function 'hubert'; close: huber"),
        ("bad:raises", "loss 'bad:raises' failed: .*no such thing"),
        ("bad:short", "must return .policy loss, value loss, entropy., three float32 scalars"),
        ("bad:not_summed", "three float32 scalars; for B states it returned float32 .B."),
        ("bad:one_total", "three float32 scalars; for B states it returned float32 ..$"),
        ("bad:known_batch", "loss 'bad:known_batch' failed: .*None"),
        ("bad:branches", "loss 'bad:branches' failed: .*symbolic `tf.Tensor` as a Python `bool`"),
    ],
)
def test_what_is_wrong_with_a_loss_is_said_in_one_line(folder, name, words):
    Path("bad.py").write_text(
        "def raises(*arguments):\n    raise KeyError('no such thing')\n"
        "def short(batch, config):\n    return batch.values[0], batch.values[0]\n"
        "def not_summed(batch, config):\n    return batch.values, batch.values, batch.values\n"
        "def one_total(batch, config):\n    return batch.values[0]\n"
        "def known_batch(batch, config):\n"
        "    return [sum(batch.values[i] for i in range(batch.values.shape[0]))] * 3\n"
        "def branches(batch, config):\n"
        "    values = batch.values\n"
        "    return [values[0] if values[0] > 0 else values[1]] * 3\n"
    )
    with pytest.raises(UserError, match=words) as caught:
        Model(Config(network="mlp", loss=name), SPEC, seed=0)
    assert "\n" not in str(caught.value)
    sys.modules.pop("bad", None)


def test_the_default_is_the_papers():
    """With other settings of the loss it would be another one, and a user's function gets the same."""
    config = Config(min_policy=0.1, log_epsilon=1e-3)
    assert config.loss == "paper"
    columns = {"logits": [[0.5, -8.0], [1.0, 0.0]], "values": [0.3, -1.0], "returns": [1.0, 2.0], "beta": 0.5}
    batch = Batch(
        actions=tf.constant([1, 0]), **{name: tf.constant(values) for name, values in columns.items()}
    )
    found = losses.find_loss(config, 2).compute(batch).losses
    assert found == losses.actor_critic(batch, config) != losses.actor_critic(batch, Config())


def test_a_loss_may_import_its_parts_from_their_former_place():
    from ga3c_tf.algorithms.actor_critic import losses
    from ga3c_tf.model import losses as former

    assert former.__all__ == losses.__all__ and former.actor_critic is losses.actor_critic

"""The command line as a user meets it: help, bad input, and one run from training to its video."""

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import warm
from checks import wait_until
from commands import ENVIRONMENT, ga3c_tf, python
from helpers import SUMMARY
from PIL import Image, ImageSequence

from ga3c_tf.cli import evaluation, options
from ga3c_tf.cli import training as training_commands
from ga3c_tf.cli.main import cli
from ga3c_tf.cli.options import FIRST
from ga3c_tf.config import Config, network_for, spelled
from ga3c_tf.config.declaration import GROUPS
from ga3c_tf.config.presets import PRESETS, USUAL_PRESET
from ga3c_tf.environments.environment import describe_environment
from ga3c_tf.environments.ids import resolve_env_id
from ga3c_tf.runs.csv_rows import ADJUSTMENT_COLUMNS, EPISODE_COLUMNS, METRIC_COLUMNS, read_rows

COMMANDS = sorted(cli.commands)


def refused(*arguments, **options) -> str:
    """The one line that a refused command prints."""
    done = ga3c_tf(*arguments, **options)
    assert done.returncode == 2, done.stdout + done.stderr
    [line] = done.stderr.splitlines()
    assert line.startswith("ga3c-tf: ")
    return line


# help


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_every_command_and_option_has_help(command):
    done = ga3c_tf(*([command] if command else []), "--help")
    assert done.returncode == 0 and "Usage:" in done.stdout
    target = cli.commands[command] if command else cli
    assert target.help
    assert all(option.help for option in target.params if option.param_type_name == "option")


def test_train_has_an_option_for_every_setting():
    text = ga3c_tf("train", "--help").stdout
    for option in (
        "--agents",
        "--predictors",
        "--trainers",
        "--min-training-batch",
        "--t-max",
        "--learning-rate",
        "--beta",
        "--network",
        "--seed",
        "--run-dir",
        "--steps",
        "--minutes",
        "--episodes",
        "--system",
        "serial",
        "--preset",
        "--json",
        "--preprocessing",
        "--grad-clip-norm",
        "--device",
    ):
        assert option in text


def test_the_help_shows_the_settings_in_a_panel_for_each_group():
    done = ga3c_tf("train", "--help")
    assert "\x1b" not in done.stdout and max(map(len, done.stdout.splitlines())) <= 120
    panels = {
        title: set(text.split())
        for title, text in re.findall(r"─ ([A-Z][a-z ]+) ─+╮\n(.*?)╰─", done.stdout, re.S)
    }
    for option in cli.commands["train"].params:
        setting = Config.__dataclass_fields__.get(option.name)
        if setting and option.name != "env_id":
            panel = "Options" if option.name in FIRST else setting.metadata["group"].capitalize()
            assert set(option.help.split()) <= panels[panel], option.name
    assert list(panels) == ["Options", *(group.capitalize() for group in GROUPS if group != "budget")]


def test_the_help_of_train_begins_with_examples_and_with_what_most_runs_need():
    text = ga3c_tf("train", "--help").stdout
    before, first, *_ = re.split(r"─ [A-Z][a-z ]+ ─+╮\n", text)
    assert len(re.findall(r"^ +ga3c-tf train .*--preset tuned", before, re.MULTILINE)) == 3
    options = re.findall(r"^│ (--[a-z-]+)", first, re.MULTILINE)
    assert options == ["--preset", *(spelled(name) for name in FIRST), "--json", "--ray", "--help"]
    words = set(first.replace("│", " ").split())
    assert {f"'{preset}'" for preset in PRESETS} <= words and all(f"'{name}'" in first for name in PRESETS)


@pytest.mark.parametrize(
    ("arguments", "preset"),
    [
        (["ALE/Pong-v5"], "tuned"),
        (["PongNoFrameskip-v4", "--minutes", "1"], "tuned"),
        (["MinAtar/Breakout-v1"], "tuned-small"),
        (["CartPole-v1"], "tuned-vector"),
        (["CartPole-v1", "--network", "mlp"], None),
        (["MinAtar/Breakout-v1", "--algorithm", "pqn"], None),
        (["ALE/Pong-v5", "--preset", "default"], None),
        (["ALE/Pong-v5", "--preset", "tuned"], None),
    ],
)
def test_whoever_starts_with_the_default_preset_is_told_of_the_tuned_one(
    arguments, preset, monkeypatch, capsys
):
    def new_training(config, *_):
        config = config.replace(env_id=resolve_env_id(config.env_id)[0])
        network = network_for(config.network, describe_environment(config).state_shape)
        return None, SimpleNamespace(config=config.replace(network=network))

    monkeypatch.setattr("ga3c_tf.runner.new_training", new_training)
    monkeypatch.setattr(training_commands, "_run", lambda *_: 0)
    cli.commands["train"].main(arguments, standalone_mode=False)
    told = (
        f"ga3c-tf: the default preset has the paper's settings; --preset {preset} is tuned for such "
        "observations\n"
    )
    assert capsys.readouterr().out == (told if preset else "")


@pytest.mark.parametrize("name", ["train", "bench"])
def test_the_help_shows_the_value_that_the_command_starts_with(name):
    """As the config of the run has it, not as the field's default."""
    command = cli.commands[name]
    usual = Config.from_preset(USUAL_PRESET, {}) if name == "train" else Config(adjustment="off")
    shown = 0
    for option in command.params:
        if option.name not in Config.__dataclass_fields__ or option.name == "env_id" or option.show_default:
            continue  # no setting, or click itself shows its default
        value, found = getattr(usual, option.name), re.findall(r"\[default: (.*?)\]", option.help)
        words = ("off", "on")[value] if isinstance(value, bool) else str(value)
        assert found == ([] if value is None else [words]), option.name
        shown += len(found)
    assert shown >= 6
    if name == "train":
        assert "[default: fast]" in next(
            option.help for option in command.params if option.name == "adjustment"
        )


def test_games_lists_the_atari_ids():
    games = ga3c_tf("games").stdout.split()
    assert (
        "ALE/Pong-v5" in games and "ALE/Breakout-v5" in games and len(games) > 60 and games == sorted(games)
    )


# bad input


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "ALE/Pongg-v5"], "unknown environment 'ALE/Pongg-v5'; close: ALE/Pong-v5"),
        (["train", "Pendulum-v1"], "Pendulum-v1"),
        (["train", "CartPole-v1", "--agents", "0"], "num_agents (--agents) is 0; it must be at least 1"),
        (["train", "CartPole-v1", "--agents", "many"], "--agents is 'many'; it must be a whole number"),
        (["train", "CartPole-v1", "--steps", "1.5e0"], "--steps is '1.5e0'; it must be a whole number"),
        (["train", "CartPole-v1", "--gamma", "nan"], "it must be finite"),
        (
            ["train", "CartPole-v1", "--preset", "best"],
            "'best' is not one of 'default', 'paper', 'nvlabs', 'tuned', 'tuned-small', "
            "'tuned-vector', 'pqn', 'pqn-small', 'dqn', 'dqn-small', 'dqn-atari', "
            "'smoke'",
        ),
        (["train", "CartPole-v1", "--lerning-rate", "1"], "No such option '--lerning-rate'"),
        (["train", "CartPole-v1", "--lr", "1"], "No such option '--lr'; it is --learning-rate here (see "),
        (
            ["train", "CartPole-v1", "--total_timesteps=9"],
            "No such option '--total_timesteps'; it is --steps here",
        ),
        (["train", "CartPole-v1", "--num_agents", "4"], "No such option '--num_agents'; it is --agents here"),
        (["train", "--env-id", "CartPole-v1"], "No such option '--env-id'; it is the first argument here"),
        (["bench", "--n-envs", "8"], "No such option '--n-envs'; it is --agents here"),
        (["train", "CartPole-v1", "--pretrained", "x"], "it is --initial-weights here"),
        (["train"], "Missing argument 'ENV_ID'"),
        (["trian"], "No such command 'trian'"),
        (["train", "CartPole-v1", "--network", "no_such_module:build"], "no_such_module"),
        (["train", "CartPole-v1", "--network", "tiny"], "unknown network 'tiny'"),
        (["train", "CartPole-v1", "--network", "small"], "small"),
        (
            ["train", "CartPole-v1", "--loss", "tiny"],
            "unknown loss 'tiny'; it must be paper or 'module:function'",
        ),
        (["train", "CartPole-v1", "--device", "gpu:7"], "gpu:7"),
        (["train", "CartPole-v1", "--device", "abacus"], "it must be auto, cpu, gpu or gpu:N"),
        (["train", "CartPole-v1", "--anneal-steps", "5"], "--anneal-steps 5 needs --learning-rate-end or"),
        (["train", "CartPole-v1", "--system", "ppo"], "'ppo' is not one of 'ga3c', 'a2c', 'a3c'"),
        (
            ["train", "CartPole-v1", "--system", "a2c", "--adjustment", "fast"],
            "a2c requires --adjustment off",
        ),
        (["train", "CartPole-v1", "--serial"], "No such option '--serial'; it is --system here"),
        (["train", "CartPole-v1", "--system", "a3c", "--device", "gpu"], "--system a3c computes on the CPU"),
        (
            ["train", "CartPole-v1", "--system", "a2c", "--min-training-batch", "0"],
            "--min-training-batch has no effect with --system a2c; it is for ga3c",
        ),
        (
            ["train", "CartPole-v1", "--frame-skip", "2"],
            "--frame-skip has no effect on CartPole-v1; it is for Atari",
        ),
        (
            ["train", "MinAtar/Breakout-v1", "--repeat-action-probability", "0"],
            "--repeat-action-probability has no effect on MinAtar/Breakout-v1",
        ),
        (["train", "CartPole-v1", "--initial-weights", ""], "no pretrained weights ''"),
        (["resume", "nowhere"], "nowhere is not a run folder"),
        (["resume", "x" * 300], "is not a run folder: File name too long"),
        (["evaluate", "x" * 300], "is not a run folder: File name too long"),
        (["evaluate", "pong", "--checkpoint", "9" * 5000], "it must be 'best', 'latest' or the agent steps"),
        (
            ["evaluate", "pong", "--random", "--greedy"],
            "--random is a policy of its own; it cannot be combined with",
        ),
        (
            ["evaluate", "pong", "--random", "--device", "cpu"],
            "--checkpoint, --greedy, --device or --epsilon",
        ),
        (
            ["evaluate", "pong", "--epsilon", "0.1", "--greedy"],
            "a greedy agent has none; leave one of them out",
        ),
        (
            ["evaluate", "pong", "--epsilon", "0.1"],
            "epsilon is for Q-learning; this agent's algorithm, actor-critic, samples",
        ),
        (["evaluate", "pong", "--output", ""], "'.' is no file to write to; name one"),
        (
            ["evaluate", "minatar_breakout", "--noop-max", "30"],
            "--noop-max is for Atari games, such as ALE/Pong-v5; this agent plays MinAtar/Breakout-v1",
        ),
        (
            ["evaluate", "nowhere"],
            "nowhere is not a run folder: there is no such folder; published weights are amidar, boxing, ",
        ),
        (
            ["export", "pong", "--format", "onnx", "-o", "x.keras"],
            "does not end in .onnx, as a file of the format onnx does; the format of .keras is keras",
        ),
        (
            ["evaluate", "pongg"],
            "pongg is not a run folder, and no published weights have this name; close: pong",
        ),
        (["evaluate", "nowhere", "--episodes", "0"], "--episodes is 0; it must be a whole number from 1 to"),
        (["evaluate", "pong", "--checkpoint", "newest"], "it must be 'best', 'latest' or the agent steps"),
        (["play", "nowhere"], "play needs either --video FILE or --window"),
        (
            ["play", "nowhere", "--video", "b.gif", "--window"],
            "play takes --video FILE or --window, not both",
        ),
        (["play", "nowhere", "--video", "x.avi"], "x.avi is no video file: name a .mp4 or a .gif"),
        (["play", "nowhere", "--video", "none/x.gif"], "cannot write none/x.gif: none is not a folder"),
        (["evaluate", "--pretrained", "pongg"], "no pretrained weights 'pongg'; close: pong"),
        (["bench", "--device", "cpu,cpu", "--components"], "name cpu and gpu once each"),
        (["plot", "nowhere", "-o", "x.png"], "nowhere is not a run folder"),
        (["plot", "x" * 300], "is not a run folder: File name too long"),
        (["report", "--out", "x" * 300], "as a results folder: File name too long"),
        (["train", "CartPole-v1", "--normalize-images"], "--normalize-images has no effect on CartPole-v1"),
        (
            ["train", "CartPole-v1", "--log-seconds", "1e-6"],
            "(--log-seconds) is 1e-06; it must be at least 0.01",
        ),
        (["bench", "--seconds", "nan"], "--seconds is nan; it must be a number from 2"),
    ],
)
def test_bad_input_is_one_line_with_exit_code_2_and_writes_nothing(tmp_path, arguments, words):
    assert words in refused(*arguments, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


WITHOUT_TENSORFLOW = """
import json, sys
from ga3c_tf.cli import main as cli
for code, words in json.loads(sys.argv[1]):
    sys.argv = ["ga3c-tf", *words]
    try:
        cli.main()
    except SystemExit as ended:
        assert (ended.code or 0) == code, (words, ended.code)
    assert "tensorflow" not in sys.modules, words
"""


def test_help_and_refusals_come_before_tensorflow_starts(tmp_path):
    """Seconds that nobody should wait to learn of a slip of the pen."""
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "notes.txt").write_text("mine")
    cases = [
        (0, ["--help"]),
        (0, ["train", "--help"]),
        (2, ["train", "CartPole-v1", "--agents", "0"]),
        (2, ["train", "ALE/Pongg-v5"]),
        (2, ["train", "Pendulum-v1"]),
        (2, ["train", "CartPole-v1", "--run-dir", "taken"]),
        (2, ["train", "CartPole-v1", "--initial-weights", "pongg"]),
        (2, ["resume", "nowhere"]),
        (2, ["evaluate", "nowhere"]),
        (2, ["evaluate", "--pretrained", "pongg"]),
        (2, ["play", "nowhere", "--video", "film.mp4"]),
        (2, ["publish", "nowhere", "weights"]),
        (2, ["export", "nowhere", "--format", "onnx"]),
        (2, ["export", "pong", "--format", "keras", "-o", "x.h5"]),
        (2, ["plot", "nowhere", "-o", "x.png"]),
        (2, ["reproduce", "--figure", "nothing"]),
        (0, ["reproduce", "--list"]),
        (2, ["report", "--check"]),
    ]
    command = [sys.executable, "-c", WITHOUT_TENSORFLOW, json.dumps(cases)]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


ONEDNN_FIRST = """
import sys
from ga3c_tf.cli import main as cli
from ga3c_tf.trained import opening

opening.enable_onednn = lambda: sys.exit("too late" if "tensorflow" in sys.modules else "in time")
sys.argv[1:1] = ["evaluate", "pong"]
cli.main()
"""


@pytest.mark.parametrize("options", [[], ["--random"]])
def test_an_evaluation_on_screens_has_onednn_from_the_start(options):
    """Which TensorFlow reads when it is imported."""
    done = subprocess.run(
        [sys.executable, "-c", ONEDNN_FIRST, *options], env=ENVIRONMENT, capture_output=True, text=True
    )
    assert done.stderr.rstrip().endswith("in time")


def test_a_folder_that_is_taken_is_refused_and_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert "exists and is not empty" in refused("train", "CartPole-v1", "--run-dir", tmp_path)
    assert "--run-dir is empty; name a folder" in refused("train", "CartPole-v1", "--run-dir", "")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


# a run, from training to its video


@pytest.fixture
def run(smoke_run):
    """A short CartPole run; tests copy it before they change it."""
    return smoke_run


@pytest.fixture
def copy(run, tmp_path):
    return Path(shutil.copytree(run[0], tmp_path / "copy"))


def test_a_run_prints_plain_lines_and_a_summary(run):
    folder, lines = run
    assert any(line.startswith("[Time:") and "Lag:" in line and "NT: 1 NP: 1 NA: 4" in line for line in lines)
    summary = json.loads(lines[-1])
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    assert re.findall(
        r"^\| `(\w+)` \|", page.partition("## Summary of a session\n")[2], re.MULTILINE
    ) == list(summary)
    assert summary["ended"] == "steps" and summary["agent_steps"] >= 2000 and summary["seed"] == 4
    assert Path(summary["checkpoint"]).is_dir() and Path(summary["run"]) == folder
    assert {path.name for path in folder.iterdir()} >= {
        "config.json",
        "command.txt",
        "meta.json",
        "episodes.csv",
        "metrics.csv",
        "checkpoints",
    }
    assert "train CartPole-v1 --preset smoke" in (folder / "command.txt").read_text()


def test_a_run_that_reached_its_budget_wants_a_larger_one(copy):
    assert "has reached its budget" in refused("resume", copy)


def test_resume_continues_counters_and_curves(copy):
    before = read_rows(copy / "episodes.csv", EPISODE_COLUMNS)
    done = ga3c_tf("resume", copy, "--steps", "6e3", "--set", "num_trainers=1e0", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout.splitlines()[-1])
    episodes = read_rows(copy / "episodes.csv", EPISODE_COLUMNS)
    assert episodes[: len(before)] == before and len(episodes) == summary["episodes"] > len(before)
    assert [int(row["episode"]) for row in episodes] == list(range(1, len(episodes) + 1))
    for rows in (episodes, read_rows(copy / "metrics.csv", METRIC_COLUMNS)):
        for column in ("time_s", "agent_steps"):
            values = [float(row[column]) for row in rows]
            assert values == sorted(values)
    assert summary["agent_steps"] >= 6000
    assert len(json.loads((copy / "meta.json").read_text())["sessions"]) == 2


@pytest.fixture
def handlers():
    """Restores the signal handlers that the test changes."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_resumed_run_trains_with_the_settings_that_were_set_and_records_them(copy, handlers, monkeypatch):
    from ga3c_tf.algorithms.actor_critic.model import Model

    rates, original = set(), Model.train
    monkeypatch.setattr(
        Model, "train", lambda self, *arguments: (rates.add(arguments[1][:2]), original(self, *arguments))[1]
    )
    changes = ["learning_rate=3e-4", "beta=0.02", "adjustment=off", "num_trainers=2", "grad_clip_norm=none"]
    words = [word for change in changes for word in ("--set", change)]
    assert cli.main(["resume", str(copy), "--steps", "4000", *words], standalone_mode=False) == 0
    assert rates == {(3e-4, 0.02)}
    written = json.loads((copy / "config.json").read_text())
    assert (written["learning_rate"], written["beta"], written["num_trainers"]) == (3e-4, 0.02, 2)
    assert read_rows(copy / "metrics.csv", METRIC_COLUMNS)[-1]["trainers"] == "2"
    first, second = json.loads((copy / "meta.json").read_text())["sessions"]
    assert first["changed"] == {}
    assert second["changed"] == {
        "learning_rate": [1e-3, 3e-4],
        "beta": [0.01, 0.02],
        "num_trainers": [1, 2],
        "steps": [2000, 4000],
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("network=mlp", "network (--network) cannot change within a run: the checkpoint holds the variables"),
        ("lerning_rate=1", "unknown setting 'lerning_rate'; close: learning_rate"),
        ("learning_rate=0", "learning_rate (--learning-rate) is 0.0; it must be above 0"),
        ("learning_rate=fast", "learning_rate: 'fast' is not a valid float"),
        ("learning_rate=none", "'none' is not a valid float"),
        ("serial", "'serial' is not NAME=VALUE"),
        ("loss=tiny", "unknown loss 'tiny'"),
    ],
)
def test_a_change_that_cannot_be_is_one_line_and_changes_nothing(copy, change, words):
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    assert words in refused("resume", copy, "--steps", 4000, "--set", change)
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before


def test_none_as_a_value_of_a_choice_is_that_value():
    words = ("correction=none", "max_policy_lag=none")
    assert options._changes(None, None, words) == {"correction": "none", "max_policy_lag": None}


def test_without_its_adjustment_a_run_goes_on_with_the_workers_that_were_kept_last_or_are_set(tmp_path):
    """The checkpoint names four agents, which the memory of two has no room for."""
    folder = tmp_path / "run"
    words = [
        "train",
        "CartPole-v1",
        "--preset",
        "smoke",
        "--adjustment",
        "fast",
        "--run-dir",
        folder,
        "--seed",
        4,
    ]
    assert ga3c_tf(*words).returncode == 0
    with (folder / "adjustment.csv").open("a") as stream:
        stream.write("20,3,2,1,900,5,1,kept\n40,6,2,1,800,5,0,rejected\n")
    copy = shutil.copytree(folder, tmp_path / "copy")
    done = ga3c_tf("resume", copy, "--steps", 4000, "--set", "adjustment=off", "--json")
    assert done.returncode == 0, done.stderr
    written = json.loads((copy / "config.json").read_text())
    assert [written[f"num_{workers}"] for workers in ("agents", "predictors", "trainers")] == [3, 2, 1]
    last = read_rows(copy / "metrics.csv", METRIC_COLUMNS)[-1]
    assert [last[workers] for workers in ("agents", "predictors", "trainers")] == ["3", "2", "1"]
    done = ga3c_tf(
        "resume", folder, "--steps", 4000, "--set", "adjustment=off", "--set", "num_agents=2", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert read_rows(folder / "metrics.csv", METRIC_COLUMNS)[-1]["agents"] == "2"


class Signalled:
    """Stands in for a training: sends itself a signal while it runs."""

    def __init__(self, number):
        self.number, self.stopped = number, []

    def stop(self, reason):
        self.stopped.append(reason)

    def run(self, report):
        os.kill(os.getpid(), self.number)
        time.sleep(0.01)
        return SUMMARY | {"ended": ", ".join(self.stopped)}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_asks_a_training_to_end_and_is_its_exit_code(handlers, capsys, number):
    """SIGHUP is what a closed terminal and a lost ssh connection send."""
    signal.signal(number, signal.SIG_DFL)  # nohup, under which tests may run, has it ignored
    run = SimpleNamespace(path="here", config=Config(env_id="CartPole-v1"), close=lambda: None)
    assert training_commands._run(Signalled(number), run, False) == 128 + number
    assert "\ninterrupted: " in capsys.readouterr().out


def test_a_hangup_that_nohup_has_ignored_stays_ignored(handlers):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    run = SimpleNamespace(path="here", config=Config(env_id="CartPole-v1"), close=lambda: None)
    training = Signalled(signal.SIGHUP)
    assert training_commands._run(training, run, False) == 0 and not training.stopped


def newest_checkpoint(folder):
    """The agent steps of a run's newest checkpoint, or 0."""
    return max((int(path.name) for path in (folder / "checkpoints").glob("0*")), default=0)


def kill_after_a_checkpoint(group, folder):
    """Kill a training once a row of its metrics is newer than its last checkpoint."""
    wait_until(lambda: newest_checkpoint(folder))
    while True:
        os.killpg(group, signal.SIGSTOP)
        last = read_rows(folder / "metrics.csv", METRIC_COLUMNS)[-1:]
        if any(int(row["agent_steps"]) > newest_checkpoint(folder) for row in last):
            os.killpg(group, signal.SIGKILL)
            return
        os.killpg(group, signal.SIGCONT)
        time.sleep(0.05)


def test_resume_after_kill_9_continues_from_the_last_checkpoint(tmp_path):
    folder = tmp_path / "run"
    words = ["train", "CartPole-v1", "--agents", 8, "--run-dir", folder, "--log-seconds", 0.2]
    words += ["--checkpoint-minutes", 0.02]
    process = warm.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True)
    kill_after_a_checkpoint(process.pid, folder)
    process.wait()
    newest = newest_checkpoint(folder)
    done = ga3c_tf("resume", folder, "--steps", newest + 3000, "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout.splitlines()[-1])
    assert newest + 3000 <= summary["agent_steps"]
    metrics = read_rows(folder / "metrics.csv", METRIC_COLUMNS)
    steps = [int(row["agent_steps"]) for row in metrics]
    updates = [int(row["updates"]) for row in metrics]
    times = [float(row["time_s"]) for row in metrics]
    assert steps == sorted(steps) and updates == sorted(updates) and times == sorted(times)
    episodes = [int(row["episode"]) for row in read_rows(folder / "episodes.csv", EPISODE_COLUMNS)]
    assert episodes == list(range(1, summary["episodes"] + 1))


def test_every_json_file_of_a_run_is_valid(run):
    """The score of the first checkpoint is not a number, which Python would write as NaN."""
    files = sorted(run[0].rglob("*.json"))
    assert {file.name for file in files} == {"config.json", "meta.json", "score.json"}
    for file in files:
        json.loads(file.read_text(), parse_constant=lambda name: pytest.fail(f"a file has {name}"))


def test_evaluate_gives_the_same_scores_for_the_same_seed(run):
    arguments = ("evaluate", run[0], "--episodes", 12, "--checkpoint", "latest", "--json")
    first, again, other = (json.loads(ga3c_tf(*arguments, "--seed", seed).stdout) for seed in (1, 1, 2))
    assert first == again and first["scores"] != other["scores"]
    scores = first["scores"]
    assert len(scores) == first["episodes"] == 12 and first["mean"] == pytest.approx(sum(scores) / 12)
    assert first["interval_95"][0] <= first["mean"] <= first["interval_95"][1]
    assert "12 whole episodes, latest checkpoint, actions sampled, seed 1" in first["protocol"]


@pytest.mark.parametrize("option", ["--sample", "--greedy"])
def test_the_evaluated_agent_samples_its_actions_unless_it_is_greedy(handlers, monkeypatch, option):
    """In many copies of one state a greedy agent takes one action only."""
    from ga3c_tf.trained.evaluation import Episode, Evaluation

    evaluated = []

    def play(agent, episodes, seed, most_steps):
        evaluated.append(agent)
        return Evaluation([Episode(0.0, 0.0, 1, True)] * episodes, most_steps)

    monkeypatch.setattr("ga3c_tf.trained.evaluation.evaluate", play)
    cli.main(["evaluate", "minatar_breakout", "--episodes", "1", option], standalone_mode=False)
    [agent] = evaluated
    actions = agent.act(np.zeros((200, 10, 10, 4), np.uint8))
    assert len(set(actions.tolist())) == (1 if option == "--greedy" else 3)


@pytest.mark.parametrize("policy", [[], ["--random"]])
def test_an_atari_agent_is_evaluated_with_other_sticky_actions_and_no_ops(
    handlers, monkeypatch, capsys, policy
):
    from ga3c_tf.trained.evaluation import Episode, Evaluation

    monkeypatch.setattr(
        "ga3c_tf.trained.evaluation.evaluate",
        lambda agent, episodes, seed, most_steps: Evaluation(
            [Episode(0.0, 0.0, 1, True)] * episodes, most_steps
        ),
    )
    options = ["--repeat-action-probability", "0", "--noop-max", "30"]
    cli.main(["evaluate", "pong", *options, *policy], standalone_mode=False)
    assert "sticky actions 0, at most 30 no-ops at the start" in capsys.readouterr().out


def test_an_episode_ends_after_the_steps_that_are_given(run, handlers, capsys, tmp_path):
    options = ["--checkpoint", "latest", "--max-episode-steps", "3"]
    cli.main(["evaluate", str(run[0]), "--episodes", "2", "--json", *options], standalone_mode=False)
    result = json.loads(capsys.readouterr().out)
    assert result["scores"] == [3.0, 3.0] and result["episodes_cut"] == 2
    cli.main(["play", str(run[0]), "--video", str(tmp_path / "game.gif"), *options], standalone_mode=False)
    assert capsys.readouterr().out.endswith("1 episode, score 3\n")


def test_evaluate_in_words_and_into_a_file(run, tmp_path):
    file = tmp_path / "a folder" / "score.json"
    done = ga3c_tf(
        "evaluate", run[0], "--episodes", 2, "--greedy", "--checkpoint", "latest", "--output", file
    )
    assert done.returncode == 0 and "95 % interval" in done.stdout and "most probable action" in done.stdout
    score = json.loads(file.read_text())
    assert f"mean {score['mean']:.2f}" in done.stdout and len(score["scores"]) == 2
    done = ga3c_tf("evaluate", run[0], "--episodes", 2, "--random")
    assert done.stdout.startswith("CartPole-v1, random policy: mean ")


def test_a_thread_that_an_environment_leaves_does_not_hold_up_the_end_of_a_command(tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("")
    done = ga3c_tf("train", "unruly:LeavesThread-v0", "--run-dir", tmp_path / "taken")
    assert done.returncode == 2
    refusal, left = done.stderr.splitlines()
    assert "taken" in refusal
    assert left == (
        "ga3c-tf: user code, such as an environment, has left threads (Thread-1 (sleep)) running; the "
        "program is ended nevertheless"
    )


def test_an_environment_that_cannot_be_closed_gives_one_line(tmp_path):
    (tmp_path / "config.json").write_text(Config(env_id="unruly:RaisesAtClose-v0").to_json())
    done = ga3c_tf("evaluate", tmp_path, "--random", "--trust-code")
    assert done.returncode == 0 and "30 whole episodes" in done.stdout
    [line] = done.stderr.splitlines()
    assert line.endswith(
        "unruly:RaisesAtClose-v0 cannot be closed: OSError: the simulator has gone; this is ignored"
    )


def test_ctrl_c_while_the_environments_of_an_evaluation_begin_prints_no_tracebacks(tmp_path):
    """It printed 7 to 20, of the processes that had begun."""
    (tmp_path / "config.json").write_text(Config(env_id="unruly:InterruptedAtItsStart-v0").to_json())
    done = ga3c_tf("evaluate", tmp_path, "--random", "--trust-code", process_group=0)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, "", "")


def test_a_result_is_written_through_links_and_into_pipes(tmp_path):
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    evaluation._write(tmp_path / "link.json", {"mean": 1.0})
    assert (tmp_path / "link.json").is_symlink() and json.loads((tmp_path / "real.json").read_text()) == {
        "mean": 1.0
    }
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=evaluation._write, args=(tmp_path / "pipe", {"mean": 2.0}), daemon=True)
    writer.start()
    assert json.loads((tmp_path / "pipe").read_text()) == {"mean": 2.0}
    writer.join()


def test_a_file_that_cannot_be_written_is_refused_before_the_episodes(tmp_path):
    (tmp_path / "taken").write_text("")
    line = refused("evaluate", "pong", "--output", tmp_path / "taken" / "a folder" / "score.json")
    assert line.endswith(f"score.json: {tmp_path / 'taken'}: Not a directory")


def test_scores_are_printed_even_if_the_file_cannot_be_written(run):
    done = ga3c_tf("evaluate", run[0], "--episodes", 1, "--output", "/dev/full")
    assert done.returncode == 2 and "(no interval for one episode)" in done.stdout
    assert "cannot write /dev/full: No space left on device" in done.stderr


def test_a_result_is_written_to_a_pipe_that_a_program_has_open(run):
    """Its name, that of /dev/stdout, leads to no file."""
    done = ga3c_tf("evaluate", run[0], "--episodes", 1, "--output", "/dev/stdout")
    assert done.returncode == 0 and json.loads(done.stdout[done.stdout.index("{") :])["episodes"] == 1


WITH_FEW_FILES = """
import resource
from ga3c_tf.cli.main import main
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
main()
"""


def test_more_processes_than_open_files_allow_are_refused(tmp_path):
    words = ["train", "CartPole-v1", "--scheduling", "plain", "--agents", 100, "--adjustment", "off"]
    done = python(WITH_FEW_FILES, *words, "--steps", 1000, cwd=tmp_path)
    assert done.returncode == 2 and list(tmp_path.iterdir()) == []
    assert (
        "100 agent processes need 400 open files, and the limit is 200 (ulimit -Hn); it is enough for 33"
        in done.stderr
    )


def test_text_that_the_output_cannot_encode_is_escaped():
    ascii_only = {**ENVIRONMENT, "PYTHONIOENCODING": "ascii"}
    done = ga3c_tf("evaluate", "caf\u00e9", fresh=True, env=ascii_only)
    assert done.returncode == 2 and "caf\\xe9" in done.stderr


def test_a_signal_leaves_no_part_of_a_video(tmp_path):
    words = ["play", "--pretrained", "pong", "--episodes", 50, "--video", tmp_path / "game.mp4"]
    playing = warm.Popen(words, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    while not any(file.stat().st_size for file in tmp_path.iterdir()):
        assert playing.poll() is None
        time.sleep(0.05)
    playing.send_signal(signal.SIGTERM)
    assert playing.wait() == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["game.mp4", "game.gif"])
def test_play_writes_a_video_of_the_whole_episode(run, tmp_path, name):
    import imageio.v2 as imageio

    done = ga3c_tf("play", run[0], "--video", tmp_path / name, "--seed", 3)
    assert done.returncode == 0, done.stderr
    score = float(done.stdout.split()[-1])
    frames = sum(1 for _ in imageio.get_reader(tmp_path / name))
    if name.endswith(".gif"):  # which shows equal frames as one that lasts longer, at CartPole's 20 ms each
        with Image.open(tmp_path / name) as image:
            frames = sum(frame.info["duration"] for frame in ImageSequence.Iterator(image)) / 20
    assert frames == score + 1  # CartPole gives one point a step


def test_a_window_needs_a_display(run):
    headless = {
        name: value for name, value in ENVIRONMENT.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")
    }
    done = ga3c_tf("play", run[0], "--window", env=headless)
    assert done.returncode == 2 and done.stderr.startswith("ga3c-tf: --window needs a display")


def test_play_refuses_another_kind_of_file(run, tmp_path):
    assert "name a .mp4 or a .gif" in refused("play", run[0], "--video", tmp_path / "game.txt")


def play_in_window(name, display):
    environment = {name: value for name, value in ENVIRONMENT.items() if not name.startswith("SDL_")}
    options = ("--max-episode-steps", 5)
    return ga3c_tf(
        "play", "--pretrained", name, "--window", *options, env={**environment, "DISPLAY": display}
    )


def test_a_display_that_does_not_answer_is_told():
    unused = next(number for number in itertools.count(99) if not Path(f"/tmp/.X11-unix/X{number}").exists())
    done = play_in_window("minatar_breakout", f":{unused}")
    assert done.returncode == 2 and "no window can be opened" in done.stderr.splitlines()[-1]


@pytest.mark.skipif(not shutil.which("Xvfb"), reason="a display needs Xvfb")
@pytest.mark.parametrize("name", ["minatar_breakout", "pong"])
def test_a_window_opens(name):
    reader, writer = os.pipe()
    command = ["Xvfb", "-displayfd", str(writer)]  # it writes the number of its display, once it answers
    with subprocess.Popen(command, pass_fds=[writer], stderr=subprocess.DEVNULL) as display:
        try:
            done = play_in_window(name, f":{os.read(reader, 10).decode().strip()}")
        finally:
            display.terminate()
            os.close(reader)
            os.close(writer)
    assert done.returncode == 0 and done.stdout.splitlines()[-1].startswith("shown: 1 episodes"), done.stderr


def test_plot_draws_all_runs_that_are_named(run, copy, tmp_path):
    done = ga3c_tf("plot", run[0], copy, "-o", tmp_path / "curves.svg")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "curves.svg").read_text()
    assert "<!-- cartpole -->" in text and "<!-- copy -->" in text


def test_plot_shows_policy_lag_as_a_divergence(copy, tmp_path):
    """On a slow machine, the only row of so short a run may be from before its first update."""
    *_, row = read_rows(copy / "metrics.csv", METRIC_COLUMNS)
    drawn = {
        "kl": "KL divergence (nats)",
        "total_variation": "total variation",
        "effective_sample_size": "effective sample size",
        "version_spread": "spread in a segment",
        "chi_squared": "chi squared",
        "k3": "KL divergence by K3 (nats)",
        "m2": "second moment of log-ratios",
        "masked": "masked steps",
    }
    row |= dict.fromkeys(drawn, "0.5")
    (copy / "metrics.csv").write_text(
        ",".join(METRIC_COLUMNS) + "\n" + ",".join(row[name] for name in METRIC_COLUMNS) + "\n"
    )
    assert ga3c_tf("plot", copy, "-o", tmp_path / "curves.svg").returncode == 0
    text = (tmp_path / "curves.svg").read_text()
    for words in drawn.values():
        assert f"<!-- {words} -->" in text


def test_plot_has_a_place_for_its_picture(copy):
    assert ga3c_tf("plot", copy).stdout.strip() == str(copy / "curves.png")
    with Image.open(copy / "curves.png") as image:
        assert (image.format, image.size) == ("PNG", (1350, 1800))


def test_plot_draws_a_run_without_a_whole_episode(copy):
    header = (copy / "episodes.csv").read_text().splitlines()[0]
    (copy / "episodes.csv").write_text(header + "\n")
    assert ga3c_tf("plot", copy).returncode == 0


def test_plot_follows_no_link_in_a_run_folder(copy, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    (copy / "curves.png").symlink_to(tmp_path / "mine.txt")
    assert "curves.png is a link" in refused("plot", copy)
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_plot_shows_what_was_adjusted(copy, tmp_path):
    heights = []
    rows = ["10,4,1,1,500,5,1,first setting\n", "20,8,1,1,400,5,0,agents 4 to 8: rejected\n"]
    for number in range(3):
        with (copy / "adjustment.csv").open("w") as stream:
            stream.write(",".join(ADJUSTMENT_COLUMNS) + "\n" + "".join(rows[:number]))
        assert ga3c_tf("plot", copy, "-o", tmp_path / "curves.png").returncode == 0
        with Image.open(tmp_path / "curves.png") as image:
            heights.append(image.height)
    assert heights[0] < heights[1] == heights[2]


def test_a_checkpoint_of_another_network_is_refused(copy):
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "env_id": "Acrobot-v1"}))
    (copy / "meta.json").write_text('{"sessions": [{}]}')  # or the settings would be refused at once
    for command in (["evaluate", copy], ["resume", copy, "--steps", 9000]):
        assert "is of another network or environment" in refused(*command)


def test_a_corrupt_checkpoint_falls_back_to_the_one_before(copy):
    first = max((copy / "checkpoints").iterdir())
    broken = Path(shutil.copytree(first, first.with_name("000009999999")))
    os.truncate(next(broken.glob("*.data*")), 10)
    done = ga3c_tf("evaluate", copy, "--episodes", 1, "--checkpoint", "latest", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["agent_steps"] == int(first.name)
    assert "000009999999 is damaged" in done.stderr and "Traceback" not in done.stderr


def test_a_run_killed_before_its_first_checkpoint_can_be_resumed(tmp_path):
    folder = tmp_path / "run"
    words = ["train", "CartPole-v1", "--agents", 4, "--run-dir", folder]
    process = warm.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True)
    while not (folder / "checkpoints" / f"{0:012d}").exists() and process.poll() is None:
        time.sleep(0.02)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = ga3c_tf("resume", folder, "--steps", 500, "--json")
    assert done.returncode == 0 and json.loads(done.stdout.splitlines()[-1])["agent_steps"] >= 500


def test_resume_sets_damaged_checkpoints_aside(copy):
    newest = max((copy / "checkpoints").iterdir())
    broken = Path(shutil.copytree(newest, newest.with_name("000009999999")))
    os.truncate(next(broken.glob("*.data*")), 10)
    done = ga3c_tf("resume", copy, "--steps", 4000, "--json")
    assert done.returncode == 0 and "000009999999 is damaged" in done.stderr
    saved = Path(json.loads(done.stdout.splitlines()[-1])["checkpoint"])
    assert saved.is_dir() and max(path.name for path in (copy / "checkpoints").glob("0*")) == saved.name
    assert len(list((copy / "checkpoints").glob("damaged-9999999-*"))) == 1


def test_a_training_that_diverges_says_so_and_keeps_the_last_checkpoint(tmp_path):
    options = ["--agents", 4, "--steps", 3000, "--learning-rate", 1e38, "--run-dir", tmp_path / "run"]
    done = ga3c_tf("train", "CartPole-v1", *options)
    assert done.returncode == 1
    assert (
        done.stderr.splitlines()[-1].startswith("ga3c-tf: the training diverged")
        and "Traceback" not in done.stderr
    )
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["000000000000"]


def test_a_budget_replaces_the_presets(tmp_path):
    done = ga3c_tf(
        "train", "CartPole-v1", "--preset", "smoke", "--episodes", 5, "--run-dir", tmp_path / "run", "--json"
    )
    assert json.loads(done.stdout.splitlines()[-1])["ended"] == "episodes"


@pytest.mark.slow
def test_runs_started_in_the_same_second_have_folders_of_their_own(tmp_path):
    command = [sys.executable, "-m", "ga3c_tf", "train", "CartPole-v1", "--preset", "smoke", "--steps", "200"]
    runs = [subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [run.wait() for run in runs] == [0, 0, 0]
    assert len(list((tmp_path / "runs").iterdir())) == 3


def test_a_users_environment_and_network_are_found_in_the_current_folder(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import gymnasium, keras\n"
        "from gymnasium.envs.classic_control import CartPoleEnv\n"
        "gymnasium.register('Mine-v0', CartPoleEnv, max_episode_steps=50)\n"
        "def build(shape, dtype, actions):\n"
        "    states = keras.Input(shape, dtype=dtype.name)\n"
        "    hidden = keras.layers.Dense(8, activation='relu')(states)\n"
        "    values = keras.layers.Reshape(())(keras.layers.Dense(1)(hidden))\n"
        "    return keras.Model(states, [keras.layers.Dense(actions)(hidden), values])\n"
    )
    (tmp_path / "broken.py").write_text("import gymnasium\n1 / 0\n")
    script = str(Path(sys.executable).with_name("ga3c-tf"))
    command = [
        script,
        "train",
        "mine:Mine-v0",
        "--network",
        "mine:build",
        "--preset",
        "smoke",
        "--steps",
        "300",
    ]
    # Which is not for us, though `mine` imports Keras first.
    another = {**ENVIRONMENT, "KERAS_BACKEND": "jax"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=another)
    assert done.returncode == 0, done.stderr
    assert "ZeroDivisionError: division by zero" in refused("train", "broken:Mine-v0", cwd=tmp_path)


def test_a_legacy_id_is_mapped_with_a_note(tmp_path):
    done = ga3c_tf(
        "train",
        "PongNoFrameskip-v4",
        "--preset",
        "smoke",
        "--steps",
        50,
        "--run-dir",
        tmp_path / "run",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    assert "PongNoFrameskip-v4 is called ALE/Pong-v5 today" in done.stderr
    assert "; now: frame skip 4, repeat action probability 0.25 and no no-ops at the start\n" in done.stderr
    assert json.loads((tmp_path / "run" / "config.json").read_text())["env_id"] == "ALE/Pong-v5"


# serial


def test_serial_gives_the_same_weights_to_the_last_bit(tmp_path):
    from ga3c_tf.config import Config

    weights = []
    for number, seed in enumerate((1, 1, 2)):
        folder = tmp_path / str(number)
        done = ga3c_tf(
            "train",
            "ALE/Pong-v5",
            "--system",
            "serial",
            "--agents",
            2,
            "--seed",
            seed,
            "--steps",
            80,
            "--min-training-batch",
            0,
            "--run-dir",
            folder,
        )
        assert done.returncode == 0, done.stderr
        assert Config.from_json((folder / "config.json").read_text()).system == "serial"
        checkpoint = max((folder / "checkpoints").iterdir())
        import tensorflow as tf

        reader = tf.train.load_checkpoint(str(checkpoint / "checkpoint"))
        weights.append(
            {
                name: reader.get_tensor(name).tobytes()
                for name in reader.get_variable_to_shape_map()
                if name.startswith(("weights", "mean_square", "version"))
            }
        )
    assert weights[0] == weights[1] != weights[2]


@pytest.mark.parametrize(
    "settings",
    [
        {"num_agents": 3, "clip_rewards": False, "system": "serial", "minutes": 0.25, "network": "large-2"},
        {},
        {"adjustment": "fast", "max_agents": 64},
        {"system": "a2c", "steps": 7, "t_max": 3},
        {"system": "a3c"},
        {
            "epochs": 3,
            "clip_ratio": 0.1,
            "steps": 7,
            "beta_end": 0.0,
            "anneal_fraction": 0.5,
            "optimizer": "adam",
        },
    ],
)
def test_train_understands_the_arguments_that_a_config_gives(settings):
    config = Config(env_id="CartPole-v1", seed=0, **settings)
    context = cli.commands["train"].make_context("train", config.arguments())
    given = {name: value for name, value in context.params.items() if name != "as_json"}
    assert Config.from_preset(given.pop("preset"), given) == config


def test_a_current_folder_that_was_removed_is_one_line(tmp_path):
    """It is removed once the command is in it, and before the command begins."""
    (tmp_path / "gone").mkdir()
    words = ["train", "CartPole-v1", "--preset", "smoke", "--run-dir", tmp_path / "run"]
    done = ga3c_tf(*words, fresh=True, cwd=tmp_path / "gone", preexec_fn=(tmp_path / "gone").rmdir)
    assert done.returncode == 2 and not (tmp_path / "run").exists()
    assert done.stderr == "ga3c-tf: the current folder has been removed; change to one that exists\n"


# user code that ends the program

QUITTER = """
import os, sys
import gymnasium
import numpy as np

class Quitter(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (4,))
    action_space = gymnasium.spaces.Discrete(2)
    metadata = {"render_modes": ["rgb_array"]}
    steps = 0

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        quit_at("init")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        quit_at("reset")
        return np.zeros(4, np.float32), {}

    def step(self, action):
        self.steps += 1
        if self.steps == 5:
            quit_at("step 5")
        return np.zeros(4, np.float32), 1.0, self.steps % 10 == 0, False, {}

    def render(self):
        quit_at("render")
        return np.zeros((32, 32, 3), np.uint8)

def quit_at(place):
    if os.environ["QUIT_AT"] == place:
        sys.exit()

def network(state_shape, state_dtype, num_actions):
    sys.exit()

def loss(batch, config):
    sys.exit()

gymnasium.register("Quitter-v0", Quitter)
"""


@pytest.mark.parametrize(
    ("quit_at", "code", "words"),
    [
        ("init", 2, ["train"]),
        ("reset", 2, ["train"]),
        ("step 5", 1, ["train"]),
        ("", 2, ["train", "--network", "quitter:network"]),
        ("", 2, ["train", "--loss", "quitter:loss"]),
        ("render", 2, ["play"]),
        ("step 5", 1, ["play"]),
        ("step 5", 1, ["evaluate"]),
    ],
)
def test_user_code_that_ends_the_program_has_failed(tmp_path, quit_at, code, words):
    (tmp_path / "quitter.py").write_text(QUITTER)
    command, *options = words
    environment = {**ENVIRONMENT, "QUIT_AT": ""}
    training = (
        "train",
        "quitter:Quitter-v0",
        "--system",
        "serial",
        "--agents",
        2,
        "--steps",
        60,
        "--run-dir",
        "run",
    )
    if command != "train":
        assert ga3c_tf(*training, env=environment, cwd=tmp_path).returncode == 0
    film = ("play", "run", "--video", "film.gif", "--episodes", 3, "--trust-code")
    scores = ("evaluate", "run", "--episodes", 3, "--trust-code")
    arguments = {"train": (*training, *options), "play": film, "evaluate": scores}[command]
    done = ga3c_tf(*arguments, env={**environment, "QUIT_AT": quit_at}, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    last = done.stderr.splitlines()[-1]
    assert "SystemExit" in last or (command == "evaluate" and "an environment failed" in last)
    assert code == 1 or done.stderr.count("\n") == 1


@pytest.mark.parametrize("closed", [pytest.param((0, 2), marks=pytest.mark.slow), (0, 1, 2)])
def test_a_training_needs_no_standard_streams(tmp_path, closed):
    """As where a service starts it; a file with the number of a stream would get what is written to it."""

    def close():
        for descriptor in closed:
            os.close(descriptor)

    words = (
        "train",
        "CartPole-v1",
        "--system",
        "serial",
        "--agents",
        2,
        "--steps",
        50,
        "--run-dir",
        tmp_path / "run",
    )
    done = ga3c_tf(*words, fresh=True, preexec_fn=close)
    assert done.returncode == 0
    assert max(int(path.name) for path in (tmp_path / "run" / "checkpoints").glob("0*")) >= 50


def test_a_program_without_standard_streams_can_import_tensorflow():
    program = "import os; [os.close(number) for number in (0, 2)]; import sys; sys.stderr = None\n"
    program += "import ga3c_tf.model.tensorflow; print('imported')"
    assert (
        subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True).stdout
        == "imported\n"
    )

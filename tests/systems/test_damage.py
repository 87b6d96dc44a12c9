"""Damaged and hostile run folders, and input nobody would type: refused clearly, or put right and said so."""

import contextlib
import io
import json
import random
import shutil
import signal
import sys
from pathlib import Path
from unittest import mock

import pytest
from commands import ga3c_tf
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.cli import main as cli
from ga3c_tf.cli import training as commands
from ga3c_tf.config import Config, spelled
from ga3c_tf.environments.environment import describe_environment
from ga3c_tf.errors import UserError
from ga3c_tf.host.signals import ENDING
from ga3c_tf.runs.checkpoints import Checkpoints
from ga3c_tf.runs.csv_rows import EPISODE_COLUMNS, METRIC_COLUMNS, read_rows
from ga3c_tf.runs.folder import RunFolder, check_no_links, read_config
from ga3c_tf.runs.log import RunLog
from ga3c_tf.trained.pretrained import PUBLISHED
from ga3c_tf.workers.supervisor import AgentSupervisor

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A short serial run, resumed once: two checkpoints or more."""
    path = tmp_path_factory.mktemp("damage") / "run"
    words = [
        "train",
        "CartPole-v1",
        "--system",
        "serial",
        "--agents",
        "2",
        "--steps",
        "300",
        "--seed",
        "1",
        "--run-dir",
        path,
    ]
    for arguments in (words, ["resume", path, "--steps", "600"]):
        ga3c_tf(*arguments, check=True)
    return path


@pytest.fixture(scope="module")
def model(run):
    config = read_config(run)
    return Model(config, describe_environment(config), seed=0)


def restored(folder, model, warnings):
    """Settings, counters and weights that a resume would begin with."""
    opened = RunFolder.open(folder)
    try:
        checkpoints = Checkpoints(folder, model.checkpoint_objects(), warnings.append)
        counters = checkpoints.restore("latest")
        log = RunLog(
            folder,
            counters["agent_steps"],
            counters["time_s"],
            counters["stats"]["episodes"],
            warnings.append,
        )
        log.close()
    finally:
        opened.close()
    return opened.config, counters, [weight.numpy().tobytes() for weight in model.network.weights]


def intact_states(run, model):
    """What each checkpoint holds, by its agent steps."""
    states = {}
    checkpoints = Checkpoints(run, model.checkpoint_objects(), print)
    for step in checkpoints.steps():
        counters = checkpoints.restore(step)
        states[counters["agent_steps"]] = (
            counters,
            [weight.numpy().tobytes() for weight in model.network.weights],
        )
    return states


def damage(folder, chance):
    """Truncates, flips a bit of, empties, fills or removes one file; returns what was done."""
    file = chance.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    data = bytearray(file.read_bytes())
    kind = chance.choice(["truncate", "flip", "flip", "flip", "empty", "noise", "remove"])
    if kind == "remove":
        file.unlink()
    elif kind == "empty":
        file.write_bytes(b"")
    elif kind == "truncate":
        file.write_bytes(data[: chance.randrange(len(data) + 1)])
    elif data:
        for place in [chance.randrange(len(data))] if kind == "flip" else range(0, len(data), 7):
            data[place] ^= 1 << chance.randrange(8)
        file.write_bytes(data)
    return f"{kind} {file.relative_to(folder)}"


def outcome_of_resuming(folder, model, config, states, done):
    """What resuming the damaged folder comes to: 'refused', or goes on with the 'newest' or 'older' state."""
    warnings = []
    try:
        found, counters, weights = restored(folder, model, warnings)
    except UserError as error:
        assert "\n" not in str(error)
        return "refused"
    assert found == config, done
    assert states[counters["agent_steps"]] == (counters, weights), done
    if counters["agent_steps"] == max(states):
        return "newest"
    assert any("damaged" in text for text in warnings), done
    return "older"


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_random_damage_is_refused_or_passed_over_with_a_word(run, model, tmp_path, seed):
    chance, config, states = random.Random(seed), read_config(run), intact_states(run, model)
    for number in range(200 if seed else 30):
        folder = shutil.copytree(run, tmp_path / str(number))
        outcome_of_resuming(folder, model, config, states, damage(folder, chance))
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("pattern", "place", "expected"),
    [
        ("config.json", 0, "refused"),
        ("checkpoints/*/checkpoint.data*", -1, "older"),
        ("checkpoints/*/checkpoint.data*", 0, "newest"),
        ("checkpoints/*/checkpoint.index", -1, "older"),
    ],
)
def test_what_is_damaged_decides_what_a_resume_goes_on_with(run, model, tmp_path, pattern, place, expected):
    states, folder = intact_states(run, model), shutil.copytree(run, tmp_path / "run")
    assert len(states) >= 3
    file = sorted(folder.glob(pattern))[place]
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    assert outcome_of_resuming(folder, model, read_config(run), states, f"flip {file}") == expected


def test_a_folder_that_is_damaged_all_over_is_refused_in_one_line(run, tmp_path):
    folder = shutil.copytree(run, tmp_path / "run")
    for file in folder.glob("checkpoints/*/checkpoint.data*"):
        file.write_bytes(b"nothing")
    done = ga3c_tf("resume", folder, "--steps", 900)
    assert done.returncode == 2 and "every checkpoint" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_half_a_line_is_dropped_and_the_rest_goes_on(run, tmp_path):
    folder = shutil.copytree(run, tmp_path / "run")
    for name in ("metrics.csv", "episodes.csv"):
        text = (folder / name).read_text()
        (folder / name).write_text(text[: len(text) - 9])
    done = ga3c_tf("resume", folder, "--steps", 900)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("1 damaged row is left out") == 2
    assert read_rows(folder / "metrics.csv", METRIC_COLUMNS) and read_rows(
        folder / "episodes.csv", EPISODE_COLUMNS
    )


def test_settings_that_the_run_did_not_write_are_refused(run, tmp_path):
    folder = shutil.copytree(run, tmp_path / "run")
    text = (folder / "config.json").read_text()
    (folder / "config.json").write_text(text.replace('"t_max": 5', '"t_max": 7'))
    with pytest.raises(UserError, match="not what the run wrote: damaged, or edited"):
        RunFolder.open(folder)
    (folder / "config.json").write_text(text)
    RunFolder.open(folder).close()


def test_a_kill_between_the_two_writes_of_a_resume_locks_nobody_out(run, tmp_path, monkeypatch):
    """meta.json knows the new settings, config.json has the old ones, and the old run has no digests."""
    folder = shutil.copytree(run, tmp_path / "run")
    (folder / "meta.json").write_text('{"sessions": [{}]}')
    opened = RunFolder.open(folder)
    monkeypatch.setattr(
        "ga3c_tf.runs.folder.write_aside",
        lambda file, text: file.name == "meta.json" and file.write_text(text),
    )
    opened.continue_with(opened.config.replace(steps=900), ["ga3c-tf"], {"device": "/CPU:0", "gpus": []}, 1.5)
    opened.close()
    assert read_config(folder).steps != 900
    (folder / "config.json").write_text(read_config(folder).replace(steps=900).to_json())
    assert read_config(folder).steps == 900


def test_one_wrong_quotation_mark_takes_one_row(run, tmp_path):
    folder = shutil.copytree(run, tmp_path / "run")
    lines = (folder / "episodes.csv").read_text().splitlines()
    lines[2] = '"' + lines[2][1:]
    lines[4] = lines[4].replace(",", ",,", 1)
    (folder / "episodes.csv").write_text("\n".join(lines) + "\n")
    assert len(read_rows(folder / "episodes.csv", EPISODE_COLUMNS)) == len(lines) - 3


def test_a_folder_of_weights_is_no_run_folder(tmp_path):
    folder = shutil.copytree(PUBLISHED / "minatar_freeway", tmp_path / "weights")
    before = sorted(folder.iterdir())
    with pytest.raises(
        UserError, match=r"weights is not a run folder: it has neither meta.json nor checkpoints"
    ):
        RunFolder.open(folder)
    assert sorted(folder.iterdir()) == before


def test_a_damaged_meta_file_is_kept_aside_and_told(run, tmp_path):
    folder = shutil.copytree(run, tmp_path / "run")
    said = []
    RunFolder.open(folder, said.append).close()
    assert not said
    (folder / "meta.json").write_text("{")
    opened = RunFolder.open(folder, said.append)
    assert len(said) == 1 and "meta.json is missing or damaged; config.json is not checked" in said[0]
    opened.continue_with(opened.config, ["ga3c-tf"], {"device": "/CPU:0", "gpus": []}, 1.5)
    opened.close()
    assert len(json.loads((folder / "meta.json").read_text())["sessions"]) == 1
    [aside] = folder.glob("meta.json.damaged-*")
    assert aside.read_text() == "{"


# hostile run folders


@pytest.mark.parametrize(
    "place", ["lock", "metrics.csv.new", "checkpoints/being-written", "checkpoints/000000000001"]
)
def test_links_in_a_run_folder_are_not_followed(run, tmp_path, place):
    folder, precious = shutil.copytree(run, tmp_path / "run"), tmp_path / "precious"
    if "." in place or place == "lock":
        precious.write_text("mine")
    else:
        precious.mkdir()
        (precious / "mine").write_text("mine")
    (folder / place).unlink(missing_ok=True)
    (folder / place).symlink_to(precious)
    done = ga3c_tf("resume", folder, "--steps", 900)
    assert done.returncode == 2 and "is a link, which no run makes" in done.stderr
    assert (precious / "mine" if precious.is_dir() else precious).read_text() == "mine"


def test_links_that_a_tracker_makes_in_its_folder_are_its_own(tmp_path):
    (tmp_path / "wandb").mkdir()
    (tmp_path / "wandb" / "latest-run").symlink_to("run-1")
    check_no_links(tmp_path)
    (tmp_path / "wandb").rename(tmp_path / "elsewhere")
    (tmp_path / "wandb").symlink_to("elsewhere")
    with pytest.raises(UserError, match="wandb is a link"):
        check_no_links(tmp_path)


@pytest.mark.parametrize(
    ("setting", "words"),
    [("network", ["evaluate"]), ("loss", ["play", "--video", "film.mp4"]), ("env_id", ["resume"])],
)
def test_code_that_a_run_folder_names_is_not_run_unasked(run, tmp_path, setting, words):
    folder = shutil.copytree(run, tmp_path / "run")
    (tmp_path / "evil.py").write_text("open('harm', 'w').write('done')\n")
    (folder / "config.json").write_text(read_config(run).replace(**{setting: "evil:Evil-v0"}).to_json())
    (folder / "meta.json").unlink()
    done = ga3c_tf(*words, folder, cwd=tmp_path)
    assert done.returncode == 2 and "add --trust-code" in done.stderr, done.stderr
    assert not (tmp_path / "harm").exists()


def test_nothing_unpickles_evaluates_or_starts_a_shell():
    """What a file or an id says is data: no call in the sources could make it code."""
    forbidden = (
        "pickle.load",
        "load_model",
        "eval(",
        "exec(",
        "shell=True",
        "os.system",
        "allow_pickle=True",
        "yaml.",
    )
    for folder in (ROOT / "ga3c_tf", ROOT / "reproduce"):
        for file in folder.rglob("*.py"):
            # These bytes are of an object of this program, made in its own memory.
            text = file.read_text().replace("cloudpickle.loads(self._content)", "")
            assert not [word for word in forbidden if word in text], file


# fuzzing

WORDS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [
            "nan",
            "inf",
            "-inf",
            "-1",
            "0",
            "1e999",
            "999999999999999999999",
            "\0",
            "",
            " ",
            "--",
            "-h",
            "..",
            "/",
        ]
    ),
    st.integers().map(str),
    st.floats().map(str),
)
SETTINGS = [name for name in Config.__dataclass_fields__ if name not in ("env_id", "run_dir")]
OPTIONS = st.tuples(st.sampled_from([spelled(name) for name in SETTINGS] + ["--preset", "--no-such"]), WORDS)
COMMANDS = st.one_of(
    st.lists(WORDS, max_size=4),
    st.tuples(
        st.sampled_from(["train", "resume", "evaluate", "play", "plot", "report", "games"]), WORDS, OPTIONS
    ).map(lambda parts: [parts[0], parts[1], *parts[2]]),
    st.tuples(
        st.sampled_from(["CartPole-v1", "ALE/Pong-v5", "Nope-v0", "a:b", "x" * 300]),
        st.lists(OPTIONS, max_size=3),
    ).map(lambda parts: ["train", parts[0], *(word for option in parts[1] for word in option)]),
    st.tuples(st.sampled_from(["--figure", "--games", "--budget", "--seeds"]), WORDS).map(
        lambda parts: ["reproduce", "--dry-run", "--figure", "tps", *parts]
    ),
)


def run_without_a_step(training, run, as_json, execute_run=commands._run):
    """A whole run, from its folder to its summary, that is asked to end before it begins."""
    training.stop("the test")
    return execute_run(training, run, as_json)


def outcome(words):
    """Exit code and output of the command; trainings start all threads, but no agent process, and end."""
    output = io.StringIO()
    handlers = {number: signal.getsignal(number) for number in ENDING}
    with (
        mock.patch.object(sys, "argv", ["ga3c-tf", *words]),
        mock.patch.object(commands, "_run", run_without_a_step),
        mock.patch.object(
            AgentSupervisor, "start", lambda processes, number, target, *args, pipe: pipe.close()
        ),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
        pytest.raises(SystemExit) as ended,
    ):
        cli.main()
    for number, handler in handlers.items():
        signal.signal(number, handler)
    return ended.value.code or 0, output.getvalue()


FUZZING = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
FEW = settings(FUZZING, max_examples=20)
MANY = settings(FUZZING, max_examples=150)


def check_words(folder, monkeypatch, words):
    """Checks that a command ends with 0, or with 2 and one line."""
    monkeypatch.chdir(folder)
    code, output = outcome(words)
    assert code in (0, 2) and "Traceback" not in output
    if code == 2 and output and "Usage" not in output:
        assert output.splitlines()[-1].startswith("ga3c-tf: ")


@FEW
@given(COMMANDS)
@example(["train", "CartPole-v1", "--predictors", "17"])
@example(["train", "CartPole-v1", "--trainers", "17"])
@example(["train", "CartPole-v1", "--rolling-episodes", "99999999999999999999"])
@example(["train", "ALE/Pong-v5", "--frame-stack", "1000000000"])
@example(["train", "ALE/Pong-v5", "--noop-max", "99999999999999999999"])
def test_whatever_is_typed_ends_with_0_or_2_and_one_line(tmp_path, monkeypatch, words):
    check_words(tmp_path, monkeypatch, words)


@pytest.mark.slow
@MANY
@given(COMMANDS)
def test_more_that_may_be_typed_ends_with_0_or_2_and_one_line(tmp_path, monkeypatch, words):
    """Takes half a minute."""
    check_words(tmp_path, monkeypatch, words)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
CONFIGS = st.one_of(
    st.binary(max_size=60),
    JSON.map(lambda value: json.dumps(value).encode()),
    st.dictionaries(st.sampled_from(list(Config.__dataclass_fields__)), JSON, max_size=4).map(
        lambda changes: json.dumps(
            {**json.loads(Config(env_id="CartPole-v1", seed=1).to_json()), **changes}
        ).encode()
    ),
)


def check_config(run, place, monkeypatch, text):
    """Checks that a resume of the run with this config.json ends with 0, or with 2 and one line."""
    monkeypatch.chdir(place)
    shutil.rmtree(place / "run", ignore_errors=True)
    folder = shutil.copytree(run, place / "run")
    (folder / "config.json").write_bytes(text)
    (folder / "meta.json").unlink()
    code, output = outcome(["resume", "run", "--steps", "900"])
    assert code in (0, 2) and "Traceback" not in output
    if code == 2:
        assert output.splitlines()[-1].startswith("ga3c-tf: ")


@FEW
@given(CONFIGS)
def test_whatever_config_json_says_resume_ends_with_0_or_2(run, tmp_path, monkeypatch, text):
    check_config(run, tmp_path, monkeypatch, text)


@pytest.mark.slow
@MANY
@given(CONFIGS)
def test_whatever_else_config_json_says_resume_ends_with_0_or_2(run, tmp_path, monkeypatch, text):
    """Takes half a minute."""
    check_config(run, tmp_path, monkeypatch, text)

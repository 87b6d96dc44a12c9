"""Experiment trackers get the rows of metrics.csv, and can neither end nor hold up a training."""

import json
import os
import pty
import signal
import struct
import subprocess
import threading
import time

import helpers
import pytest
from commands import ENVIRONMENT, ga3c_tf

import ga3c_tf as package
from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.runs import outcomes, trackers
from ga3c_tf.runs.csv_rows import METRIC_COLUMNS, read_columns

TRAIN = ("train", "CartPole-v1", "--preset", "smoke", "--seed", 1, "--log-seconds", 0.5)
ROW = {"time_s": 1.5, "agent_steps": 100, "pps": 50.0, "policy_lag_mean": float("nan"), "progress": None}


def trained(tracker, folder, environment):
    """A run of seconds with a tracker, and a second session of it."""
    done = ga3c_tf(*TRAIN, "--track", tracker, "--run-dir", folder, cwd=folder.parent, env=environment)
    assert done.returncode == 0 and "goes on without it" not in done.stderr, done.stderr
    done = ga3c_tf("resume", folder, "--steps", 6000, cwd=folder.parent, env=environment)
    assert done.returncode == 0 and "goes on without it" not in done.stderr, done.stderr
    return read_columns(folder / "metrics.csv", METRIC_COLUMNS)


@pytest.fixture(scope="module")
def mlflow_store(tmp_path_factory):
    """A local store of MLflow: making one takes it seconds."""
    return f"sqlite:///{tmp_path_factory.mktemp('mlflow') / 'store.db'}"


def test_mlflow_has_what_metrics_csv_has(tmp_path, mlflow_store):
    from mlflow import MlflowClient

    began = 1000 * time.time()
    metrics = trained("mlflow", tmp_path / "pole", ENVIRONMENT | {"MLFLOW_TRACKING_URI": mlflow_store})
    client = MlflowClient(tracking_uri=mlflow_store)
    [run] = client.search_runs([client.get_experiment_by_name(trackers.PROJECT).experiment_id])
    assert run.info.run_name == "pole" and run.info.status == "FINISHED"
    assert (
        run.data.params["env_id"] == run.data.tags["env_id"] == "CartPole-v1"
        and run.data.tags["system"] == "ga3c"
    )
    for name in ("updates", "entropy"):
        history = client.get_metric_history(run.info.run_id, name)
        assert all(began < each.timestamp < 1000 * time.time() for each in history)
        logged = {each.step: each.value for each in history}
        rows = zip(metrics["agent_steps"], metrics[name], strict=True)
        # On a busy machine there are rows without a new step; those have no entropy either.
        assert logged == pytest.approx({step: value for step, value in rows if value == value}, rel=1e-4)


def test_mlflow_is_told_why_a_run_ended_and_begins_anew_in_a_store_without_it(
    tmp_path, monkeypatch, mlflow_store
):
    from mlflow import MlflowClient

    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlflow_store)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "mine")
    client = MlflowClient()
    known = "0" * 32
    for ended, status in (
        (outcomes.INTERRUPTED, "KILLED"),
        (outcomes.FAILED, "FAILED"),
        (outcomes.STEPS, "FINISHED"),
    ):
        tracker = trackers.MlflowTracker(tmp_path, Config(), known)
        assert (tracker.id == known) == (known != "0" * 32)
        known = tracker.id
        assert client.get_run(known).info.status == "RUNNING"
        tracker.close(ended)
        assert client.get_run(known).info.status == status
    [run] = client.search_runs([client.get_experiment_by_name("mine").experiment_id])
    assert run.info.run_id == known


def records_of(log):
    """The records of a log of LevelDB, which W&B writes offline: blocks of 32 KiB after 7 bytes of its own.

    A part of a record is its checksum (4 bytes), its length (2), its type (1: whole, 2: first, 3: middle, 4:
    last) and its bytes; no part begins in the last 6 bytes of a block.
    """
    place = 7
    record = b""
    while place + 7 <= len(log):
        left = 32_768 - place % 32_768
        if left < 7:
            place += left
            continue
        length, kind = struct.unpack_from("<HB", log, place + 4)
        record += log[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):
            yield record
            record = b""


def test_wandb_has_what_metrics_csv_has(tmp_path):
    from wandb.proto.wandb_internal_pb2 import Record

    metrics = trained(
        "wandb", tmp_path / "pole", ENVIRONMENT | {"WANDB_MODE": "offline", "WANDB_PROJECT": "mine"}
    )
    found = {}
    names = set()
    # In time: a session may begin where one ended.
    files = sorted((tmp_path / "wandb").glob("offline-run-*/*.wandb"))
    assert len(files) == 2
    for file in files:
        for record in map(Record.FromString, records_of(file.read_bytes())):
            if record.HasField("run"):
                names.add((record.run.display_name, record.run.project, *record.run.tags, record.run.run_id))
            items = {
                item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item
            }
            if items:
                found[items["agent_steps"]] = items["updates"]
    [name] = names
    assert name[:-1] == ("pole", "mine", "CartPole-v1", "ga3c")
    assert found == dict(zip(metrics["agent_steps"], metrics["updates"], strict=True))


def test_wandb_without_a_login_asks_nothing_on_a_terminal(tmp_path):
    outer, terminal = pty.openpty()
    environment = {name: value for name, value in ENVIRONMENT.items() if not name.startswith("WANDB_")}
    done = ga3c_tf(
        *(*TRAIN, "--track", "wandb", "--run-dir", tmp_path / "pole"),
        capture_output=False,
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=terminal,
        cwd=tmp_path,
        env=environment | {"HOME": str(tmp_path)},
    )
    told = os.read(outer, 65_536).decode()
    assert done.returncode == 0 and told.count("there is no API key: run 'wandb login' first") == 1
    assert "choice" not in told
    for end in (outer, terminal):
        os.close(end)


class Scripted:
    """A tracker that does something in one of its calls."""

    id = "1"
    ended = None

    def __init__(self, where, act):
        self._where = where
        self._act = act
        self.rows = []
        self._pass("begin")

    def _pass(self, where):
        if where == self._where:
            self._act()

    def log(self, agent_steps, values):
        self._pass("log")
        self.rows.append((agent_steps, values))

    def close(self, ended):
        self._pass("close")
        self.ended = ended


def fail():
    raise OSError("no network")


def leave():
    raise SystemExit(1)


@pytest.mark.parametrize("where", ["begin", "log", "close"])
@pytest.mark.parametrize("act", [fail, leave])
def test_a_tracker_that_fails_is_told_once_and_nothing_else(tmp_path, monkeypatch, where, act):
    monkeypatch.setitem(trackers.TRACKERS, "mlflow", lambda *_: Scripted(where, act))
    warned = []
    tracking = trackers.Tracking(tmp_path, Config(track="mlflow"), warned.append)
    for _ in range(3):
        tracking.log(ROW)
        time.sleep(0.01)
    tracking.close(outcomes.STEPS)
    [line] = warned
    assert line.startswith("--track mlflow: ") and line.endswith("the training goes on without it")


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


class Breaking(helpers.ShortIsBad):
    """Fails in its second step."""

    steps = 0

    def step(self, action):
        self.steps += 1
        if self.steps == 2:
            raise ArithmeticError("no step")
        return super().step(action)


@pytest.mark.parametrize(
    ("where", "act", "settings", "ended"),
    [
        ("never", fail, {"env": "CartPole-v1", "steps": 100, "system": "a2c"}, outcomes.STEPS),
        ("log", fail, {"env": "CartPole-v1", "steps": 100, "system": "serial"}, None),
        ("begin", interrupt, {"env": "CartPole-v1", "minutes": 1, "system": "serial"}, outcomes.INTERRUPTED),
        (
            "never",
            fail,
            {"env": lambda render_mode=None: Breaking(), "steps": 100, "system": "serial"},
            outcomes.FAILED,
        ),
    ],
)
def test_a_training_tells_its_tracker_why_it_ended(tmp_path, monkeypatch, where, act, settings, ended):
    begun = []

    def begin(*arguments):
        begun.append(Scripted(where, act))
        return begun[0]

    monkeypatch.setitem(trackers.TRACKERS, "mlflow", begin)
    settings |= {
        "preset": "smoke",
        "seed": 1,
        "progress": False,
        "run_dir": str(tmp_path / "run"),
        "track": "mlflow",
    }
    if ended == outcomes.FAILED:
        with pytest.raises(ArithmeticError, match="no step"):
            package.train(**settings)
    else:
        run = package.train(**settings)
        assert run.summary["ended"] == (ended or outcomes.STEPS)
    assert begun[0].ended == ended


def test_a_tracker_that_hangs_holds_nothing_up(tmp_path, monkeypatch):
    hung = threading.Event()

    def hang():
        hung.wait()
        fail()

    monkeypatch.setitem(trackers.TRACKERS, "mlflow", lambda *_: Scripted("log", hang))
    monkeypatch.setattr(trackers, "CLOSE_SECONDS", 0.1)
    warned = []
    tracking = trackers.Tracking(tmp_path, Config(track="mlflow"), warned.append)
    for _ in range(trackers.MOST_WAITING + 10):
        tracking.log(ROW)
    tracking.close(outcomes.STEPS)
    hung.set()
    tracking._thread.join()
    [line] = warned
    assert "not done after 0.1 s" in line


def test_what_has_no_value_is_left_out(tmp_path, monkeypatch):
    tracker = Scripted("never", fail)
    monkeypatch.setitem(trackers.TRACKERS, "mlflow", lambda *_: tracker)
    tracking = trackers.Tracking(tmp_path, Config(track="mlflow"), print)
    tracking.log(ROW)
    tracking.close(outcomes.STEPS)
    assert tracker.rows == [(100, {"time_s": 1.5, "agent_steps": 100, "pps": 50.0})]


def test_a_tracker_that_is_not_installed_is_refused(monkeypatch):
    monkeypatch.setattr(trackers.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        UserError, match=r"needs the package wandb: pip install '.\[track\]'.*--set track=none"
    ):
        trackers.check_tracker(Config(track="wandb"))
    trackers.check_tracker(Config())

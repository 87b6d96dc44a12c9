"""What earlier versions have recorded still loads, under the names and values of today."""

import dataclasses
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest

import ga3c_tf
from ga3c_tf.config import Config, migrations
from ga3c_tf.config.migrations import SCHEMA, Changed, Removed, Renamed, first_form, migrated, schema_version
from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.runs.archive import archived_ids, read_run
from ga3c_tf.runs.folder import RunFolder, read_config
from ga3c_tf.runs.sessions import read_sessions
from ga3c_tf.trained.evaluation import RandomAgent
from ga3c_tf.trained.pretrained import PUBLISHED, published_names

TESTS = Path(__file__).parent
RUN_OF_0_2_0 = TESTS / "data" / "run-0.2.0.tar.xz"
"""A run of CartPole, made by version 0.2.0 with --log-seconds 0.005, which was allowed then."""
RUNS = TESTS.parent / "results" / "runs"


def run_of_0_2_0(folder):
    with tarfile.open(RUN_OF_0_2_0) as tar:
        # Python 3.11.2 has no filters, and 3.12 warns without one.
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(folder)
    return folder / "run-0.2.0"


def test_a_checkpoint_of_0_2_0_acts_as_it_did_and_goes_on(tmp_path):
    folder = run_of_0_2_0(tmp_path)
    assert SCHEMA not in json.loads((folder / "config.json").read_text())
    policy, value = ga3c_tf.load_agent(folder, checkpoint="latest").policy(np.full((1, 4), 0.1, np.float32))
    expected = json.loads((folder / "prediction.json").read_text())  # of version 0.2.0, for the same state
    np.testing.assert_allclose(policy[0], expected["policy"], rtol=1e-5)
    np.testing.assert_allclose(value[0], expected["value"], rtol=1e-5)
    before = read_config(folder)
    assert before.log_seconds == 0.01
    summary = ga3c_tf.resume(folder, progress=False, steps=before.steps + 100).summary
    assert summary["agent_steps"] >= before.steps + 100
    assert json.loads((folder / "config.json").read_text())[SCHEMA] == schema_version()
    assert read_config(folder) == before.replace(steps=before.steps + 100)


GONE = {"serial": False, "training_queue_order": "fifo"}
"""Settings that no longer exist, with the value that they have in every recorded run."""


def read_as_it_was_recorded(config, recorded):
    """Whether all settings have their recorded value; no other one has been renamed, removed or changed."""
    assert all(recorded.get(name, value) == value for name, value in GONE.items())
    values = {name: value for name, value in recorded.items() if name not in (SCHEMA, *GONE)}
    return {name: getattr(config, name) for name in values} == values


@pytest.mark.parametrize("name", published_names())
def test_the_settings_of_published_weights_are_read(name):
    recorded = json.loads((PUBLISHED / name / "config.json").read_text())
    assert read_as_it_was_recorded(read_config(PUBLISHED / name), recorded)


def test_the_settings_of_every_recorded_run_are_read():
    recorded = {run_id: read_run(RUNS / run_id)["config"] for run_id in archived_ids(RUNS)}
    assert len(recorded) >= 1309
    for name, settings in recorded.items():
        assert read_as_it_was_recorded(Config.from_json(json.dumps(settings)), settings), name


def test_an_agent_says_once_what_it_was_trained_with_and_is_no_longer_supported(
    tmp_path, monkeypatch, capsys
):
    removed = [Removed("frame_crop", 0, ("training", "playing")), Removed("nesterov", False)]
    monkeypatch.setattr(migrations, "MIGRATIONS", [*migrations.MIGRATIONS, removed])
    folder = run_of_0_2_0(tmp_path)
    (folder / "meta.json").unlink()  # it has the digest of config.json
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, "frame_crop": 8, "nesterov": True}))
    ga3c_tf.load_agent(folder, checkpoint="latest").evaluate(episodes=1)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"ga3c-tf: {folder}: frame_crop=8 is no longer supported; it is now 0"]


# settings that invented later versions rename, remove or change


def replacing(name, before, after):
    def change(settings):
        if settings.get(name) == before:
            settings[name] = after

    return change


@pytest.fixture
def invented(monkeypatch):
    """Two invented versions after today's; the second one renames what the first one has renamed."""
    further = [
        [
            Renamed("trainer_threads", "trainers"),
            Removed("nesterov", False),
            Removed("frame_crop", 0, ("training", "playing")),
            Removed("queue_name", "q", ()),
        ],
        [
            Renamed("trainers", "num_trainers"),
            Changed(replacing("loss", "a3c", "paper"), replacing("loss", "paper", "a3c")),
        ],
    ]
    monkeypatch.setattr(migrations, "MIGRATIONS", [*migrations.MIGRATIONS, *further])


def write_settings(folder, **settings):
    (folder / "meta.json").write_text('{"sessions": [{}]}')  # one that has no digest of config.json
    (folder / "config.json").write_text(json.dumps({"env_id": "CartPole-v1", "seed": 1, **settings}))


def test_config_json_says_the_version_of_its_settings():
    config = Config(num_trainers=3)
    written = json.loads(config.to_json())
    assert written.pop(SCHEMA) == schema_version() and written == dataclasses.asdict(config)
    assert Config.from_json(config.to_json()) == config


def test_an_earlier_version_is_read_under_the_names_and_values_of_today(invented):
    renamed = {"trainer_threads": 3, "loss": "a3c", "log_seconds": 0.001}
    read = Config.from_json(json.dumps({**renamed, "nesterov": True}))
    assert (read.num_trainers, read.loss, read.log_seconds) == (3, "paper", 0.01)
    assert Config.from_json(read.to_json()) == read
    between = Config.from_json(json.dumps({SCHEMA: schema_version() - 1, "trainers": 3, "loss": "a3c"}))
    assert (between.num_trainers, between.loss) == (3, "paper")


@pytest.mark.parametrize("name", ["trainer_threads", "trainers", "nesterov"])
def test_a_version_has_only_its_own_names(invented, name):
    with pytest.raises(UserError, match=f"unknown setting '{name}'"):
        Config.from_json(json.dumps({SCHEMA: schema_version(), name: 1}))


@pytest.mark.parametrize("version", [0, -1, 10**6, 1.5, "1", None, True, [1]])
def test_a_later_version_and_what_is_none_are_refused(version):
    with pytest.raises(UserError, match=f"this version of ga3c-tf reads 1 to {schema_version()}"):
        Config.from_json(json.dumps({SCHEMA: version}))


def test_a_value_that_is_not_supported_is_told_where_it_matters(invented, tmp_path, capsys):
    write_settings(tmp_path, nesterov=True, frame_crop=8, queue_name="other")
    RunFolder.open(tmp_path).close()
    of_training = "nesterov=True is no longer supported; it is now False"
    of_both = "frame_crop=8 is no longer supported; it is now 0"
    assert capsys.readouterr().err.splitlines() == [
        f"ga3c-tf: {tmp_path}: {of_training}",
        f"ga3c-tf: {tmp_path}: {of_both}",
    ]
    RandomAgent(tmp_path, seed=0)
    assert capsys.readouterr().err.splitlines() == [f"ga3c-tf: {tmp_path}: {of_both}"]
    assert read_config(tmp_path) == Config(env_id="CartPole-v1", seed=1)
    write_settings(tmp_path, nesterov=False, frame_crop=0)
    RunFolder.open(tmp_path).close()
    assert not capsys.readouterr().err


def test_a_continued_run_records_its_settings_in_the_version_of_today(invented, tmp_path):
    write_settings(tmp_path, trainer_threads=3, nesterov=True)
    run = RunFolder.open(tmp_path, lambda line: None)
    run.continue_with(run.config.replace(steps=9), [], {}, 0.0)
    run.close()
    assert read_config(tmp_path) == Config(env_id="CartPole-v1", seed=1, num_trainers=3, steps=9)
    assert json.loads((tmp_path / "config.json").read_text())[SCHEMA] == schema_version()
    assert read_sessions(tmp_path)[-1]["changed"] == {"steps": [None, 9], "nesterov": [True, None]}


def test_the_first_form_of_settings_stays_the_same(invented):
    today = {"num_trainers": 3, "loss": "paper", "num_agents": 4, "nesterov": True}
    first = {"trainer_threads": 3, "loss": "a3c", "num_agents": 4, "nesterov": True}
    assert first_form(today) == first == first_form(first)
    settings, removed = migrated(first)
    assert settings | removed == today


def test_no_name_of_an_earlier_version_is_used_again():
    """Else the first form of a setting could be mistaken for another one."""
    changes = [change for changes in migrations.MIGRATIONS for change in changes]
    before = [change.before for change in changes if isinstance(change, Renamed)]
    before += [change.name for change in changes if isinstance(change, Removed)]
    assert len(set(before)) == len(before) and not set(before) & set(Config.__dataclass_fields__)


def test_the_serial_switch_of_earlier_versions_is_a_system():
    recorded = {"num_agents": 2, "system": "ga3c"}
    for serial, system in ((True, "serial"), (False, "ga3c")):
        today = {"num_agents": 2, "system": system}
        for version in (1, 2):
            assert migrated({SCHEMA: version, **recorded, "serial": serial}).settings == today
        assert first_form(today) == recorded | ({"serial": True} if serial else {})
    assert Config.from_json(json.dumps({"serial": True})) == Config(system="serial")
    with pytest.raises(UserError, match="unknown setting 'serial'"):
        Config.from_json(json.dumps({"serial": "x"}))


def test_a_run_with_another_order_of_the_training_queue_says_that_it_is_gone(tmp_path, capsys):
    told = []
    for order in ("fifo", "lifo"):
        write_settings(tmp_path, training_queue_order=order)
        RunFolder.open(tmp_path).close()
        told.append(capsys.readouterr().err)
    assert told[0] == "" and "training_queue_order='lifo' is no longer supported; it is now 'fifo'" in told[1]
    assert read_config(tmp_path) == Config(env_id="CartPole-v1", seed=1)

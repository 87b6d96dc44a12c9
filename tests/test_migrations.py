"""Settings that an earlier version recorded, which invented later ones rename, remove or change."""

import dataclasses
import json

import pytest

from ga3c_tf.config import Config, migrations
from ga3c_tf.config.migrations import SCHEMA, Changed, Removed, Renamed, first_form, migrated, schema_version
from ga3c_tf.errors import UserError
from ga3c_tf.runs.folder import RunFolder, read_config, read_sessions
from ga3c_tf.trained.evaluation import RandomAgent


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
    with pytest.raises(UserError, match=r"serial .* is 'x'; it must be true or false"):
        Config.from_json(json.dumps({"serial": "x"}))


def test_a_run_with_another_order_of_the_training_queue_says_that_it_is_gone(tmp_path, capsys):
    told = []
    for order in ("fifo", "lifo"):
        write_settings(tmp_path, training_queue_order=order)
        RunFolder.open(tmp_path).close()
        told.append(capsys.readouterr().err)
    assert told[0] == "" and "training_queue_order='lifo' is no longer supported; it is now 'fifo'" in told[1]
    assert read_config(tmp_path) == Config(env_id="CartPole-v1", seed=1)

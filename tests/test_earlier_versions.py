"""What earlier versions have recorded still loads: a checkpoint, published weights, the runs of results/."""

import json
import tarfile
from pathlib import Path

import numpy as np
import pytest

import ga3c_tf
from ga3c_tf.config import Config, migrations
from ga3c_tf.config.migrations import SCHEMA, Removed, schema_version
from ga3c_tf.reproduce.runs.archive import archived_ids, read_run
from ga3c_tf.runs.folder import read_config
from ga3c_tf.trained.pretrained import PUBLISHED, published_names

TESTS = Path(__file__).parent
RUN_OF_0_2_0 = TESTS / "data" / "run-0.2.0.tar.xz"
"""A run of CartPole, made by version 0.2.0 with --log-seconds 0.005, which was allowed then."""
RUNS = TESTS.parent / "results" / "runs"


def run_of_0_2_0(folder):
    with tarfile.open(RUN_OF_0_2_0) as tar:
        tar.extractall(folder, filter="data")
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

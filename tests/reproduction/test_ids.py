"""The ids of runs, by which their folders are called, stay the same when settings are renamed or removed."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ga3c_tf.config.migrations import MIGRATIONS, Removed, Renamed
from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.command import Plan, reproduce
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.results.folder import ResultsFolder
from ga3c_tf.reproduce.runs.archive import archived_ids, read_run
from ga3c_tf.reproduce.runs.executor import LocalExecutor
from ga3c_tf.reproduce.runs.specs import RunSpec, run_spec

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "results" / "runs"
PLANNED = ROOT / "tests" / "data" / "planned_ids.json"
"""Number and digest of the ids that each figure plans at each budget. Only a new plan changes its entry."""


def planned_ids(figures=FIGURES):
    ids = {}
    for name, figure in figures.items():
        for budget in figure.games:
            text = "\n".join(sorted(spec.id for spec in figure.all_specs(budget)))
            digest = hashlib.sha256(text.encode()).hexdigest()[:16]
            ids[f"{name} {budget}"] = f"{text.count(chr(10)) + 1} runs, {digest}"
    return ids


def recorded_ids(runs=RUNS):
    """The id that each recorded specification has, by the id of its record."""
    return {run_id: RunSpec.from_values(read_run(runs / run_id)["spec"]).id for run_id in archived_ids(runs)}


def test_every_recorded_run_has_the_id_of_its_record():
    ids = recorded_ids()
    assert len(ids) >= 1309 and all(id == name for name, id in ids.items())


def test_the_figures_plan_the_runs_that_they_always_did():
    assert planned_ids() == json.loads(PLANNED.read_text())


def changed_package(folder):
    """A copy of the package in which `log_seconds` is `metrics_seconds` and `checkpoint_minutes` is gone."""
    compiled = shutil.ignore_patterns("__pycache__")
    package = shutil.copytree(ROOT / "ga3c_tf", folder / "ga3c_tf", ignore=compiled)
    for file in package.rglob("*.py"):
        if file.name != "migrations.py":
            file.write_text(re.sub(r"\blog_seconds\b", "metrics_seconds", file.read_text()))
    settings = package / "config" / "declared" / "run.py"
    text, count = re.subn(r"    checkpoint_minutes: float = declare\([^\n]*\)\n", "", settings.read_text())
    assert count == 1
    settings.write_text(text)
    migrations = package / "config" / "migrations.py"
    changes = '[Renamed("log_seconds", "metrics_seconds"), Removed("checkpoint_minutes", 5.0)]'
    migrations.write_text(migrations.read_text() + f"\n\nMIGRATIONS.append({changes})\n")


def test_a_renamed_and_a_removed_setting_change_no_id(tmp_path):
    """Both are given by most figures, and by most of the recorded runs."""
    changed_package(tmp_path)
    code = (
        "import json, sys, pathlib, test_ids\n"
        "from ga3c_tf.config import Config\n"
        "assert Config(metrics_seconds=3.0) and not hasattr(Config, 'checkpoint_minutes')\n"
        f"assert Config.__module__ in sys.modules and {str(tmp_path)!r} in sys.modules['ga3c_tf'].__file__\n"
        f"recorded = test_ids.recorded_ids(pathlib.Path({str(RUNS)!r}))\n"
        "print(json.dumps([test_ids.planned_ids(), recorded]))"
    )
    paths = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(__file__).parent)])}
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, env={**os.environ, **paths}, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    planned, recorded = json.loads(done.stdout)
    assert planned == planned_ids()
    assert recorded == recorded_ids()


def test_a_run_that_only_an_earlier_version_could_make_is_not_made_differently(monkeypatch, tmp_path):
    monkeypatch.setattr("ga3c_tf.config.migrations.MIGRATIONS", [*MIGRATIONS, [Removed("nesterov", False)]])
    as_before, different = (run_spec("pong", 1, minutes=1, nesterov=value) for value in (False, True))
    assert as_before.train_command(Path("x"))[:2] == ["train", "ALE/Pong-v5"]
    assert RunSpec.from_values(json.loads(different.to_json())) == different != as_before
    with pytest.raises(UserError, match=r"^pong-ga3c-.* cannot be made any more: nesterov=True is no longer"):
        different.train_command(Path("x"))
    folder = tmp_path / "runs" / different.id
    folder.mkdir(parents=True)
    result = {"status": "finished", "reason": "", "ended": "", "spec": json.loads(different.to_json())}
    (folder / "run.json").write_text(json.dumps(result))
    figure = FIGURES["pps"]
    monkeypatch.setattr(figure, "specs", lambda budget, game, seed: [different])
    with pytest.raises(UserError, match="cannot be made any more"):
        reproduce(Plan([figure], "quick", ["pong"], 1), tmp_path, True, LocalExecutor(print), print)
    assert read_run(folder) == result


def test_a_users_method_is_recorded_in_the_first_form(monkeypatch, tmp_path):
    monkeypatch.setattr("ga3c_tf.config.migrations.MIGRATIONS", [*MIGRATIONS, [Renamed("objective", "loss")]])
    folder = ResultsFolder(tmp_path)
    folder.add_method({"loss": "mine:huber"}, print)
    assert json.loads((tmp_path / "methods.json").read_text()) == [{"objective": "mine:huber"}]
    assert folder.methods() == [{"loss": "mine:huber"}]
    spec = run_spec("pong", 1, minutes=1, num_agents=4).changed({"loss": "mine:huber"})
    assert spec.config.loss == "mine:huber" and dict(spec.changes) == {"objective": "mine:huber"}
    assert RunSpec.from_values(json.loads(spec.to_json())).id == spec.id

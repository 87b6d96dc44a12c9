"""Records of runs in archives: nothing is changed by packing, and a folder is read before its record."""

import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from commands import ga3c_tf
from invented_runs import invent, made, recorded, write_table

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.runs import archive
from ga3c_tf.reproduce.runs.archive import pack, read_run, unpack
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import run_spec
from ga3c_tf.runs.log import ADJUSTMENT_COLUMNS

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
POLE = run_spec("cartpole", 1, steps=200)
OTHER_POLE = run_spec("cartpole", 2, steps=200)
PONG = run_spec("pong", 1, steps=200)


@pytest.fixture
def runs(tmp_path):
    """Three runs, each with a folder."""
    runs = tmp_path / "runs"
    for spec in (POLE, OTHER_POLE, PONG):
        invent(runs, spec, config={"env_id": spec.config.env_id, "seed": spec.seed})
    write_table(runs / PONG.id / "adjustment.csv", ADJUSTMENT_COLUMNS, [{"why": '"faster, by 3 %"'}])
    (runs / PONG.id / "checkpoints").mkdir()
    (runs / PONG.id / "episodes.csv").write_text("large")
    return runs


def without_folders(runs):
    """Remove all run folders, so that only the archives are left."""
    for folder in runs.glob("*/"):
        shutil.rmtree(folder)


def test_a_packed_run_reads_as_its_folder_did(runs):
    before = {spec: RecordedRun.of(spec, runs) for spec in (POLE, OTHER_POLE, PONG)}
    numbers = [(run.metrics, run.curve, run.adjustment, run.hours) for run in before.values()]
    contents = {file: file.read_bytes() for file in runs.glob("*/*.*") if file.name != "episodes.csv"}
    assert pack(runs) == {runs / "cartpole.tar.xz": 2, runs / "pong.tar.xz": 1}
    without_folders(runs)
    assert {spec: RecordedRun.of(spec, runs) for spec in before} == before
    again = [RecordedRun.of(spec, runs) for spec in before]
    np.testing.assert_equal([(run.metrics, run.curve, run.adjustment, run.hours) for run in again], numbers)
    for archived in runs.glob("*.tar.xz"):
        with tarfile.open(archived) as tar:
            for member in tar:
                assert tar.extractfile(member).read() == contents.pop(runs / member.name)
    assert contents == {}


def test_the_same_runs_give_the_same_bytes(runs, tmp_path):
    pack(runs)
    first = {file.name: file.read_bytes() for file in runs.glob("*.tar.xz")}
    later = tmp_path / "later" / "runs"
    later.mkdir(parents=True)
    for folder in sorted(runs.glob("*/"), reverse=True):
        shutil.copytree(folder, later / folder.name, copy_function=shutil.copyfile)
        pack(later)
    assert {file.name: file.read_bytes() for file in later.glob("*.tar.xz")} == first
    assert pack(later) == {}


def test_a_run_made_again_is_read_from_its_folder_and_replaces_its_record(runs):
    pack(runs)
    without_folders(runs)
    (runs / POLE.id).mkdir()
    assert RecordedRun.of(POLE, runs).result == {}  # begun anew, and not finished
    shutil.rmtree(runs / POLE.id)
    recorded(invent(runs, POLE), reason="made again")
    assert pack(runs) == {runs / "cartpole.tar.xz": 1}
    without_folders(runs)
    assert read_run(runs / POLE.id)["reason"] == "made again" and RecordedRun.of(OTHER_POLE, runs).finished


def test_only_folders_with_a_result_under_their_id_are_packed(runs):
    (runs / OTHER_POLE.id / "run.json").unlink()
    (runs / PONG.id).rename(runs / f"{PONG.id}.failed-123")
    assert pack(runs) == {runs / "cartpole.tar.xz": 1}


def test_figures_come_from_records_as_from_folders(folder):
    for spec in FIGURES["tps"].all_specs("quick", 1)[:3]:
        invent(folder.runs, spec)
    before = made(folder, "tps")
    pack(folder.runs)
    without_folders(folder.runs)
    after = made(folder, "tps")
    assert after == before and sum(run.finished for run in after.runs) == 3


def test_a_full_disk_leaves_the_archive_as_it_was(runs, monkeypatch):
    pack(runs)
    before = (runs / "cartpole.tar.xz").read_bytes()
    recorded(RecordedRun.of(POLE, runs), reason="made again")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ga3c_tf.files.sync", full)
    with pytest.raises(UserError, match=r"^cannot write .*cartpole.tar.xz: No space left on device$"):
        pack(runs)
    assert (runs / "cartpole.tar.xz").read_bytes() == before
    assert sorted(file.name for file in runs.glob("*.*")) == ["cartpole.tar.xz", "pong.tar.xz"]


def test_a_pack_that_is_killed_leaves_the_archive_as_it_was(runs):
    pack(runs)
    before = (runs / "cartpole.tar.xz").read_bytes()
    recorded(RecordedRun.of(POLE, runs), reason="made again")
    program = (
        "import pathlib, sys, ga3c_tf.files\n"
        "from ga3c_tf.reproduce.runs.archive import pack\n"
        "ga3c_tf.files.sync = lambda descriptor: (print('written', flush=True), sys.stdin.read())\n"
        f"pack(pathlib.Path({str(runs)!r}))"
    )
    words = [sys.executable, "-c", program]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "written\n"
        process.kill()
    assert (runs / "cartpole.tar.xz").read_bytes() == before
    assert pack(runs) == {runs / "cartpole.tar.xz": 1}


@pytest.mark.parametrize("length", [0, 0.1, 0.9])
def test_a_damaged_archive_is_refused_by_name(runs, length):
    pack(runs)
    without_folders(runs)
    file = runs / "cartpole.tar.xz"
    content = file.read_bytes()
    file.write_bytes(content[: int(length * len(content))])
    with pytest.raises(UserError, match=r"^\S+cartpole\.tar\.xz is damaged, restore it: "):
        RecordedRun.of(POLE, runs)
    assert RecordedRun.of(PONG, runs).finished


def test_a_run_is_unpacked_for_plot_and_refused_for_lack_of_weights(tmp_path):
    [run_id, *_] = archive.archived_ids(RESULTS / "runs")
    unpacking = ["unpack", run_id, "--out", RESULTS]
    done = ga3c_tf(*unpacking, cwd=tmp_path)
    assert done.stdout == f"runs/{run_id}\n" and "no weights" in done.stderr
    folder = tmp_path / "runs" / run_id
    contents = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert archive.archived(RESULTS / "runs" / run_id).items() <= contents.items()
    assert ga3c_tf("plot", folder).returncode == 0 and (folder / "curves.png").exists()
    for words in (["evaluate", folder, "--episodes", 1], ["resume", folder]):
        done = ga3c_tf(*words)
        assert done.returncode == 2 and "it is the record of a run, which has no weights" in done.stderr
    again = ga3c_tf(*unpacking, cwd=tmp_path)
    assert (
        again.returncode == 2 and again.stderr == f"ga3c-tf: runs/{run_id} exists; name another with --to\n"
    )


def test_an_unknown_run_is_refused_with_similar_ids(runs, tmp_path):
    pack(runs)
    with pytest.raises(
        UserError, match=rf"^there is no run '{POLE.id[:-1]}' in the archives of .*; close: .*{POLE.id}"
    ):
        unpack(runs, POLE.id[:-1], tmp_path / "unpacked")
    assert not (tmp_path / "unpacked").exists()


def test_unpacking_writes_known_names_only(runs, tmp_path):
    """An archive may come from somebody else."""
    pack(runs)
    record = {**archive.archived(runs / POLE.id), "../../outside": b"x", "checkpoints": b"x"}
    archive.write_archive(runs / "cartpole.tar.xz", {POLE.id: record})
    unpack(runs, POLE.id, tmp_path / "unpacked")
    assert not (tmp_path / "outside").exists() and not (tmp_path / "unpacked" / "checkpoints").exists()


def test_pandas_reads_the_records_as_the_documents_say(monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(ROOT)
    [program] = re.findall(
        r"```python\n(import tarfile.*?)```", (ROOT / "docs/usage.md").read_text(), re.DOTALL
    )
    values = {}
    exec(program, values)
    assert len(values["curves"]) == 25 and all(
        "rolling_score" in curve for curve in values["curves"].values()
    )


def test_pack_says_what_it_has_written(folder):
    invent(folder.runs, POLE)
    done = ga3c_tf("pack", "--out", folder.path)
    assert done.stdout == f"{folder.runs}/cartpole.tar.xz: 1 new\n"
    done = ga3c_tf("pack", "--out", folder.path)
    assert done.stdout == "" and "already" in done.stderr
    refused = ga3c_tf("pack", "--out", folder.path / "elsewhere")
    assert refused.returncode == 2 and "no results folder" in refused.stderr

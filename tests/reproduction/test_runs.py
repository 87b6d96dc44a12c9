"""What a run says of itself, and its record in an archive."""

import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from commands import ga3c_tf
from invented_runs import SESSION, invent, made, recorded, write_table

from ga3c_tf.errors import UserError
from ga3c_tf.host.calibration import Calibration
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.runs import archive, execute, watch
from ga3c_tf.reproduce.runs.archive import pack, read_run, unpack
from ga3c_tf.reproduce.runs.run import RecordedRun
from ga3c_tf.reproduce.runs.specs import run_spec
from ga3c_tf.runs.csv_rows import ADJUSTMENT_COLUMNS, EPISODE_COLUMNS, METRIC_COLUMNS
from ga3c_tf.runs.curve import curve_of, write_curve


def test_the_rates_are_those_after_the_warm_up(tmp_path):
    [spec, *_] = FIGURES["tps"].specs("quick", "pong", 1)
    steady = invent(tmp_path, spec, rate=100.0, batch=4).steady(15.0)
    assert steady["pps"] == pytest.approx(100, rel=0.02) and steady["tps"] == pytest.approx(25, rel=0.05)
    assert 28 < steady["seconds"] <= 30


def test_the_start_of_a_resumed_session_is_left_out_too(tmp_path):
    """100 steps/s in both sessions, and in the first 10 s of each none, since processes start."""
    [spec, *_] = FIGURES["tps"].specs("quick", "pong", 1)
    run = invent(tmp_path, spec, sessions=[SESSION, {**SESSION, "time_s": 25.0}])
    steps = {time: 100 * (max(0, min(time, 25) - 10) + max(0, time - 35)) for time in range(5, 51, 5)}
    rows = [
        {"time_s": time, "agent_steps": count, "updates": count / 4, "training_batch": 4 if count else 1}
        for time, count in steps.items()
    ]
    write_table(run.path / "metrics.csv", METRIC_COLUMNS, rows)
    steady = RecordedRun.of(spec, tmp_path).steady(10.0)
    assert steady["pps"] == 100 and steady["tps"] == 25 and steady["training_batch"] == 4
    assert steady["seconds"] == 15 + 15


def test_a_run_with_one_row_is_taken_as_a_whole(tmp_path):
    [spec, *_] = FIGURES["tps"].specs("quick", "pong", 1)
    run = invent(tmp_path, spec)
    row = {"time_s": 10.0, "agent_steps": 500, "updates": 100, "training_batch": ""}
    write_table(run.path / "metrics.csv", METRIC_COLUMNS, [row])
    steady = RecordedRun.of(spec, tmp_path).steady(15.0)
    assert (steady["seconds"], steady["pps"], steady["tps"]) == (10.0, 50.0, 10.0)
    assert np.isnan(steady["training_batch"])


def test_a_run_without_a_row_has_no_rates(tmp_path):
    [spec, *_] = FIGURES["tps"].specs("quick", "pong", 1)
    run = invent(tmp_path, spec)
    (run.path / "metrics.csv").unlink()
    assert np.isnan(list(RecordedRun.of(spec, tmp_path).steady(15.0).values())).all()


def test_the_curve_is_the_rolling_mean(tmp_path):
    rng = np.random.default_rng(1)
    times = np.sort(rng.uniform(0, 1000, 700))
    scores = rng.normal(size=700)
    rows = [
        {"time_s": time, "agent_steps": 10 * number, "episode": number, "score": score}
        for number, (time, score) in enumerate(zip(times, scores, strict=True), 1)
    ]
    write_table(tmp_path / "episodes.csv", EPISODE_COLUMNS, rows)
    write_curve(tmp_path, curve_of(tmp_path, 100))
    [spec, *_] = FIGURES["tps"].specs("quick", "pong", 1)
    curve = RecordedRun(spec, tmp_path, {}).curve
    assert 100 < len(curve["time_s"]) <= 300 and (np.diff(curve["episodes"]) > 0).all()
    assert curve["episodes"][-1] == 700 and curve["agent_steps"][-1] == 7000
    for count, score in zip(curve["episodes"].astype(int), curve["rolling_score"], strict=True):
        assert score == pytest.approx(scores[max(0, count - 100) : count].mean(), rel=1e-4, abs=1e-5)


def test_a_run_of_two_sources_or_machines_says_so(tmp_path):
    [one, other, *_] = FIGURES["tps"].specs("quick", "pong", 1)
    assert invent(tmp_path, one).dirty is False
    changed = {**SESSION, "commit": "d" * 40, "cpu": "two abaci"}
    run = invent(tmp_path, other, sessions=(SESSION, changed))
    assert run.dirty is True and run.commit == "d" * 40
    assert run.hardware == "2 cores of an abacus, no GPU used; 2 cores of two abaci, no GPU used"


def test_how_busy_a_run_is(tmp_path, monkeypatch):
    clock = [0.0]
    cpu = [0.0]
    monkeypatch.setattr(watch.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(watch, "process_group", lambda leader: {leader: {"cpu_s": cpu[0]}})
    monkeypatch.setattr(watch, "usable_cores", lambda: 4)
    utilization = watch.Utilization(tmp_path, "cpu")
    busy = iter([[0.3], [0.1], [0.2]])
    monkeypatch.setattr(watch, "gpu_utilization", lambda gpu: next(busy))
    looks = (
        (10, 50, []),
        (20, 60, [0]),
        (30, 80, [0, 7]),
        (40, 100, [0, 7, 9]),
        (50, 110, [0, 7, 9, 9]),
        (60, 1, [9]),
    )
    for second, cpu_s, updates in looks:
        clock[0] = second
        cpu[0] = cpu_s
        write_metrics(tmp_path, updates)
        utilization(1)
    found = utilization.shares()
    # From the first row with an update until agents ended.
    assert found["cpu_utilization"] == (110 - 80) / (20 * 4)
    assert found["gpu_utilization"] == 0.2
    assert watch.Utilization(tmp_path, "cpu").shares()["cpu_utilization"] is None


def test_how_busy_a_run_is_counts_from_its_first_update_after_a_resume(tmp_path, monkeypatch):
    monkeypatch.setattr(watch, "process_group", lambda leader: {leader: {"cpu_s": 1.0}})
    monkeypatch.setattr(watch, "SAMPLE_SECONDS", 0.0)
    utilization = watch.Utilization(tmp_path, "cpu")
    for updates, samples in (([7], 0), ([7, 7], 0), ([7, 8], 1), ([7, 8, 9], 2)):
        write_metrics(tmp_path, updates)
        utilization(1)
        assert len(utilization._samples) == samples


def write_metrics(folder, updates):
    """Write a metrics.csv with a row for each of these numbers of updates."""
    rows = [{"time_s": 1 + place, "updates": count} for place, count in enumerate(updates)]
    write_table(folder / "metrics.csv", METRIC_COLUMNS, rows)


@pytest.mark.parametrize(("settings", "calibrations"), [({"minutes": 1.0}, 2), ({"steps": 100}, 0)])
def test_a_run_is_calibrated_before_and_after_if_the_clock_ends_it(
    tmp_path, monkeypatch, settings, calibrations
):
    spec = run_spec("cartpole", 1, **settings)
    course = []
    monkeypatch.setattr(
        execute, "_train", lambda *arguments: course.append("training") or {"ended": "minutes"}
    )
    monkeypatch.setattr(
        watch, "calibrate", lambda: course.append("calibration") or Calibration(1.0, 2.0, 3.0)
    )
    monkeypatch.setattr(execute, "CALIBRATIONS", watch.Calibrations())
    run = execute.execute_run(spec, tmp_path / "runs")
    assert run.finished and run.calibrations == [Calibration(1.0, 2.0, 3.0)] * calibrations
    assert course == ["calibration"] * (calibrations // 2) + ["training"] + ["calibration"] * (
        calibrations // 2
    )


def test_the_calibration_after_a_run_serves_as_the_one_before_the_next(tmp_path, monkeypatch):
    taken = iter(range(1, 10))
    monkeypatch.setattr(execute, "_train", lambda *arguments: {"ended": "minutes"})
    monkeypatch.setattr(watch, "calibrate", lambda: Calibration(float(next(taken)), 2.0, 3.0))
    monkeypatch.setattr(execute, "CALIBRATIONS", watch.Calibrations())

    def failing():
        raise RuntimeError

    def speeds(seed):
        run = execute.execute_run(run_spec("cartpole", seed, minutes=1.0), tmp_path / "runs")
        return [each.gflops for each in run.calibrations]

    assert [speeds(1), speeds(2)] == [[1.0, 2.0], [2.0, 3.0]]
    monkeypatch.setattr(watch, "FRESH_SECONDS", 0.0)
    assert speeds(3) == [4.0, 5.0]
    monkeypatch.setattr(watch, "FRESH_SECONDS", 60.0)
    monkeypatch.setattr(watch, "calibrate", failing)
    assert speeds(4) == [5.0]
    monkeypatch.setattr(watch, "calibrate", lambda: Calibration(float(next(taken)), 2.0, 3.0))
    assert speeds(5) == [6.0, 7.0]  # the one that failed is not reused


@pytest.mark.parametrize(
    ("name", "resumable"), [("000000000100", True), ("replaced-000000000100", True), ("being-written", False)]
)
def test_a_run_is_resumed_if_a_kill_has_left_a_checkpoint(tmp_path, name, resumable):
    run = RecordedRun.of(run_spec("cartpole", 1, steps=200), tmp_path)
    assert not run.resumable
    (run.path / "checkpoints" / name).mkdir(parents=True)
    assert run.resumable is resumable


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


def test_an_interrupted_repetition_does_not_replace_a_packed_result(runs):
    pack(runs)
    recorded(RecordedRun.of(POLE, runs), status="interrupted", reason="train: ended by SIGINT")
    assert pack(runs) == {}
    without_folders(runs)
    assert RecordedRun.of(POLE, runs).finished


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


def test_unpacking_leaves_the_folders_beside_alone(runs, tmp_path):
    pack(runs)
    (tmp_path / "unpacked.new").mkdir()
    unpack(runs, POLE.id, tmp_path / "unpacked")
    assert {file.name for file in tmp_path.iterdir()} >= {"unpacked", "unpacked.new"}


def test_pandas_reads_the_records_as_the_documents_say(monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(ROOT)
    [program] = re.findall(
        r"```python\n(import tarfile.*?)```", (ROOT / "docs/reproduction.md").read_text(), re.DOTALL
    )
    values = {}
    exec(program, values)
    assert len(values["curves"]) == 595 and all(
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

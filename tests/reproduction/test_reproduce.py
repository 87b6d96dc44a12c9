"""`ga3c-tf reproduce` from runs to page: every figure at smoke budget, interruptions, failures, bad input."""

import errno
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import tiny_runs
from commands import children_of, ga3c_tf
from invented_runs import failed, invent
from tiny_runs import quiet, saved_steps, tiny

from ga3c_tf.cli import main as cli
from ga3c_tf.errors import UserError
from ga3c_tf.host.processes import end_with_parent
from ga3c_tf.reproduce import command
from ga3c_tf.reproduce.figures.registry import FIGURES, figures_with
from ga3c_tf.reproduce.measures.records import MEASURED, NOT_RUN, write_measured
from ga3c_tf.reproduce.measures.text import duration
from ga3c_tf.reproduce.pages.report import stale_pages
from ga3c_tf.reproduce.results.folder import ResultsFolder
from ga3c_tf.reproduce.runs import execute, executor, specs
from ga3c_tf.reproduce.runs.archive import FINISHED
from ga3c_tf.reproduce.runs.executor import LocalExecutor
from ga3c_tf.reproduce.runs.run import FAILED, INTERRUPTED, RecordedRun
from ga3c_tf.reproduce.runs.specs import run_spec
from ga3c_tf.runs import outcomes
from ga3c_tf.runs.csv_rows import METRIC_COLUMNS, read_rows

pytestmark = pytest.mark.timeout(600)  # whole runs, on a machine that may be slow


def mtimes(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()
    }


# every figure


SOME = [FIGURES[name] for name in ("scores", "pps", "policy-lag", "utilization")]
"""Figures with runs of each system, evaluations and dimensions of several kinds."""


def made(folder, figures):
    said = []
    with children_of(execute):
        plan = command.Plan(figures, "smoke")
        runs = command.reproduce(plan, folder, False, LocalExecutor(said.append), said.append)
    assert all(run.finished for run in runs)
    assert f"0 of {len(runs)} runs have ended; about" in said[0] and said[2].endswith("left")
    return folder


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """Some figures at smoke budget."""
    return made(tmp_path_factory.mktemp("smoke") / "out", SOME)


@pytest.fixture(scope="module")
def all_smoke(tmp_path_factory):
    """All figures at smoke budget."""
    return made(tmp_path_factory.mktemp("all") / "out", figures_with("smoke"))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FIGURES if FIGURES[name] not in SOME])
def test_every_other_figure_leaves_records_pictures_and_a_section(all_smoke, name):
    check_figure(all_smoke, name)


@pytest.mark.parametrize("name", [figure.name for figure in SOME])
def test_a_figure_leaves_records_pictures_and_a_section(smoke, name):
    check_figure(smoke, name)


def check_figure(smoke, name):
    folder = ResultsFolder(smoke)
    figure = FIGURES[name]
    records = folder.records(figure, "smoke")
    assert {record.run_id for record in records} == {spec.id for spec in figure.all_specs("smoke")}
    main = [record for record in records if record.metric == figure.main[0]]
    assert main and all(record.status == MEASURED or name == "utilization" for record in main)
    pictures = folder.pictures(figure, "smoke")
    assert pictures
    page = (smoke / "pages" / f"{name}.md").read_text()
    for picture in pictures:
        assert (smoke / picture).with_suffix(".svg").read_text().startswith("<?xml")
        assert (smoke / picture).with_suffix(".png").stat().st_size > 2000
        assert f"(../{picture}.svg)" in page
    assert f"({figure.paper}): {figure.headline}" in page and f"--figure {name} --budget smoke" in page


def test_a_dry_run_of_what_is_finished_says_so(smoke):
    done = ga3c_tf("reproduce", "--figure", "scores", "--budget", "smoke", "--dry-run", "--out", smoke)
    assert (done.returncode, done.stdout) == (0, "") and "nothing is left to run" in done.stderr


def test_the_smoke_page_says_that_it_is_no_result_and_is_current(smoke):
    page = (smoke / "README.md").read_text()
    assert "These are smoke runs, not results" in page and page.startswith("# Smoke runs")
    assert not stale_pages(ResultsFolder(smoke))
    assert ga3c_tf("report", "--check", "--out", smoke).returncode == 0


def test_the_measured_numbers_are_those_of_the_runs(smoke):
    folder = ResultsFolder(smoke)
    [run] = folder.results(FIGURES["scores"], "smoke").runs
    records = {record.metric: record for record in folder.records(FIGURES["scores"], "smoke")}
    evaluation = json.loads((run.path / "run.json").read_text())["evaluation"]
    assert records["score"].value == evaluation["mean"] and records["score"].method == "GA3C"
    assert "latest checkpoint" in records["score"].protocol  # too few episodes for a rolling score
    assert "uniformly random actions" in records["score of the random policy"].protocol
    assert (
        records["score"].agent_steps
        == max(int(path.name) for path in run.path.glob("checkpoints/0*"))
        >= 3000
    )
    assert records["score"].seed == 1 and "cores of" in records["score"].hardware


def test_a_run_is_kept_in_one_file_and_tables_with_rows(smoke):
    for folder in (smoke / "runs").iterdir():
        run = json.loads((folder / "run.json").read_text())
        assert run["config"] == json.loads((folder / "config.json").read_text())
        assert {"sessions": run["sessions"]} == json.loads((folder / "meta.json").read_text())
        assert run["sessions"][0]["command"] == (folder / "command.txt").read_text().strip()
        tables = {file.name: file.read_text().count("\n") for file in folder.glob("*.csv")}
        assert "metrics.csv" in tables and "events.csv" not in tables and min(tables.values()) > 1


def test_the_control_of_the_policy_lag_has_none(smoke):
    records = ResultsFolder(smoke).records(FIGURES["policy-lag"], "smoke")
    lags = {record.method: record.value for record in records if record.metric == "policy lag, mean"}
    assert lags["A2C"] == 0 and lags["GA3C"] > 0


def test_again_nothing_is_run_and_every_file_is_the_same(smoke, tmp_path):
    copy = shutil.copytree(smoke, tmp_path / "out")
    shutil.rmtree(copy / "figures")
    runs = mtimes(copy / "runs")
    done = ga3c_tf("reproduce", "--figure", "scores", "--budget", "smoke", "--out", copy)
    assert done.returncode == 0 and done.stdout.startswith("1 of 1 runs have ended"), (
        done.stdout + done.stderr
    )
    # all that has been recorded is drawn anew
    assert mtimes(copy / "runs") == runs
    contents = [
        {path.name: path.read_bytes() for path in (out / "figures").iterdir()} for out in (smoke, copy)
    ]
    assert contents[0] == contents[1]
    for name in ("README.md", "pages/scores.md", "measured.csv.xz"):
        assert (copy / name).read_bytes() == (smoke / name).read_bytes()


def test_smoke_runs_do_not_mix_with_results(smoke, tmp_path):
    records = ResultsFolder(smoke).measured["pps", "smoke"]
    write_measured(ResultsFolder(tmp_path).measured_file, {("pps", "quick"): records})
    for budget, out in (("smoke", tmp_path), ("quick", smoke)):
        done = ga3c_tf("reproduce", "--figure", "tps", "--budget", budget, "--out", out)
        assert (
            done.returncode == 2
            and "smoke runs are no results" in done.stderr
            and len(done.stderr.splitlines()) == 1
        )


# interruptions


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children(process: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


LOCAL = "from ga3c_tf.reproduce.runs.executor import LocalExecutor\nexecutor = LocalExecutor(say)"


def start(folder, wanted) -> subprocess.Popen:
    return tiny_runs.start(LOCAL, folder, wanted, preexec_fn=_without_nohup)


def _without_nohup() -> None:
    """Let SIGHUP end the process, also where the tests run under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.slow
def test_killed_in_the_middle_it_goes_on_where_it_was(tmp_path):
    runs = tmp_path / "runs"
    first = tiny(1)
    endless = tiny(2, steps=10**9)
    folder = runs / endless.id
    process = start(runs, [first, endless])
    while not any(int(row["agent_steps"]) for row in read_rows(folder / "metrics.csv", METRIC_COLUMNS)):
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.05)
    training = children(process.pid)
    process.kill()
    process.wait()
    while any(map(alive, training)):  # the kernel has told it to end
        time.sleep(0.05)
    assert RecordedRun.of(first, runs).finished and RecordedRun.of(endless, runs).status_text.startswith(
        "not finished"
    )
    untouched = mtimes(runs / first.id)
    before = saved_steps(folder)
    assert before > 0
    config = json.loads((folder / "config.json").read_text())  # so that it comes to an end in this test
    (folder / "config.json").write_text(json.dumps({**config, "steps": before + 200}))
    meta = json.loads((folder / "meta.json").read_text())
    del meta["sessions"][0]["config_digests"]
    (folder / "meta.json").write_text(json.dumps(meta))

    assert "finished finished" in start(runs, [first, endless]).communicate()[0]
    assert mtimes(runs / first.id) == untouched
    run = RecordedRun.of(endless, runs)
    assert run.finished and len(run.sessions) == 2 and "resume" in run.sessions[1]["command"]
    assert run.agent_steps >= before + 200
    assert (run.metrics["agent_steps"][1:] >= run.metrics["agent_steps"][:-1]).all()


CHILD = """
import pathlib, signal, sys, time
def on_signal(number, frame):
    pathlib.Path(sys.argv[1]).write_text("saved")
    sys.exit(130)
signal.signal(signal.SIGINT, signal.SIG_IGN if sys.argv[2] == "deaf" else on_signal)
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(("kind", "code"), [("hearing", 130), ("deaf", -signal.SIGKILL)])
def test_a_child_is_asked_to_end_and_then_made_to(tmp_path, monkeypatch, kind, code):
    words = [sys.executable, "-c", CHILD, str(tmp_path / "file"), kind]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, process_group=0)
    assert child.stdout.readline() == b"ready\n"
    if kind == "deaf":
        monkeypatch.setattr(execute, "CLOSE_SECONDS", 0.1)
    execute._end(child)
    child.stdout.close()
    assert child.returncode == code and (tmp_path / "file").exists() == (kind == "hearing")


def test_a_child_hears_a_signal_that_its_parent_blocks():
    program = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    words = [sys.executable, "-c", program]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        said = [
            subprocess.run(words, preexec_fn=each, capture_output=True, text=True).stdout.strip()
            for each in (None, end_with_parent)
        ]
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert said == ["True", "False"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_its_exit_code_and_no_result(tmp_path, number):
    spec = tiny(1)
    (tmp_path / "logs").mkdir()
    with execute.locked(tmp_path / "logs" / f"{spec.id}.lock", quiet):
        process = start(tmp_path / "runs", [spec])
        while "waiting for another process" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(number)
        assert process.wait() == 128 + number
    process.stdout.close()
    assert not (tmp_path / "runs" / spec.id).exists()


def test_runs_of_another_command_come_last_and_are_waited_for(tmp_path, monkeypatch):
    """Two commands at once never execute the same run, and each returns only when all runs have ended."""
    every = [tiny(seed) for seed in range(1, 7)]
    executed = []
    started = threading.Barrier(2)

    def call(words, log, watch=quiet):
        name = threading.current_thread().name
        if name not in dict(executed):
            started.wait(60)
        executed.append((name, log.stem))
        time.sleep(0.05)
        return "{}"

    monkeypatch.setattr(execute, "_call", call)
    monkeypatch.setattr(execute, "write_curve", lambda folder, curve: None)
    ended = {}

    def command_called(name):
        ended[name] = [run.finished for run in LocalExecutor(quiet).execute(every, tmp_path / "runs", False)]

    commands = [
        threading.Thread(target=command_called, args=(name,), name=name) for name in ("first", "second")
    ]
    for thread in commands:
        thread.start()
    for thread in commands:
        thread.join(60)
    assert sorted(run for _, run in executed) == sorted(spec.id for spec in every)
    assert {name for name, _ in executed} == {"first", "second"}
    assert ended == {"first": [True] * 6, "second": [True] * 6}


CHECKPOINT = "checkpoints/000000000100"


class Calls(list):
    """Stands in for `_call`: notes the commands, and ends the first of them as `error` says.

    Before, the first command leaves these files and folders in the run folder.
    """

    def __init__(self, runs):
        super().__init__()
        self.runs = runs
        self.error = None
        self.leaves = ("config.json", "episodes.csv")
        self.printed = "{}"

    def __call__(self, words, log, watch=quiet):
        self.append(words[0])
        if len(self) == 1 and self.error:
            for name in self.leaves:
                path = self.runs / log.stem / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.mkdir() if name == CHECKPOINT else path.write_text("left by\nthe first\n")
            raise self.error
        return self.printed

    def execute(self, **options):
        return execute.execute_run(tiny(1), self.runs, **options)


@pytest.fixture
def calls(tmp_path, monkeypatch):
    calls = Calls(tmp_path / "runs")
    monkeypatch.setattr(execute, "_call", calls)
    monkeypatch.setattr(execute, "curve_of", lambda folder, episodes: {})
    monkeypatch.setattr(execute, "write_curve", lambda folder, curve: None)
    return calls


def test_a_killed_training_is_resumed_next_time(calls):
    calls.error = execute.ChildEnded(INTERRUPTED, "train: ended by SIGKILL")
    calls.leaves = (CHECKPOINT,)
    assert calls.execute().status_text == "interrupted: train: ended by SIGKILL"
    assert calls.execute().finished and calls.execute().finished and calls == ["train", "resume"]
    assert calls.execute(force=True).finished and calls == ["train", "resume", "train"]


def test_a_failed_run_goes_on_from_its_checkpoint(calls):
    """Out of memory in hour 23, say."""
    calls.error = execute.ChildEnded(FAILED, "train: exit code 1")
    calls.leaves = (CHECKPOINT, "config.json", "episodes.csv")
    said = []
    assert calls.execute().status_text == "failed: train: exit code 1"
    run = calls.execute(say=said.append)
    assert run.finished and calls == ["train", "resume"] and not said
    assert (run.path / CHECKPOINT).is_dir() and (run.path / "episodes.csv").exists()


def test_a_failed_run_without_a_checkpoint_is_kept_aside_and_begun_anew(calls):
    calls.error = execute.ChildEnded(FAILED, "train: exit code 1")
    said = []
    assert calls.execute().status_text == "failed: train: exit code 1"
    run = calls.execute(say=said.append)
    assert run.finished and calls == ["train", "train"] and not (run.path / "episodes.csv").exists()
    [aside] = calls.runs.glob(f"{run.spec.id}.failed-*")
    assert (aside / "episodes.csv").exists() and RecordedRun.of(run.spec, calls.runs).finished
    assert json.loads((aside / "run.json").read_text())["status"] == FAILED
    [line] = said
    assert "failed before its first checkpoint" in line and str(aside) in line


def test_a_run_that_diverged_is_a_result_and_is_not_tried_again(calls):
    calls.error = execute.ChildEnded(FAILED, "train: whatever it says", outcomes.DIVERGED)
    calls.leaves = (CHECKPOINT, "config.json")
    assert calls.execute().diverged and calls.execute().diverged and calls == ["train"]
    assert calls.execute(force=True).finished and calls == ["train", "train"]


def test_a_damaged_result_is_repaired_by_force(calls):
    folder = calls.runs / tiny(1).id
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{")
    assert calls.execute(force=True).finished


def test_without_a_checkpoint_it_begins_anew(calls):
    folder = calls.runs / tiny(1).id
    folder.mkdir(parents=True)
    (folder / "metrics.csv").write_text("half a")
    assert calls.execute().finished and calls == ["train"] and not (folder / "metrics.csv").exists()


def test_a_command_whose_output_was_lost_is_asked_again(calls):
    """The disk was full when it printed its summary."""
    calls.printed = ""
    lost = "interrupted: what it printed could not be written: is the disk full?"
    assert calls.execute().status_text == lost


def test_a_run_folder_is_never_half_removed(calls, monkeypatch):
    """A kill in the middle of the removal leaves nothing that looks like a run."""
    folder = calls.runs / tiny(1).id
    (folder / CHECKPOINT).mkdir(parents=True)
    removed = []

    def killed(path, **options):
        removed.append(Path(path))
        if removed[-1].exists():
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(shutil, "rmtree", killed)
        calls.execute(force=True)
    assert not folder.exists() and folder not in removed
    assert calls.execute(force=True).finished and calls.execute(force=True).finished
    assert [path.name for path in calls.runs.iterdir()] == [folder.name]


def test_a_dry_run_names_what_would_be_done_with_each_run(tmp_path):
    """Of four runs one was interrupted, one has diverged, and one has never been begun."""
    folder = ResultsFolder(tmp_path)
    folder.prepare("quick")
    interrupted, diverged, finished, new, *_ = FIGURES["batch-size"].all_specs("quick")
    (folder.runs / interrupted.id / "checkpoints" / "000000001000").mkdir(parents=True)
    (folder.runs / interrupted.id / "config.json").write_text("{}")
    failed(folder, diverged, "train: the training diverged", outcomes.DIVERGED)
    invent(folder.runs, finished)
    plan = command.Plan([FIGURES["batch-size"]], "quick")
    lines = command.commands(plan, tmp_path)
    assert lines[0] == f"ga3c-tf resume {folder.runs / interrupted.id}"
    assert lines[1].startswith("ga3c-tf train ") and new.id in lines[1] and len(lines) == 25 - 2
    (folder.runs / finished.id / "run.json").write_text("{")  # which is no reason not to make it anew
    forced = command.commands(plan, tmp_path, force=True)
    assert len(forced) == 25 and all(line.startswith("ga3c-tf train ") for line in forced)


@pytest.mark.parametrize(("name", "seeds"), [("policy-lag", 10), ("environments", 5), ("speed", 5)])
def test_seeds_that_are_asked_for_are_whole_although_some_of_their_runs_are_added_ones(tmp_path, name, seeds):
    folder = ResultsFolder(tmp_path)
    folder.prepare("quick")
    figure = FIGURES[name]
    asked = figure.all_specs("quick", seeds)
    folder.update(figure, "quick", asked, print)
    recorded = [run.spec for run in folder.results(figure, "quick", {}).runs]
    assert set(recorded) == set(asked) and not any(spec.is_added for spec in recorded)


@pytest.mark.parametrize("name", ["policy-lag", "environments", "speed", "corrections"])
def test_added_seeds_are_not_made_again(name):
    """They belong to a first look that was undecided, which a new folder has not had."""
    assert not any(spec.is_added for spec in command.Plan([FIGURES[name]], "quick").specs())


def test_figures_that_do_not_take_a_method_are_not_on_record(tmp_path):
    figures = [FIGURES["batch-size"], FIGURES["pps"]]
    plan = command.Plan(figures, "quick", changes={"network": "mlp"})
    assert plan.taken() == figures[:1]
    assert {spec.game for spec in plan.specs()} == {"minatar_breakout"}


def test_a_training_that_was_over_is_not_an_error(smoke, tmp_path):
    [spec] = FIGURES["utilization"].all_specs("smoke")
    copy = shutil.copytree(smoke / "runs" / spec.id, tmp_path / "runs" / spec.id)
    (copy / "run.json").unlink()  # killed between the end of the training and this
    with children_of(execute):
        run = execute.execute_run(spec, tmp_path / "runs")
    assert run.finished and len(run.sessions) == 1 and run.agent_steps > 0


def test_two_at_once_run_it_once(tmp_path):
    runs = tmp_path / "runs"
    spec = tiny(1, steps=2000)
    both = [start(runs, [spec]) for _ in range(2)]
    assert all("finished" in process.communicate()[0].splitlines()[-1] for process in both)
    assert len(RecordedRun.of(spec, runs).sessions) == 1


# failures


def test_a_failed_run_is_recorded_and_the_rest_go_on(tmp_path, monkeypatch):
    monkeypatch.setitem(specs.GAMES, "gone", "ALE/Gone-v5")
    gone = run_spec("gone", 1, steps=300)
    good = tiny(2)
    said = []
    with children_of(execute):
        runs = LocalExecutor(said.append).execute([gone, good], tmp_path / "runs", False)
    assert [run.result["status"] for run in runs] == [FAILED, FINISHED]
    assert [run.result["ended"] for run in runs] == [outcomes.BAD_INPUT, outcomes.STEPS]
    assert runs[0].status_text.startswith("failed: train: unknown environment 'ALE/Gone-v5'")
    assert f"[1/2] {runs[0].status_text}; about" in said[2] and "0 s left" in said[-1]
    records = FIGURES["tps"].records([*runs, RecordedRun.of(tiny(3), tmp_path / "runs")])
    statuses = [record.status for record in records if record.metric == "tps"]
    assert statuses == [runs[0].status_text, MEASURED, NOT_RUN]
    assert [record.value is None for record in records if record.metric == "tps"] == [True, False, True]


@pytest.mark.parametrize(
    ("results", "code", "said"),
    [
        ([{"status": FINISHED}], 0, []),
        ([{"status": FINISHED}, {"status": FAILED, "reason": "out of memory"}], 1, ["failed: out of memory"]),
        ([{"status": FAILED, "reason": "the loss", "ended": outcomes.DIVERGED}], 0, ["failed: the loss"]),
        ([{}], 1, ["not run"]),
    ],
)
def test_the_exit_code_is_1_where_a_run_has_no_result(tmp_path, monkeypatch, capsys, results, code, said):
    runs = [RecordedRun(tiny(seed), tmp_path, result) for seed, result in enumerate(results)]
    monkeypatch.setattr(command, "reproduce", lambda *arguments: runs)
    monkeypatch.setattr("ga3c_tf.cli.figures.exit_on_signals", lambda: None)
    monkeypatch.setattr(sys, "argv", ["ga3c-tf", "reproduce", "--figure", "scores", "--budget", "smoke"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == code
    assert capsys.readouterr().err.splitlines() == [f"ga3c-tf: {runs[-1].spec.id}: {text}" for text in said]


def test_a_training_that_diverges_is_recorded_as_such(tmp_path):
    spec = tiny(1, steps=3000, num_agents=4, learning_rate=1e38)
    with children_of(execute):
        run = execute.execute_run(spec, tmp_path / "runs")
    assert (
        run.diverged
        and run.result["status"] == FAILED
        and run.status_text.startswith("failed: train: the training div")
    )


@pytest.mark.parametrize(
    ("code", "printed", "status", "reason", "ended"),
    [
        (-signal.SIGKILL, "", INTERRUPTED, "train: ended by SIGKILL", outcomes.INTERRUPTED),
        (130, '{"ended": "interrupted"}', INTERRUPTED, "train: ended by SIGINT", outcomes.INTERRUPTED),
        (1, '{"ended": "not saved"}\nga3c-tf: no room', INTERRUPTED, "train: no room", outcomes.NOT_SAVED),
        (1, '{"ended": "failed"}\nTraceback\nKeyError: 3', FAILED, "train: KeyError: 3", outcomes.FAILED),
        (2, '{"ended": "bad input"}\nga3c-tf: no game', FAILED, "train: no game", outcomes.BAD_INPUT),
        (2, "ga3c-tf: the training diverged, they say", FAILED, "train: the training diverged, they say", ""),
        (1, "", FAILED, "train: it printed nothing", ""),
    ],
)
def test_what_ended_a_command_is_what_its_json_says(code, printed, status, reason, ended):
    error = execute._error_of("train", code, printed)
    assert (error.status, str(error), error.ended) == (status, reason, ended)


@pytest.mark.parametrize("name", ["run.json", "curve.csv"])
def test_a_result_that_cannot_be_written_ends_neither_the_rest_nor_the_run(tmp_path, monkeypatch, name):
    runs = tmp_path / "runs"
    specs = [tiny(1), tiny(2)]
    said = []
    full = True

    def call(words, log, watch=quiet):
        folder = runs / specs[0].id if specs[0].id in str(words) else runs / specs[1].id
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text("{}")
        return "{}"

    def write(file, text):
        if full and file.name == name and specs[0].id in str(file):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))
        file.write_text(text)

    monkeypatch.setattr(execute, "_call", call)
    monkeypatch.setattr(execute, "write_aside", write)
    monkeypatch.setattr("ga3c_tf.runs.curve.write_aside", write)
    first, second = LocalExecutor(said.append).execute(specs, runs, False)
    assert not first.finished and second.finished
    assert any("No space left on device; the same command again goes on" in line for line in said)
    full = False
    assert all(run.finished for run in LocalExecutor(said.append).execute(specs, runs, False))


def test_a_damaged_result_is_refused_by_name(tmp_path):
    spec = tiny(1)
    (tmp_path / spec.id).mkdir()
    (tmp_path / spec.id / "run.json").write_text('{"status": "finished"}')
    with pytest.raises(UserError, match=r"run\.json is damaged: it lacks"):
        RecordedRun.of(spec, tmp_path)


# the command


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("reproduce", "name one --figure, or give --all; --list names the figures"),
        ("reproduce --figure pps --all", "name one --figure, or give --all"),
        (
            "reproduce --all --budget tuned --network mine:wide --dry-run",
            "the module 'mine' cannot be imported",
        ),
        (  # the initialization is another's
            "reproduce --all --budget tuned --games minatar_asterix --network json:loads",
            "no figure at the tuned budget goes with these games",
        ),
        ("reproduce --figure score", "unknown figure 'score'; close: scores"),
        ("reproduce --figure pps --games pongg", "unknown game 'pongg'; close: pong"),
        ("reproduce --figure pps --seeds 0", "--seeds is 0; it must be a whole number from 1 to 1000"),
        ("reproduce --figure tps --games Pole-v7", "unknown environment 'Pole-v7'"),
        ("reproduce --figure tps --loss mine:huber", "the module 'mine' cannot be imported"),
        (
            "reproduce --figure scores --loss huber",
            "unknown loss 'huber'; it must be paper or 'module:function'",
        ),
        ("reproduce --all --dry-run --network smal", "unknown network 'smal'; it must be small, large, "),
        ("reproduce --figure pps --network large-1", "compares settings of --network; it does not go"),
        (
            "reproduce --figure pps --budget tiny",
            "'tiny' is not one of 'smoke', 'quick', 'gpu', 'tuned', 'paper'",
        ),
        ("report --out nowhere", "nowhere is no results folder"),
        ("report --out nowhere --check", "nowhere is no results folder"),
    ],
)
def test_bad_input_is_one_line_with_exit_code_2_and_writes_nothing(tmp_path, command, words):
    done = ga3c_tf(*command.split(), cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_list_and_dry_run_write_nothing(tmp_path):
    listed = ga3c_tf("reproduce", "--list", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    for name, figure in FIGURES.items():
        assert f"{name}: {figure.shows}" in listed.stdout
    assert "paper 27 runs, about 27.0 days" in listed.stdout
    assert listed.stdout.count("measured:") == 1 and "nothing yet" not in listed.stdout
    last = "measured: unknown, as there is no folder runs/smoke or results here; name one with --out"
    assert listed.stdout.splitlines()[-1] == last
    [first, *_] = command.listing(None, [FIGURES["pps"]])
    assert first.startswith("pps: ") and len(command.listing(tmp_path, [FIGURES["pps"]])) == 3
    dry = ga3c_tf("reproduce", "--figure", "pps", "--dry-run", cwd=tmp_path)
    assert dry.returncode == 0 and len(dry.stdout.splitlines()) == 75
    assert all(line.startswith("ga3c-tf train ALE/Pong-v5 ") for line in dry.stdout.splitlines())
    everything = ga3c_tf("reproduce", "--all", "--budget", "tuned", "--dry-run", cwd=tmp_path)
    trainings = [line for line in everything.stdout.splitlines() if line.startswith("ga3c-tf train ")]
    specs = {
        spec.id
        for figure in FIGURES.values()
        if "tuned" in figure.games
        for spec in figure.all_specs("tuned")
    }
    # `wall-clock` has no Pong.
    some = ga3c_tf("reproduce", "--all", "--games", "pong", "--dry-run", cwd=tmp_path)
    assert some.returncode == 0 and "train ALE/Pong-v5" in some.stdout and "CartPole" not in some.stdout
    assert everything.returncode == 0 and len(trainings) == len(specs) > 75
    assert all(any(f"/{spec} " in line for line in trainings) for spec in specs)
    assert list(tmp_path.iterdir()) == []


def test_games_are_called_by_one_name_each(tmp_path):
    """Other ids of a game of the paper would be another game, without its scores and its preset."""
    words = ("reproduce", "--figure", "scores", "--budget", "tuned", "--seeds", "1", "--dry-run", "--games")
    plain, others = (
        ga3c_tf(*words, games, cwd=tmp_path) for games in ("pong", "PongNoFrameskip-v4,ALE/Pong-v5,pong")
    )
    assert plain.returncode == 0 and plain.stdout == others.stdout


def test_an_interruption_leaves_records_of_the_runs_that_have_ended(tmp_path):
    class Interrupted(LocalExecutor):
        def execute(self, specs, runs, force):
            invent(runs, specs[0], scores=(20.0, 200.0))
            raise KeyboardInterrupt

    figure = FIGURES["wall-clock"]
    plan = command.Plan([figure], "quick", ("cartpole",), 1)
    with pytest.raises(KeyboardInterrupt):
        command.reproduce(plan, tmp_path, False, Interrupted(quiet), quiet)
    folder = ResultsFolder(tmp_path)
    statuses = [record.status for record in folder.records(figure, "quick")]
    assert MEASURED in statuses and NOT_RUN in statuses and not stale_pages(folder)


def test_a_confirmation_on_new_seeds_is_about_these_seeds_only(tmp_path):
    """The others are neither made nor asked for, and the next report knows no more of them."""

    class Inventor(LocalExecutor):
        def execute(self, specs, runs, force):
            return [invent(runs, spec, scores=(20.0, 200.0)) for spec in specs]

    figure = FIGURES["wall-clock"]
    plan = command.Plan([figure], "quick", ("cartpole",), seeds=2, first_seed=1000)
    command.reproduce(plan, tmp_path, False, Inventor(quiet), quiet)
    folder = ResultsFolder(tmp_path)
    results = folder.results(figure, "quick")
    assert {(run.spec.game, run.spec.seed) for run in results.runs} == {
        ("cartpole", seed) for seed in (1000, 1001)
    }
    assert results.command.endswith("--games cartpole --first-seed 1000 --seeds 2")
    assert all(run.finished for run in results.runs) and not stale_pages(folder)
    printed = ga3c_tf("reproduce", "--figure", "wall-clock", "--dry-run", "--first-seed", "7", "--seeds", "1")
    assert printed.stdout.count("--seed 7 ") == printed.stdout.count("ga3c-tf train") > 1


def test_changed_code_of_a_method_of_ones_own_is_told(tmp_path, monkeypatch):
    (tmp_path / "mine_changed.py").write_text("def huber(batch, config):\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("mine_changed")
    changes = {"loss": "mine_changed:huber"}
    folder = ResultsFolder(tmp_path / "out")
    folder.prepare("quick")
    [plain, *_] = FIGURES["scores"].specs("quick", "pong", 1)
    invent(folder.runs, plain)
    run = invent(folder.runs, plain.changed(changes))
    said = []
    for offset in (-10, 10):
        os.utime(tmp_path / "mine_changed.py", (0, run.started_s + offset))
        command.warn_of_changed_code(changes, [plain, run.spec], folder, said.append)
    [line] = said
    assert "mine_changed.py has changed since 1 of the runs with mine_changed:huber were made" in line


def test_a_stale_page_is_noticed(smoke, tmp_path):
    copy = shutil.copytree(smoke, tmp_path / "out")
    page = copy / "pages" / "scores.md"
    page.write_text(page.read_text().replace("| Pong |", "| Ping |"))
    done = ga3c_tf("report", "--check", "--out", copy)
    assert done.returncode == 1 and "is stale" in done.stderr and len(done.stderr.splitlines()) == 1
    assert ga3c_tf("report", "--out", copy).returncode == 0
    assert ga3c_tf("report", "--check", "--out", copy).returncode == 0


def test_durations():
    assert [duration(seconds) for seconds in (40, 720, 3.5 * 3600, 2.1 * 86400)] == [
        "40 s",
        "12 min",
        "3.5 h",
        "2.1 days",
    ]


def test_runs_of_one_seed_come_together_in_random_order(monkeypatch, tmp_path):
    made = []

    def made_up(spec, runs, *options):
        made.append(spec)
        return RecordedRun(
            spec, runs / spec.id, {"status": "finished", "reason": "", "ended": "", "spec": {}}
        )

    monkeypatch.setattr(executor, "execute_run", made_up)
    asked = [
        run_spec("cartpole", seed, learning_rate=rate / 1e4, steps=10)
        for rate in range(1, 11)
        for seed in (1, 2)
    ]
    runs = LocalExecutor(lambda text: None).execute(asked, tmp_path, False)
    assert [run.spec for run in runs] == asked
    assert [spec.seed for spec in made] == [1] * 10 + [2] * 10
    rates = [[spec.config.learning_rate for spec in part] for part in (made[:10], made[10:])]
    assert sorted(rates[0]) == sorted(rates[1]) and rates[0] != sorted(rates[0]) and rates[0] != rates[1]


@pytest.mark.parametrize(("cores", "warned"), [(4, False), (5, True)])
def test_a_comparison_with_a3c_on_a_part_of_the_cores_is_warned_of(tmp_path, monkeypatch, cores, warned):
    asked = FIGURES["wall-clock"].all_specs("quick", 1, ["cartpole"])
    monkeypatch.setattr(executor, "usable_cores", lambda: cores)
    monkeypatch.setattr(executor, "execute_run", lambda spec, runs, *_: invent(runs, spec))
    said = []
    LocalExecutor(said.append).execute(asked, tmp_path / "runs", False)
    assert any("A3C has 4 agents and this machine 5 cores" in line for line in said) == warned
    said.clear()
    LocalExecutor(said.append).execute(asked[:1], tmp_path / "others", False)  # GA3C alone
    assert not any("A3C has" in line for line in said)

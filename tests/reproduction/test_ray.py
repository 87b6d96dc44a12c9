"""`reproduce --ray` on a real Ray: nodes that die, signals, attaching; storage and cores by themselves."""

import asyncio
import contextlib
import csv
import io
import lzma
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import tiny_runs
from commands import ENVIRONMENT, ga3c_tf
from invented_runs import invent
from tiny_runs import quiet, saved_steps, tiny

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.runs.archive import FINISHED, pack, read_tar, write_tar
from ga3c_tf.reproduce.runs.executor import LocalExecutor, order
from ga3c_tf.reproduce.runs.run import FAILED, INTERRUPTED, RecordedRun
from ga3c_tf.reproduce.runs.specs import run_spec
from ga3c_tf.runs.csv_rows import EPISODE_COLUMNS, METRIC_COLUMNS, read_rows

ray = pytest.importorskip("ray")
pytest.importorskip("fsspec")

from ray.cluster_utils import Cluster  # noqa: E402
from ray.exceptions import TaskCancelledError  # noqa: E402

from ga3c_tf.reproduce.cluster import cores, ray_executor, ray_task, scheduler  # noqa: E402
from ga3c_tf.reproduce.cluster.ray_executor import RayExecutor, jobs_for, summary  # noqa: E402
from ga3c_tf.reproduce.cluster.ray_task import Job  # noqa: E402
from ga3c_tf.reproduce.cluster.storage import Storage, StoredRun, TakenOver  # noqa: E402

pytestmark = pytest.mark.timeout(300)  # Ray and whole runs, on a machine that may be slow
ROOT = Path(__file__).resolve().parents[2]


def lasting(seed, seconds):
    """A run that lasts at least so long, and more on a slow machine, with a checkpoint every two seconds."""
    return tiny(seed, "helpers:Paced-v0", steps=200 * seconds, checkpoint_minutes=0.03)


def wait_for(condition, seconds=90):
    until = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < until
        time.sleep(0.1)
    return value


def processes_of(spec):
    """Those whose command line names the run: its training and evaluation."""
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"/runs/{spec.id}" in (folder / "cmdline").read_bytes().decode(errors="replace"):
                processes.append(int(folder.name))
    return processes


def scratch_of(spec):
    """The run folder in which a task on this machine works; None before it has begun."""
    words = []
    for training in processes_of(spec):
        words += Path(f"/proc/{training}/cmdline").read_bytes().decode().split("\0")
    return next((Path(word) for word in words if word.endswith(spec.id)), None)


def stored_steps(storage, spec):
    """The agent steps of the newest stored checkpoint."""
    file = storage / "runs" / f"{spec.id}.tar"
    names = read_tar(file.open("rb")) if file.exists() else {}
    return max((int(name.split("/")[1]) for name in names if name.startswith("checkpoints/")), default=0)


def check_curves(run):
    """Every step and episode is counted once."""
    rows = read_rows(run.path / "metrics.csv", METRIC_COLUMNS)
    times, metrics = ([float(row[name]) for row in rows] for name in ("time_s", "agent_steps"))
    assert times and times == sorted(set(times)) and metrics == sorted(metrics)
    episodes = read_rows(run.path / "episodes.csv", EPISODE_COLUMNS)
    assert [int(row["episode"]) for row in episodes] == list(range(1, len(episodes) + 1))
    assert 0 < sum(int(row["length"]) for row in episodes) <= run.agent_steps
    assert metrics[-1] <= run.agent_steps == saved_steps(run.path)


# on a cluster


@pytest.fixture(scope="module")
def cluster():
    """A head node without cores, and one node with one core."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        cluster.add_node(num_cpus=1)
        yield cluster
        cluster.shutdown()


def execute(cluster, specs, runs, say=quiet, storage=None, force=False, cpus=1):
    return RayExecutor(cluster.address, storage, cpus, None, False, say).execute(specs, runs, force)


@pytest.mark.slow
def test_a_run_whose_node_dies_goes_on_elsewhere_from_its_checkpoint(cluster, tmp_path, monkeypatch):
    doomed = cluster.add_node(num_cpus=1)
    said = []
    saved = {}
    specs = [lasting(seed, 15) for seed in (1, 2)]
    storage = tmp_path / "storage"

    def kill():
        wait_for(lambda: all(stored_steps(storage, spec) > 0 for spec in specs))
        saved.update({spec: stored_steps(storage, spec) for spec in specs})
        cluster.remove_node(doomed, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    done = execute(cluster, specs, tmp_path / "out" / "runs", said.append, str(storage))
    killer.join()
    assert [run.status_text for run in done] == [FINISHED, FINISHED], said
    begun = [text for text in said if ": on " in text]
    assert len(begun) == 3
    [lost] = [run for run in done if run.spec.id in begun[2]]
    [other] = [run for run in done if run is not lost]
    assert len(lost.sessions) == 2 and "resume" in lost.sessions[1]["command"] and len(other.sessions) == 1
    assert int(begun[2].split("from agent step ")[1].split()[0]) >= saved[lost.spec] > 0
    for run in done:
        check_curves(run)
        assert not processes_of(run.spec)
        assert "1 core of" in run.hardware
    # For a command of its own; Ray has it from this process.
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))
    [local] = LocalExecutor(quiet).execute([tiny(1, "helpers:Paced-v0")], tmp_path / "local" / "runs", False)
    shapes = [
        [(record.table, record.game, record.method, record.metric, record.status) for record in records]
        for records in (FIGURES["tps"].records([lost]), FIGURES["tps"].records([local]))
    ]
    assert shapes[0] == shapes[1]
    for path in local.path.iterdir():
        assert (lost.path / path.name).exists() or path.name == "lock" or "events.out" in path.name
    assert (tmp_path / "out" / "logs" / f"{lost.spec.id}.txt").read_text().count("Paced-v0 in") == 2


@pytest.mark.slow
def test_a_run_whose_worker_is_killed_is_tried_again_and_its_scratch_folder_removed(cluster, tmp_path):
    """About half a minute."""
    spec = lasting(5, 12)
    said = []
    scratch = []

    def kill():
        wait_for(lambda: stored_steps(tmp_path, spec) > 0)
        scratch.append(scratch_of(spec).parents[1])
        training = min(processes_of(spec))
        os.kill(int(Path(f"/proc/{training}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    [run] = execute(cluster, [spec], tmp_path / "runs", said.append)
    killer.join()
    assert run.finished and len(run.sessions) == 2 and sum(": on " in text for text in said) == 2
    check_curves(run)
    assert not scratch[0].exists() and not list(tmp_path.glob("runs/*.tar"))


@pytest.mark.slow
def test_a_run_that_fails_for_its_own_reason_is_recorded_and_not_repeated(cluster, tmp_path):
    gone = run_spec("ALE/Gone-v5", 1, steps=300)
    good = tiny(2)
    said = []
    done = execute(cluster, [gone, good], tmp_path / "runs", said.append)
    assert [run.result["status"] for run in done] == [FAILED, FINISHED]
    assert done[0].status_text.startswith("failed: train: unknown environment 'ALE/Gone-v5'")
    assert sum(text.startswith(f"{gone.id}: on ") for text in said) == 1
    check_curves(done[1])
    before = {path: path.stat().st_mtime_ns for path in done[1].path.rglob("*")}
    assert execute(cluster, [good], tmp_path / "runs")[0].finished  # finished: left alone
    assert before == {path: path.stat().st_mtime_ns for path in done[1].path.rglob("*")}
    pack(tmp_path / "runs")  # a packed run is repeated too
    [again] = execute(cluster, [good], tmp_path / "runs", force=True)
    assert before.keys() != set(done[1].path.rglob("*")) and again.finished and len(again.sessions) == 1
    assert again.path.is_dir() and not again.path.with_name(f"{again.path.name}.before").exists()


@pytest.mark.parametrize("packed", [False, True])
def test_a_repetition_that_does_not_begin_leaves_the_run_as_it_was(tmp_path, monkeypatch, packed):
    spec = tiny(1)
    runs = tmp_path / "runs"
    invent(runs, spec)
    if packed:
        pack(runs)
        shutil.rmtree(runs / spec.id)
    before = sorted(path.name for path in runs.iterdir())

    def interrupted(executor, scheduler, jobs):
        assert [job.spec for job in jobs] == [spec] and not (runs / spec.id).exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(RayExecutor, "_lead", interrupted)
    executor = RayExecutor("auto", None, 1, None, False, quiet)
    with pytest.raises(KeyboardInterrupt):
        executor._execute(None, [Job(spec, 1, 0)], Storage(str(tmp_path)), runs, True)
    assert RecordedRun.of(spec, runs).finished and before == sorted(path.name for path in runs.iterdir())


def test_what_the_cluster_can_never_meet_is_refused_at_once(cluster, tmp_path):
    with pytest.raises(
        UserError, match=r"asks for 64 CPUs and 0 GPUs of one node; the largest has 1 CPUs and 0 GPUs"
    ):
        execute(cluster, [tiny(1)], tmp_path / "runs", cpus=64)
    assert not list(tmp_path.rglob("runs/*"))


def test_a_storage_that_the_nodes_do_not_see_is_refused(cluster, tmp_path):
    with pytest.raises(UserError, match=r"memory://here on the node .* is not the storage of this command"):
        execute(cluster, [tiny(1), tiny(2)], tmp_path / "runs", storage="memory://here")


ON_RAY = """
from ga3c_tf.reproduce.cluster.ray_executor import RayExecutor
executor = RayExecutor({address!r}, {storage!r}, 1, None, {detach}, say)
"""


def start(cluster, runs, spec, detach=False, storage=None):
    executor = ON_RAY.format(address=cluster.address, storage=str(storage or runs.parent), detach=detach)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    return tiny_runs.start(executor, runs, [spec], env=environment)


def interrupt(process, number=signal.SIGINT):
    process.send_signal(number)
    said = process.communicate(timeout=120)[0]
    assert process.returncode == 128 + number, said
    assert "Traceback" not in said
    return said


def begun(spec):
    """Whether a task on this machine has made agent steps of the run."""
    folder = scratch_of(spec)
    rows = read_rows(folder / "metrics.csv", METRIC_COLUMNS) if folder else []
    return any(int(row["agent_steps"]) for row in rows)


@pytest.mark.slow
def test_a_signal_has_every_run_saved_and_ended(cluster, tmp_path):
    spec = tiny(3, steps=10**9)
    storage = tmp_path / "storage"
    process = start(cluster, tmp_path / "out" / "runs", spec, storage=storage)
    wait_for(lambda: begun(spec))
    assert stored_steps(storage, spec) == 0
    assert "saves a checkpoint" in interrupt(process, signal.SIGTERM)
    assert not processes_of(spec)
    run = RecordedRun.of(spec, tmp_path / "out" / "runs")
    assert saved_steps(run.path) == stored_steps(storage, spec) > 0
    assert run.status_text == "not finished"


@pytest.mark.slow
def test_a_second_signal_ends_the_command_at_once(cluster, tmp_path):
    """About 15 s."""
    spec = tiny(6, steps=10**9)
    process = start(cluster, tmp_path / "runs", spec)
    wait_for(lambda: begun(spec))
    process.send_signal(signal.SIGINT)
    while "saves a checkpoint" not in process.stdout.readline():
        assert process.poll() is None
    began = time.monotonic()
    assert "Error" not in interrupt(process)
    assert time.monotonic() < began + 10
    wait_for(lambda: not processes_of(spec), 30)


@pytest.mark.slow
def test_detached_runs_go_on_and_are_followed_again(cluster, tmp_path):
    spec = lasting(4, 15)
    process = start(cluster, tmp_path / "runs", spec, detach=True)
    wait_for(lambda: begun(spec))
    assert "the runs go on" in interrupt(process)
    assert processes_of(spec)
    said = start(cluster, tmp_path / "runs", spec).communicate(timeout=120)[0]
    assert said.count(f"{spec.id}: on ") == 1 and said.splitlines()[-1] == FINISHED
    run = RecordedRun.of(spec, tmp_path / "runs")
    assert len(run.sessions) == 1
    check_curves(run)


# who leads the runs


class Leader(scheduler.Scheduler):
    """Has tries that last until they are cancelled, or raise `error`."""

    error = None

    def _try(self, job):
        tried = asyncio.get_running_loop().create_future()
        if self.error:
            tried.set_exception(self.error)
        return tried


def job(seed):
    return ray_task.Job(tiny(seed), 1, 0)


def test_runs_that_are_asked_for_twice_go_on_and_end_when_they_are_stopped(monkeypatch):
    monkeypatch.setattr(scheduler.ray, "cancel", lambda tried: tried.set_exception(TaskCancelledError()))

    async def whole():
        leader = Leader("")
        await leader.begin([job(1)])
        first = leader._tries[tiny(1).id]
        await leader.report(tiny(1).id, "a line")
        await leader.begin([job(1), job(2)])
        assert leader._tries[tiny(1).id] is first
        states = [(await leader.news(0))[1][tiny(seed).id] for seed in (1, 2)]
        assert states == [(scheduler.RUNNING, "a line"), (scheduler.WAITING, "")]
        await leader.stop()
        await leader.report(tiny(1).id, "a line that comes late")
        lines, states = await leader.news(1)
        assert [state.status for state in states.values()] == [scheduler.STOPPED] * 2
        assert lines == [f"{tiny(2).id}: {scheduler.STOPPED}"]
        await leader.begin([job(1)])
        assert (await leader.news(0))[1][tiny(1).id].status == scheduler.WAITING

    asyncio.run(whole())


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError("no room\nand more"), f"{INTERRUPTED}: OSError: no room"),
        (TakenOver("another try"), f"{scheduler.STOPPED}: TakenOver: another try"),
    ],
)
def test_a_run_whose_last_try_is_lost_says_why(error, line):
    async def whole():
        leader = Leader("")
        leader.error = error
        await leader.begin([job(1)])
        await asyncio.gather(*leader._ends.values())
        return await leader.news(0)

    assert asyncio.run(whole())[0] == [f"{tiny(1).id}: {line}"]


def test_the_summary_counts_and_tells_how_far_each_is():
    states = {
        "a": scheduler.State(FINISHED),
        "b": scheduler.State(scheduler.RUNNING, "[Steps: 1200]"),
        "c": scheduler.State(scheduler.RUNNING),
    }
    assert summary(states) == ["1 finished, 2 running", "b: [Steps: 1200]"]


def test_runs_begin_in_the_order_of_a_command_without_ray(tmp_path, monkeypatch):
    specs = FIGURES["tps"].all_specs("quick")
    jobs = []
    monkeypatch.setattr(ray_executor, "_nodes", lambda: [{"CPU": 64.0}])
    monkeypatch.setattr(ray_executor, "_check_shared", lambda *storage: None)
    monkeypatch.setattr(ray_executor, "scheduler_of", lambda *words: None)
    monkeypatch.setattr(RayExecutor, "_cluster", lambda self: contextlib.nullcontext())
    monkeypatch.setattr(RayExecutor, "_lead", lambda self, leader, planned: jobs.extend(planned))
    RayExecutor("auto", None, None, None, False, print).execute(specs, tmp_path / "runs", False)
    assert [job.spec for job in jobs] == sorted(specs, key=order) != specs


def test_resources_follow_the_agents_and_the_nodes():
    nodes = [{"CPU": 64.0}, {"CPU": 6.0, "GPU": 1.0}]
    wanted = [tiny(1), tiny(1, num_agents=32), tiny(1, num_agents=256), tiny(1, num_agents=256, device="cpu")]
    assert [job[1:] for job in jobs_for(wanted, None, None, nodes)] == [(6, 1), (6, 1), (6, 1), (6, 0)]
    assert [job[1:] for job in jobs_for(wanted[:2], None, None, nodes)] == [(4, 1), (4, 1)]
    assert [job[1:] for job in jobs_for(wanted[:1], 3, 0.25, nodes)] == [(3, 0.25)]
    a3c = run_spec("cartpole", 1, "a3c", steps=300, num_agents=16)
    assert [job[1:] for job in jobs_for([a3c], None, None, nodes)] == [(2, 0)]
    with pytest.raises(UserError, match=r"asks for 8 CPUs and 1 GPUs .* the largest has 6 CPUs and 1 GPUs"):
        jobs_for(wanted[:1], 8, 1, nodes)
    with pytest.raises(UserError, match=r"--gpus-per-run is 1\.5; it must be a share of one GPU"):
        jobs_for(wanted[:1], 1, 1.5, nodes)


# storage


class LiveRun:
    """A folder as a training leaves it: rows first, then the checkpoint; the last three are kept."""

    def __init__(self, folder):
        self.folder = folder / "runs" / "x"
        self.steps = 0
        (self.folder / "checkpoints").mkdir(parents=True)
        (folder / "logs").mkdir()
        (folder / "logs" / "x.txt").write_text("log")
        for name in ("config.json", "meta.json", "lock", "metrics.csv.new"):
            (self.folder / name).write_text(name)

    def save(self):
        self.steps += 1
        with (self.folder / "metrics.csv").open("a") as stream:
            stream.write(f"{self.steps}\n")
        checkpoint = self.folder / "checkpoints" / f"{self.steps:012d}"
        checkpoint.mkdir()
        for name in ("checkpoint.data", "checkpoint.index", "score.json"):
            (checkpoint / name).write_text(f"{name} {self.steps}")
        for old in sorted((self.folder / "checkpoints").iterdir())[:-3]:
            for file in old.iterdir():
                file.unlink()
            old.rmdir()


def check_resumable(url, least):
    """The newest whole checkpoint that is stored is at least `least`, and no row before it is missing."""
    files = read_tar(io.BytesIO(Storage(url).read("runs/x.tar")))
    steps = {int(name.split("/")[1]) for name in files if name.startswith("checkpoints/")}
    for step in steps:
        for name in ("checkpoint.data", "checkpoint.index", "score.json"):
            assert files[f"checkpoints/{step:012d}/{name}"] == f"{name} {step}".encode()
    rows = [int(row) for row in files["metrics.csv"].split()]
    assert least <= max(steps) <= rows[-1] and rows == list(range(1, len(rows) + 1))
    assert not [name for name in files if "lock" in name or ".new" in name]


@pytest.fixture(params=["folder", "memory"])
def url(request, tmp_path):
    return str(tmp_path / "storage") if request.param == "folder" else f"memory://{tmp_path.name}"


def test_a_live_run_is_stored_so_that_it_can_be_resumed(tmp_path, monkeypatch, url):
    """It saves after every second file that is read, so that checkpoints vanish in the middle."""
    run = LiveRun(tmp_path / "here")
    stored = StoredRun(Storage(url), tmp_path / "here", "x")
    run.save()
    stored.push()
    check_resumable(url, 1)
    read = Path.read_bytes
    count = []

    def saving(path):
        content = read(path)
        count.append(path)
        if len(count) % 2 == 0:
            run.save()
        return content

    for _ in range(4):
        run.save()
        before = run.steps
        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_bytes", saving)
            stored.push()
        check_resumable(url, before)


def test_a_node_that_dies_while_it_stores_leaves_what_was_there(tmp_path, monkeypatch, url):
    run = LiveRun(tmp_path / "here")
    storage = Storage(url)
    stored = StoredRun(storage, tmp_path / "here", "x")
    run.save()
    stored.push()
    before = storage.read("runs/x.tar")
    run.save()

    def dies(*paths, **options):
        raise OSError("the node died")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="the node died"):
        patch.setattr(storage._files, "mv", dies)
        stored.push()
    assert storage.read("runs/x.tar") == before
    stored.push()
    check_resumable(url, 2)


def test_what_is_pulled_is_what_was_pushed(tmp_path, url):
    run = LiveRun(tmp_path / "here")
    run.save()
    StoredRun(Storage(url), tmp_path / "here", "x").push()
    (tmp_path / "there" / "runs" / "x").mkdir(parents=True)
    (tmp_path / "there" / "runs" / "x" / "old").write_text("of an earlier run")
    there = StoredRun(Storage(url), tmp_path / "there", "x")
    there.pull()
    contents = [
        {path.relative_to(folder): path.read_text() for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "here", tmp_path / "there")
    ]
    left = {Path("runs/x/lock"), Path("runs/x/metrics.csv.new")}
    assert contents[1] == {path: text for path, text in contents[0].items() if path not in left}
    there.remove()
    assert not there.pull()


def test_a_run_that_has_come_further_here_than_in_the_storage_stays(tmp_path):
    run = LiveRun(tmp_path / "here")
    stored = StoredRun(Storage(str(tmp_path / "storage")), tmp_path / "here", "x")
    assert not stored.pull()
    run.save()
    stored.push()
    assert stored.pull()
    run.save()
    assert not stored.pull()
    assert list(stored.checkpoints()) == [1, 2]


def test_a_checkpoint_that_was_about_to_be_replaced_is_stored(tmp_path):
    """A kill between two renames leaves it under another name, which is the only checkpoint of this run."""
    run = LiveRun(tmp_path / "here")
    storage = Storage(str(tmp_path / "storage"))
    run.save()
    checkpoint = run.folder / "checkpoints" / f"{1:012d}"
    checkpoint.rename(checkpoint.with_name(f"replaced-{checkpoint.name}"))
    StoredRun(storage, tmp_path / "here", "x").push()
    elsewhere = StoredRun(storage, tmp_path / "elsewhere", "x")
    elsewhere.pull()
    assert list(elsewhere.checkpoints()) == [1]


def test_a_try_that_was_only_thought_dead_stores_nothing_more(tmp_path):
    run = LiveRun(tmp_path / "first")
    storage = Storage(str(tmp_path / "storage"))
    first, second = (StoredRun(storage, tmp_path / name, "x") for name in ("first", "second"))
    first.claim()
    run.save()
    first.push()
    second.claim()
    second.pull()
    run.save()
    with pytest.raises(TakenOver):
        first.push()
    check_resumable(str(tmp_path / "storage"), 1)
    second.push()


def test_a_try_that_is_taken_over_ends(monkeypatch):
    def push():
        raise TakenOver("by another")

    monkeypatch.setattr(ray_task, "POLL_SECONDS", 0.1)
    checkpoints = iter(range(10**6))
    taken = SimpleNamespace(checkpoints=lambda: next(checkpoints), push=push, last_line="")
    # As `attempt` does.
    start, handler = time.monotonic(), signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(TakenOver), ray_task._stored(taken, quiet, quiet):
            while time.monotonic() < start + 30:
                time.sleep(0.1)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert time.monotonic() < start + 20


def test_what_a_storage_names_outside_of_its_folder_is_not_written(tmp_path):
    stream = io.BytesIO()
    write_tar(stream, {"meta.json": b"1", "../../../evil": b"1"}, mode="w")
    storage = Storage(f"memory://{tmp_path.name}outside")
    storage.write("runs/a.tar", stream.getvalue())
    with pytest.raises(UserError, match="outside of its folder"):
        StoredRun(storage, tmp_path / "deep" / "out", "a").pull()
    assert not list(tmp_path.rglob("evil"))


def test_an_unknown_kind_of_storage_is_refused():
    with pytest.raises(UserError, match="--storage nowhere://x"):
        Storage("nowhere://x")


# cores


HOLD = """
import os, sys, time
from ga3c_tf.reproduce.cluster import cores
cores.NAME, cores.WAIT_SECONDS = "\\0" + sys.argv[1] + "-{}", float(sys.argv[2])
before = os.sched_getaffinity(0)
with cores.pinned(1, lambda text: print(text, end=": ")):
    print(*os.sched_getaffinity(0), flush=True)
    sys.stdin.readline()
assert os.sched_getaffinity(0) == before
"""


def hold(name, seconds=0.0):
    words = [sys.executable, "-c", HOLD, name, str(seconds)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    process = subprocess.Popen(words, **pipes)
    return process, process.stdout.readline().strip()


def test_cores_are_for_one_run_alone_and_free_when_it_is_killed(tmp_path):
    count = len(os.sched_getaffinity(0))
    holders = [hold(tmp_path.name) for _ in range(count)]
    assert sorted(int(core) for _, core in holders) == sorted(os.sched_getaffinity(0))
    beyond, said = hold(tmp_path.name)
    assert said.startswith(f"fewer than 1 of {count} cores are free of other runs; not pinned to any")
    first, core = holders.pop(0)
    first.kill()
    first.wait()
    after, again = hold(tmp_path.name, 5.0)
    assert again == core
    for process in (beyond, after, *(holder for holder, _ in holders)):
        process.communicate("\n")
        assert process.returncode == 0


def test_two_at_once_never_reserve_half_of_the_cores_each(monkeypatch, tmp_path):
    monkeypatch.setattr(cores, "NAME", f"\0{tmp_path.name}-{{}}")
    with contextlib.ExitStack() as one, contextlib.ExitStack() as other:
        assert cores._reserve(2, [0, 1, 2], one) == [0, 1]
        assert cores._reserve(2, [0, 1, 2], other) == []
        assert cores._reserve(1, [0, 1, 2], other) == [2]


# the command


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--storage", "x"], "--storage requires --ray"),
        (["--cpus-per-run", "1"], "--cpus-per-run requires --ray"),
        (["--gpus-per-run", "0"], "--gpus-per-run requires --ray"),
        (["--detach"], "--detach requires --ray"),
        (["--ray", "local", "--detach"], "--detach needs a cluster that outlives the command"),
        (["--ray", "127.0.0.1:1"], "--ray 127.0.0.1:1: no cluster to use there"),
        (["--ray", "local", "--storage", "nowhere://x"], "--storage nowhere://x"),
    ],
)
def test_bad_input_is_one_line_with_exit_code_2(tmp_path, arguments, words):
    done = ga3c_tf("reproduce", "--figure", "scores", "--budget", "smoke", *arguments, cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_without_ray_the_command_says_what_to_install(tmp_path):
    (tmp_path / "ray.py").write_text("raise ModuleNotFoundError(name='ray')")
    program = "import sys; sys.path.insert(0, sys.argv.pop(1)); from ga3c_tf.cli.main import main; main()"
    words = [sys.executable, "-c", program, tmp_path, "reproduce", "--figure", "scores", "--budget", "smoke"]
    done = subprocess.run([*words, "--ray", "local"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2 and done.stderr == "ga3c-tf: --ray needs pip install '.[ray]' in a clone\n"


@pytest.mark.slow
def test_a_figure_is_the_same_with_and_without_ray(tmp_path):
    """About a minute."""
    for name, options in (("ray", ["--ray", "local"]), ("alone", [])):
        words = ["--figure", "scores", "--budget", "smoke", "--out", tmp_path / name]
        environment = {**ENVIRONMENT, "PYTHONPATH": str(ROOT)}  # for Ray's processes, which are not forked
        done = ga3c_tf("reproduce", *words, *options, fresh=True, cwd=tmp_path, env=environment)
        assert done.returncode == 0 and done.stderr == "", done.stderr
    with_ray, alone = (
        {str(path.relative_to(tmp_path / name)) for path in (tmp_path / name).rglob("*") if path.is_file()}
        for name in ("ray", "alone")
    )

    # An episode may end, or not.
    by_chance = ("/checkpoints/", "tfevents", "lock", "curve.csv", "episodes.csv")

    def kinds(names):
        return {name for name in names if not any(part in name for part in by_chance)}

    more = {"logs/storage-id"} | {name for name in with_ray if name.endswith(".holder")}
    assert kinds(with_ray) - kinds(alone) == more and kinds(alone) <= kinds(with_ray)
    [records, others] = [
        [{**row, **dict.fromkeys(("value", "hours", "agent_steps", "hardware"))} for row in rows]
        for rows in (read_rows_of(tmp_path / name / "measured.csv.xz") for name in ("ray", "alone"))
    ]
    assert records == others
    assert ga3c_tf("report", "--check", "--out", tmp_path / "ray").returncode == 0


def read_rows_of(file):
    with lzma.open(file, "rt") as stream:
        return list(csv.DictReader(stream))

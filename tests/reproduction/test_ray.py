"""`reproduce --ray` on a real Ray: nodes that die, signals, attaching; storage and cores by themselves."""

import asyncio
import contextlib
import csv
import json
import os
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
from tiny_runs import quiet, saved_steps, tiny

from ga3c_tf.errors import UserError
from ga3c_tf.reproduce.figures.registry import FIGURES
from ga3c_tf.reproduce.runs.executor import LocalExecutor, order
from ga3c_tf.reproduce.runs.run import FAILED, FINISHED, INTERRUPTED, RecordedRun
from ga3c_tf.reproduce.runs.specs import run_spec
from ga3c_tf.runs.log import EPISODE_COLUMNS, METRIC_COLUMNS, read_rows

ray = pytest.importorskip("ray")
pytest.importorskip("fsspec")

from ray.cluster_utils import Cluster  # noqa: E402

from ga3c_tf.reproduce.cluster import (  # noqa: E402
    cores,
    ray_executor,
    ray_task,
    scheduler,
)
from ga3c_tf.reproduce.cluster.ray_executor import (  # noqa: E402
    RayExecutor,
    _collect,
    _ended,
    jobs_for,
    summary,
)
from ga3c_tf.reproduce.cluster.storage import Mirror, Storage, TakenOver  # noqa: E402

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
    runs = tmp_path / "out" / "runs"
    storage = tmp_path / "storage"

    def say(text):
        said.append(text)
        print(text)

    def kill():
        wait_for(lambda: all(saved_steps(storage / "runs" / spec.id) > 0 for spec in specs))
        saved.update({spec: saved_steps(storage / "runs" / spec.id) for spec in specs})
        cluster.remove_node(doomed, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    done = execute(cluster, specs, runs, say, str(storage))
    killer.join()
    assert [run.status_text for run in done] == [FINISHED, FINISHED]
    [lost] = [run for run in done if any("tried again" in text and run.spec.id in text for text in said)]
    [other] = [run for run in done if run is not lost]
    assert len(lost.sessions) == 2 and "resume" in lost.sessions[1]["command"] and len(other.sessions) == 1
    [begun] = [text for text in said if lost.spec.id in text and "from agent step" in text]
    assert int(begun.split("from agent step ")[1].split()[0]) >= saved[lost.spec] > 0
    for run in done:
        check_curves(run)
        assert not processes_of(run.spec)
        assert "1 core of" in run.hardware
    # For a command of its own; Ray has it from this process.
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))
    local = LocalExecutor(quiet).execute([tiny(1, "helpers:Paced-v0")], tmp_path / "local" / "runs", False)
    shapes = [
        [
            (record.table, record.game, record.method, record.metric, record.unit, record.status)
            for record in records
        ]
        for records in (FIGURES["tps"].records([lost]), FIGURES["tps"].records(local))
    ]
    assert shapes[0] == shapes[1]
    left = {path.name for path in (tmp_path / "out" / "runs" / lost.spec.id).iterdir()}
    assert left >= {path.name for path in local[0].path.iterdir()} - {"lock", "events.out.tfevents"} - {
        path.name for path in local[0].path.glob("events.out*")
    }
    assert (tmp_path / "out" / "logs" / f"{lost.spec.id}.txt").read_text().count("Paced-v0 in") == 2


@pytest.mark.slow
def test_a_run_whose_worker_is_killed_is_tried_again_and_its_scratch_folder_removed(cluster, tmp_path):
    """About half a minute."""
    spec = lasting(5, 12)
    said = []
    scratch = []
    folder = tmp_path / "runs" / spec.id

    def kill():
        wait_for(lambda: saved_steps(folder) > 0)
        training = min(processes_of(spec))
        words = Path(f"/proc/{training}/cmdline").read_bytes().decode().split("\0")
        scratch.extend(Path(word).parents[1] for word in words if word.endswith(spec.id))
        os.kill(int(Path(f"/proc/{training}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    [run] = execute(cluster, [spec], tmp_path / "runs", said.append)
    killer.join()
    assert run.finished and len(run.sessions) == 2 and any("WorkerCrashedError" in text for text in said)
    check_curves(run)
    assert scratch and not scratch[0].exists()


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
    execute(cluster, [good], tmp_path / "runs", force=True)
    assert before.keys() != set(done[1].path.rglob("*")) and RecordedRun.of(good, tmp_path / "runs").finished
    assert len(RecordedRun.of(good, tmp_path / "runs").sessions) == 1


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


@pytest.mark.slow
def test_a_signal_has_every_run_saved_and_ended(cluster, tmp_path):
    spec = tiny(3, steps=10**9)
    storage = tmp_path / "storage"
    process = start(cluster, tmp_path / "out" / "runs", spec, storage=storage)
    stored = storage / "runs" / spec.id
    wait_for(
        lambda: any(int(row["agent_steps"]) for row in read_rows(stored / "metrics.csv", METRIC_COLUMNS))
    )
    assert saved_steps(stored) == 0
    assert "saves a checkpoint" in interrupt(process, signal.SIGTERM)
    assert not processes_of(spec)
    run = RecordedRun.of(spec, tmp_path / "out" / "runs")
    assert saved_steps(run.path) == saved_steps(stored) > 0
    assert run.status_text == "not finished"


@pytest.mark.slow
def test_a_second_signal_ends_the_command_at_once(cluster, tmp_path):
    """About 15 s."""
    spec = tiny(6, steps=10**9)
    process = start(cluster, tmp_path / "runs", spec)
    wait_for(lambda: (tmp_path / "runs" / spec.id / "metrics.csv").exists())
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
    folder = tmp_path / "runs" / spec.id
    process = start(cluster, tmp_path / "runs", spec, detach=True)
    wait_for(lambda: (folder / "metrics.csv").exists())
    assert "the runs go on" in interrupt(process)
    assert processes_of(spec)
    said = start(cluster, tmp_path / "runs", spec).communicate(timeout=120)[0]
    assert said.count(f"{spec.id}: on ") == 1 and said.splitlines()[-1] == FINISHED
    run = RecordedRun.of(spec, tmp_path / "runs")
    assert len(run.sessions) == 1
    check_curves(run)


# who leads the runs


def lead(tmp_path, tries, force=False):
    """What becomes of a run whose tries end so, each a (status, reason, saved steps); which began afresh."""
    leader = scheduler.Scheduler(str(tmp_path))
    left = list(tries)
    afresh = []
    job = ray_task.Job(tiny(1), 1, 0)

    async def one_try(job, fresh):
        afresh.append(fresh)
        status, reason, saved = left.pop(0)
        await leader.report(job.spec.id, ray_task.Progress(saved))
        return status, reason

    async def whole():
        leader._states[job.spec.id] = scheduler.State(scheduler.WAITING, ray_task.Progress())
        leader._tasks[job.spec.id] = asyncio.current_task()
        leader._wanted_by[job.spec.id] = {"a command"}
        leader._try = one_try
        await leader._lead(job, force)
        return await leader.news(0, "a command")

    news = asyncio.run(whole())
    assert not leader._tasks
    return news.states[job.spec.id].status, news.lines, len(left), afresh


def test_tries_without_progress_come_to_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(scheduler, "RETRY_SECONDS", 0)
    lost = (INTERRUPTED, "WorkerCrashedError: it died", 0)
    status, lines, left, _ = lead(tmp_path, [lost] * 9)
    assert (status, left) == (INTERRUPTED, 6) and "it died; tried again" in lines[0]
    run = RecordedRun.of(tiny(1), tmp_path / "runs")
    assert run.status_text.startswith(
        "interrupted: 3 tries in a row were lost without a new checkpoint; the last one: Worker"
    )
    again = [(INTERRUPTED, "NodeDiedError", saved) for saved in (0, 0, 50, 50, 60, 70)]
    assert lead(tmp_path, [*again, (FINISHED, "", 80), lost])[:3:2] == (FINISHED, 1)
    assert lead(tmp_path, [(FAILED, "the training diverged", 5), lost])[:3:2] == (FAILED, 1)


def test_a_repeated_run_begins_afresh_until_it_has_a_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(scheduler, "RETRY_SECONDS", 0)
    tries = [(INTERRUPTED, "NodeDiedError", saved) for saved in (-1, -1, 50)]
    *_, afresh = lead(tmp_path, [*tries, (FINISHED, "", 80)], force=True)
    assert afresh == [True, True, True, False]


class Cancelled(scheduler.Scheduler):
    """Tries that last until they are cancelled."""

    async def _try(self, job, fresh):
        cancelled = self._tries[job.spec.id] = asyncio.Event()
        await cancelled.wait()
        del self._tries[job.spec.id]
        return scheduler.CANCELLED, ""


def statuses(leader):
    return [state.status for state in leader._states.values()]


def test_a_command_that_ends_stops_only_what_no_other_wants(tmp_path, monkeypatch):
    """By Ctrl-C, which it says, or by kill -9, after which it is silent."""
    monkeypatch.setattr(scheduler.ray, "cancel", lambda event: event.set())
    monkeypatch.setattr(scheduler, "SILENT_SECONDS", 1.5)
    own, shared, others = (ray_task.Job(tiny(seed), 1, 0) for seed in (1, 2, 3))

    async def whole():
        leader = Cancelled(str(tmp_path))
        await leader.add([own, shared], False, b"", "one", detached=False)
        await leader.add([shared, others], False, b"", "other", detached=False)
        await asyncio.sleep(0)
        await leader.stop("one")
        assert statuses(leader) == [scheduler.STOPPED, scheduler.WAITING, scheduler.WAITING]
        await leader.add([own], False, b"", "third", detached=True)
        for _ in range(15):
            await asyncio.sleep(0.2)
            await leader.news(0, "other")
        assert statuses(leader) == [scheduler.WAITING] * 3
        await asyncio.sleep(3.5)  # in which nothing is heard of the other
        assert statuses(leader) == [scheduler.WAITING, scheduler.STOPPED, scheduler.STOPPED]
        leader._watch.cancel()
        await leader.stop("third")
        assert not leader._tasks and not leader._wanted_by

    asyncio.run(whole())


def test_the_summary_counts_and_tells_how_far_each_is():
    states = {
        "a": scheduler.State(FINISHED, ray_task.Progress()),
        "b": scheduler.State(scheduler.RUNNING, ray_task.Progress(100, 1200, 0.34, -12.25)),
        "c": scheduler.State(scheduler.RUNNING, ray_task.Progress()),
    }
    assert (
        summary(states)
        == "1 finished, 2 running; b: 34%, 1200 agent steps, score -12.25; c: 0%, 0 agent steps"
    )


def test_runs_begin_in_the_order_of_a_command_without_ray(tmp_path, monkeypatch):
    specs = FIGURES["tps"].all_specs("quick")
    began = []
    monkeypatch.setattr(ray_executor, "_nodes", lambda: [{"CPU": 64.0}])
    monkeypatch.setattr(RayExecutor, "_cluster", lambda self: contextlib.nullcontext())
    monkeypatch.setattr(
        RayExecutor, "_lead", lambda self, jobs, *given: began.extend(job.spec for job in jobs)
    )
    RayExecutor("auto", None, None, None, False, print).execute(specs, tmp_path / "runs", False)
    assert began == sorted(specs, key=order) != specs


def test_resources_follow_the_agents_and_the_nodes():
    nodes = [{"CPU": 64.0}, {"CPU": 6.0, "GPU": 1.0}]
    wanted = [tiny(1), tiny(1, num_agents=32), tiny(1, num_agents=256), tiny(1, num_agents=256, device="cpu")]
    assert [job[1:] for job in jobs_for(wanted, None, None, nodes)] == [(6, 1), (6, 1), (6, 1), (6, 0)]
    assert [job[1:] for job in jobs_for(wanted[:2], None, None, nodes)] == [(4, 1), (4, 1)]
    assert [job[1:] for job in jobs_for(wanted[:1], 3, 0.25, nodes)] == [(3, 0.25)]
    a3c = run_spec("cartpole", 1, "a3c", steps=300, num_agents=16)
    assert [job[1:] for job in jobs_for([a3c], None, None, nodes)] == [(2, 0)]
    with pytest.raises(
        UserError, match=r"asks for 8 CPUs and 1 GPUs of one node; the largest has 6 CPUs and 1 GPUs"
    ):
        jobs_for(wanted[:1], 8, 1, nodes)


# storage


class Watched(Storage):
    """Calls `after` with the name of each file that was written."""

    def __init__(self, url, after):
        super().__init__(url)
        self._after = after

    def write(self, files):
        def told():
            for name, content in files:
                yield name, content
                self._after(name)

        super().write(told())


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


def check_resumable(storage, least):
    """The newest whole checkpoint that is stored is at least `least`, and no row before it is missing."""
    files = storage.names("runs/x/checkpoints")
    steps = {int(name.split("/")[3]) for name in files}
    whole = [
        step
        for step in steps
        if all(
            storage.read(f"runs/x/checkpoints/{step:012d}/{name}") == f"{name} {step}".encode()
            for name in ("checkpoint.data", "checkpoint.index", "score.json")
        )
    ]
    rows = [int(row) for row in storage.read("runs/x/metrics.csv").split()]
    assert max(whole) >= least and max(whole) <= rows[-1] and rows == list(range(1, len(rows) + 1))


@pytest.mark.parametrize("kind", ["folder", "memory"])
def test_a_live_run_is_stored_so_that_it_can_be_resumed(tmp_path, kind):
    url = str(tmp_path / "storage") if kind == "folder" else f"memory://{tmp_path.name}"
    run = LiveRun(tmp_path / "here")
    # It saves after every file.
    mirror = Mirror(Watched(url, lambda name: run.save()), tmp_path / "here", "x")
    for _ in range(4):
        run.save()
        before = run.steps
        mirror.push()
        check_resumable(Storage(url), before)
    names = Storage(url).names("")
    assert not [name for name in names if "lock" in name or ".new" in name]
    mirror.push()
    stored = {int(name.split("/")[3]) for name in Storage(url).names("runs/x/checkpoints")}
    assert max(stored) <= run.steps and len(stored) <= 3


def test_a_run_that_has_come_further_here_than_in_the_storage_is_told(tmp_path):
    run = LiveRun(tmp_path / "here")
    mirror = Mirror(Storage(str(tmp_path / "storage")), tmp_path / "here", "x")
    run.save()
    assert not mirror.is_ahead()  # there is no copy, so nothing can be lost
    mirror.push()
    assert not mirror.is_ahead()
    run.save()
    assert mirror.is_ahead()
    said = []
    _collect([mirror], said.append)
    [kept] = (tmp_path / "here" / "runs").glob("x.kept-*")
    assert (
        str(kept) in said[0]
        and sorted(path.name for path in (kept / "checkpoints").iterdir())[-1] == f"{2:012d}"
    )
    assert [path.name for path in run.folder.glob("checkpoints/*")] == [f"{1:012d}"]
    _collect([mirror], said.append)
    assert len(said) == 1


def test_a_checkpoint_that_was_about_to_be_replaced_is_stored(tmp_path):
    """A kill between two renames leaves it under another name, which is the only checkpoint of this run."""
    run = LiveRun(tmp_path / "here")
    storage = Storage(str(tmp_path / "storage"))
    mirror = Mirror(storage, tmp_path / "here", "x")
    run.save()
    mirror.push()
    checkpoint = run.folder / "checkpoints" / f"{1:012d}"
    checkpoint.rename(checkpoint.with_name(f"replaced-{checkpoint.name}"))
    mirror.push()
    assert storage.names("runs/x/checkpoints") and not mirror.is_ahead()
    elsewhere = Mirror(storage, tmp_path / "elsewhere", "x")
    elsewhere.pull()
    assert list(elsewhere.checkpoints()) == [1]
    run.save()
    assert mirror.is_ahead()


@pytest.mark.parametrize("kind", ["folder", "memory"])
def test_a_node_that_dies_while_it_stores_leaves_what_was_there(tmp_path, kind):
    for ends_after in range(1, 9):
        here = tmp_path / f"{ends_after}"
        url = str(here / "storage") if kind == "folder" else f"memory://{tmp_path.name}{ends_after}"
        run = LiveRun(here / "here")
        written = []

        def die(name, written=written, ends_after=ends_after):
            written.append(name)
            if len(written) == ends_after:
                raise OSError("the node died")

        run.save()
        mirror = Mirror(Storage(url), here / "here", "x")
        mirror.push()
        mirror._storage = Watched(url, die)
        run.save()
        (run.folder / "config.json").write_text("other settings")
        with contextlib.suppress(OSError):
            mirror.push()
        check_resumable(Storage(url), 1)
        if kind == "memory" and len(written) == ends_after:
            assert Storage(url).read("runs/x/config.json") == b"config.json"  # nothing of the second is seen
        mirror._storage = Storage(url)
        mirror.push()
        check_resumable(Storage(url), 2)


def test_what_is_pulled_is_what_was_pushed_and_only_changes_are_pushed(tmp_path):
    url = f"memory://{tmp_path.name}"
    run = LiveRun(tmp_path / "here")
    written = []
    run.save()
    (run.folder / "run.json").write_text("{}")
    mirror = Mirror(Watched(url, written.append), tmp_path / "here", "x")
    mirror.push()
    assert written[-1] == "runs/x/run.json"
    assert written.index("runs/x/meta.json") < written.index("runs/x/config.json")
    written.clear()
    mirror.push()
    assert written == []
    (tmp_path / "there" / "runs" / "x").mkdir(parents=True)
    (tmp_path / "there" / "runs" / "x" / "old").write_text("of an earlier run")
    there = Mirror(Watched(url, written.append), tmp_path / "there", "x")
    there.pull()
    files = {path.relative_to(tmp_path / "here") for path in (tmp_path / "here").rglob("*") if path.is_file()}
    pulled = {
        path.relative_to(tmp_path / "there"): path.read_text() for path in (tmp_path / "there").rglob("*.*")
    }
    assert pulled.keys() == {path for path in files if path.name not in ("lock", "metrics.csv.new")}
    assert all(text == (tmp_path / "here" / path).read_text() for path, text in pulled.items())
    there.push()
    assert written == []
    (tmp_path / "there" / "runs" / "x" / "run.json").unlink()
    there.push()
    assert Storage(url).read("runs/x/run.json") is None


def test_a_try_that_was_only_thought_dead_stores_nothing_more(tmp_path):
    first = LiveRun(tmp_path / "first")
    second = tmp_path / "second"
    mirrors = [
        Mirror(Storage(str(tmp_path / "storage")), folder, "x") for folder in (tmp_path / "first", second)
    ]
    mirrors[0].take()
    first.save()
    mirrors[0].push()
    mirrors[1].take()
    mirrors[1].pull()
    first.save()
    with pytest.raises(TakenOver):
        mirrors[0].push()
    check_resumable(Storage(str(tmp_path / "storage")), 1)
    assert Storage(str(tmp_path / "storage")).read("runs/x/metrics.csv") == b"1\n"
    mirrors[1].push()


def test_a_try_that_is_taken_over_ends():
    def push():
        raise TakenOver("by another")

    taken = SimpleNamespace(checkpoints=list, push=push)
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
    storage = Storage(f"memory://{tmp_path.name}outside")
    storage.write([("runs/a/meta.json", b"1")])
    storage.names = lambda prefix: ["runs/a/meta.json", "runs/a/../../../evil"] if prefix == "runs/a" else []
    storage.read = lambda name: b"1"
    with pytest.raises(UserError, match="outside of its folder"):
        Mirror(storage, tmp_path / "deep" / "out", "a").pull()
    assert not (tmp_path / "evil").exists()


def test_news_that_comes_after_the_end_changes_nothing(tmp_path):
    """A try that ends at once may be over before its beginning is told."""
    leader = scheduler.Scheduler(str(tmp_path))
    name = tiny(1).id
    leader._states[name] = scheduler.State(FAILED, ray_task.Progress())
    asyncio.run(leader.started(name))
    assert leader._states[name].status == FAILED


def test_an_unknown_kind_of_storage_is_refused():
    with pytest.raises(UserError, match="--storage nowhere://x"):
        Storage("nowhere://x")


def test_a_run_of_the_storage_has_ended_if_it_is_finished_or_diverged(tmp_path):
    storage = Storage(str(tmp_path))
    spec = tiny(1)
    outcomes = ({"status": "finished", "ended": "steps"}, {"status": "failed", "ended": "diverged"})
    others = ({"status": "failed", "ended": ""}, {"status": "interrupted", "ended": "interrupted"})
    assert not _ended(storage, spec)
    for result in (*outcomes, *others):
        storage.write([(f"runs/{spec.id}/run.json", json.dumps(result).encode())])
        assert _ended(storage, spec) == (result in outcomes)


def test_a_damaged_result_in_the_storage_is_named(tmp_path):
    storage = Storage(str(tmp_path))
    spec = tiny(1)
    storage.write([(f"runs/{spec.id}/run.json", b"{")])
    with pytest.raises(UserError, match=f"runs/{spec.id}/run.json in the storage is damaged"):
        _ended(storage, spec)


# cores


HOLD = """
import os, sys, time
from pathlib import Path
from ga3c_tf.reproduce.cluster import cores
cores.FOLDER, cores.WAIT_SECONDS = Path(sys.argv[1]), float(sys.argv[2])
before = os.sched_getaffinity(0)
with cores.pinned(1, lambda text: print(text, end=": ")):
    print(*os.sched_getaffinity(0), flush=True)
    sys.stdin.readline()
assert os.sched_getaffinity(0) == before
"""


def hold(folder, seconds=0.0):
    words = [sys.executable, "-c", HOLD, str(folder), str(seconds)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    process = subprocess.Popen(words, **pipes)
    return process, process.stdout.readline().strip()


def test_cores_are_for_one_run_alone_and_free_when_it_is_killed(tmp_path):
    count = len(os.sched_getaffinity(0))
    holders = [hold(tmp_path / "cores") for _ in range(count)]
    assert sorted(int(core) for _, core in holders) == sorted(os.sched_getaffinity(0))
    beyond, said = hold(tmp_path / "cores")
    assert said.startswith(f"fewer than 1 of {count} cores are free of other runs; not pinned to any")
    first, core = holders.pop(0)
    first.kill()
    first.wait()
    after, again = hold(tmp_path / "cores", 5.0)
    assert again == core
    for process in (beyond, after, *(holder for holder, _ in holders)):
        process.communicate("\n")
        assert process.returncode == 0


@pytest.mark.parametrize("kind", ["link", "open to all", "another's", "file"])
def test_locks_are_not_taken_in_a_folder_that_others_can_write_to(tmp_path, monkeypatch, kind):
    """Anybody can make the folder before us: its name in /tmp is known."""
    folder = tmp_path / "cores"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if kind == "link":
        folder.symlink_to(elsewhere)
    elif kind == "file":
        folder.write_text("mine")
    else:
        folder.mkdir(mode=0o700)
    if kind == "open to all":
        folder.chmod(0o777)
    if kind == "another's":
        if os.getuid():
            pytest.skip("only root can give a folder away")
        os.chown(folder, 12345, -1)
    monkeypatch.setattr(cores, "FOLDER", folder)
    said = []
    before = os.sched_getaffinity(0)
    with cores.pinned(1, said.append):
        assert os.sched_getaffinity(0) == before
    [line] = said
    assert "not pinned to any" in line and str(folder) in line
    assert not list(elsewhere.iterdir()) and (kind in ("link", "file") or not list(folder.iterdir()))


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
        for rows in (
            read_rows_of(tmp_path / name / "measured" / "scores-smoke.csv") for name in ("ray", "alone")
        )
    ]
    assert records == others
    assert ga3c_tf("report", "--check", "--out", tmp_path / "ray").returncode == 0


def read_rows_of(file):
    with file.open() as stream:
        return list(csv.DictReader(stream))

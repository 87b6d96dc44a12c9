"""What goes wrong in long training, for real: processes killed and stuck, disks filled, losses not finite."""

import contextlib
import json
import multiprocessing
import os
import re
import signal
import subprocess
import threading
import time
from collections import deque
from multiprocessing import connection, forkserver
from types import SimpleNamespace

import helpers
import numpy as np
import pytest
import unruly
from checks import (
    PATIENCE,
    Killed,
    alive,
    batch_of,
    before_updates,
    check_nothing_lost_or_repeated,
    check_segment,
    descendants,
    parent_of,
    poisoned,
    run_counting,
    start_training,
    update,
    wait_for_the_end_of,
    wait_until,
)
from commands import ga3c_tf

from ga3c_tf.algorithms.actor_critic.model import Model
from ga3c_tf.config import Config
from ga3c_tf.experience.queues import ServerGone
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.files import RetryingWriter
from ga3c_tf.host.signals import ENDING
from ga3c_tf.runs.csv_rows import EPISODE_COLUMNS, EVENT_COLUMNS, METRIC_COLUMNS, read_rows
from ga3c_tf.runs.failures import FailureBudget
from ga3c_tf.runs.stats import Stats
from ga3c_tf.systems.a2c import A2C
from ga3c_tf.systems.ga3c.system import GA3C
from ga3c_tf.systems.health import HealthMonitor
from ga3c_tf.systems.serial import SerialGA3C
from ga3c_tf.systems.system import Counts
from ga3c_tf.workers.agent_process import errors_told
from ga3c_tf.workers.standstill import Standstill
from ga3c_tf.workers.supervisor import (
    FORKSERVER_DIED,
    STOP_SECONDS,
    AgentError,
    AgentSupervisor,
    AlsoLostWithForkserver,
)

# 1. an agent dies


def test_a_broken_pipe_of_the_environments_own_is_told_as_its_error(tmp_path):
    """As of one that talks to a simulator which has died. It is no sign that the server has ended."""
    reader, writer = multiprocessing.Pipe(duplex=False)
    with pytest.raises(SystemExit) as ended, errors_told(writer):
        raise BrokenPipeError("the simulator is gone")
    assert ended.value.code == 1 and b"the simulator is gone" in reader.recv_bytes()
    with errors_told(writer):
        raise ServerGone
    assert not reader.poll()
    words = (
        "train",
        "helpers:BrokenPipe-v0",
        "--preset",
        "smoke",
        "--system",
        "serial",
        "--run-dir",
        tmp_path / "run",
    )
    done = ga3c_tf(*words)
    assert done.returncode == 1 and "the simulator is gone" in done.stderr


def test_a_workers_error_in_its_last_batch_ends_the_run_as_failed(tmp_path, monkeypatch):
    def fail_at_the_end(self):
        stop(self)
        self.session.errors.add(RuntimeError("the last batch"))

    stop = GA3C.stop
    monkeypatch.setattr(GA3C, "stop", fail_at_the_end)
    with pytest.raises(RuntimeError, match="the last batch"):
        run_counting(tmp_path, monkeypatch, GA3C, steps=500)


def test_no_agent_is_started_once_the_run_has_ended(tmp_path, monkeypatch):
    """The adjustment may still be at work then."""
    _, training, _ = run_counting(tmp_path, monkeypatch, GA3C, num_agents=4, steps=300)
    agents = training.system.agents
    agents.resize(3)
    agents.resize(4)
    assert agents.count == 3


def test_no_process_is_left_of_agents_that_are_started_while_the_run_ends(tmp_path, monkeypatch):
    def stop_meanwhile(self):
        thread = threading.Thread(target=self.agents.resize, args=(8,))
        thread.start()
        starting.wait()
        stop(self)
        thread.join()
        processes.extend(self.agents.processes._processes.values())

    def start_slowly(self, *args, **options):
        if threading.current_thread() is not threading.main_thread():
            starting.set()
            time.sleep(0.2)
        start(self, *args, **options)

    starting = threading.Event()
    processes = []
    stop, start = GA3C.stop, AgentSupervisor.start
    monkeypatch.setattr(GA3C, "stop", stop_meanwhile)
    monkeypatch.setattr(AgentSupervisor, "start", start_slowly)
    settings = {"num_agents": 4, "agent_processes": 8, "adjustment": "fast", "max_agents": 8}
    run_counting(tmp_path, monkeypatch, GA3C, **settings, adjustment_seconds=1000.0, steps=300)
    assert len(processes) == 5 and all(process.exitcode is not None for process in processes)


def test_thousands_of_episodes_may_end_in_one_round_of_the_serial_mode(tmp_path):
    """A pipe has room for some 2,700 records, and one process reads and writes it."""
    words = (
        "train",
        "helpers:OneStep-v0",
        "--preset",
        "smoke",
        "--system",
        "serial",
        "--agents",
        3000,
        "--steps",
        6000,
    )
    done = ga3c_tf(*words, "--run-dir", tmp_path / "run", "--json")
    assert done.returncode == 0 and json.loads(done.stdout.splitlines()[-1])["episodes"] >= 3000


@pytest.mark.parametrize("processes", [pytest.param(4, marks=pytest.mark.slow), 16])
def test_killed_agents_are_replaced_and_nothing_is_lost_repeated_or_mixed(tmp_path, monkeypatch, processes):
    """An action meant for another agent or state would end its process, and be counted as one more loss."""
    settings = {
        "num_agents": 16,
        "agent_processes": processes,
        "steps": None,
        "max_failures": 100,
    }
    model, training, summary = run_counting(tmp_path, monkeypatch, Killed, max_training_queue=16, **settings)
    assert (
        summary["ended"] == "all again"
        and summary["replaced_processes"] == training.session.lost.count == Killed.kills
    )
    for rows in model.batches:
        check_segment(rows, 5)
    trained = [row for rows in model.batches for row in rows]
    check_nothing_lost_or_repeated(trained, agents=len({place[0] for place, _, _ in trained}))
    assert len({place[0] for place, _, _ in trained}) > 16
    assert summary["trained_steps"] == len(trained)
    # At the end, and of each process when it is replaced.
    unread = (16 + 2 + Killed.kills * 16 // processes) * 5
    assert summary["trained_steps"] <= summary["sent_steps"] <= summary["trained_steps"] + unread
    given_up = 3 * 5  # at most: an agent's segment under way, a whole one, and one in the training queue
    assert (
        len(trained)
        <= summary["agent_steps"]
        <= len(trained) + (16 + Killed.kills * 16 // processes) * given_up
    )
    events = read_rows(tmp_path / "run" / "events.csv", EVENT_COLUMNS)
    assert [row["event"] for row in events] == ["lost"] * Killed.kills
    assert all("exit code -9; its agents begin anew" in row["why"] for row in events)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_ten_kills_in_two_minutes_cost_no_throughput_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr(Killed, "pause", 12.0)
    settings = {"num_agents": 16, "agent_processes": 4, "steps": None, "minutes": 3.0, "max_failures": 100}
    monkeypatch.setattr(Killed, "ended", lambda self, by_budget: by_budget)
    _, training, _ = run_counting(tmp_path, monkeypatch, Killed, **settings, log_seconds=1.0)
    rows = read_rows(tmp_path / "run" / "metrics.csv", METRIC_COLUMNS)
    losses = [float(row["time_s"]) for row in read_rows(tmp_path / "run" / "events.csv", EVENT_COLUMNS)]
    assert len(losses) == training.session.lost.count == Killed.kills

    def median_pps(start, end):
        return np.median([float(row["pps"]) for row in rows if start < float(row["time_s"]) <= end])

    before = median_pps(0.5, losses[0])
    after = median_pps(losses[-1] + 5, 180)
    assert after > 0.85 * before, (before, after)


def test_agents_that_fail_again_and_again_end_the_run_with_their_traceback(tmp_path, monkeypatch):
    with pytest.raises(AgentError, match="RuntimeError: the emulator is gone"):
        run_counting(tmp_path, monkeypatch, GA3C, env_id="helpers:Failing-v0", max_failures=3)
    assert len(read_rows(tmp_path / "run" / "events.csv", EVENT_COLUMNS)) == 3
    assert len(list((tmp_path / "run" / "checkpoints").glob("0*"))) == 2  # of the start and of the end


@pytest.mark.parametrize("kind", [GA3C, A2C])
def test_an_environment_may_end_its_process_with_any_exit_code(tmp_path, monkeypatch, kind):
    """Also with the one by which an A3C agent says that it diverged."""
    with pytest.raises(AgentError, match="ended by itself, exit code 3"):
        run_counting(tmp_path, monkeypatch, kind, env_id="helpers:Exiting-v0", max_failures=3)


@pytest.mark.parametrize(
    ("environment", "told"),
    [("helpers:Exiting-v0", "exit code 3"), ("helpers:Unstable-v0", "FloatingPointError: unstable")],
)
def test_an_a3c_agent_whose_environment_fails_has_not_diverged(tmp_path, environment, told):
    system = "--preset", "smoke", "--system", "a3c", "--agents", 1, "--max-failures", 2
    done = ga3c_tf("train", environment, *system, "--run-dir", tmp_path / "run")
    assert done.returncode == 1 and told in done.stderr and "diverged" not in done.stderr


def test_workers_come_and_go_while_agents_die(tmp_path, monkeypatch):
    class Restless(Killed):
        kills = 6
        pause = 0.2

        def start(self):
            super().start()
            self._settings = deque([(16, 1, 3), (3, 3, 1), (9, 2, 2), (1, 1, 1), (16, 2, 2)] * 4)
            self._restless = threading.Thread(target=self._change, daemon=True)
            self._restless.start()

        def _change(self):
            while self._settings:
                self.set_workers(*self._settings.popleft())
                time.sleep(0.1)

        def ended(self, by_budget):
            return None if self._restless.is_alive() else super().ended(by_budget)

    settings = {"num_agents": 16, "agent_processes": 4, "steps": None, "max_failures": 100}
    model, training, summary = run_counting(tmp_path, monkeypatch, Restless, **settings)
    assert summary["ended"] == "all again" and training.session.lost.count == Restless.kills
    for rows in model.batches:
        check_segment(rows, 5)
    trained = [row for rows in model.batches for row in rows]
    check_nothing_lost_or_repeated(trained, agents=len({place[0] for place, _, _ in trained}))


class KillsForkserver(GA3C):
    """Kills the forkserver once all agents have stepped, and goes on until they have stepped again."""

    def start(self):
        super().start()
        self._before = self._forkserver = None

    def poll(self, seconds):
        super().poll(seconds)
        session = self.session
        if self._forkserver is None and session.memory.steps[: self.agents.count].min() > 50:
            self._forkserver = forkserver._forkserver._forkserver_pid
            os.kill(self._forkserver, signal.SIGKILL)
        all_lost = session.lost.count == len(list(self.agents.processes))
        if self._before is None and all_lost:
            self._before = session.memory.steps.copy()

    def ended(self, by_budget):
        steps = self.session.memory.steps
        again = self._before is not None and (steps - self._before)[: self.agents.count].min() > 50
        return by_budget or ("all again" if again else None)

    def stop(self):
        pid = forkserver._forkserver._forkserver_pid
        self.sent_to = {pid, *descendants(pid)}
        for process in self.sent_to:
            for number in ENDING:
                os.kill(process, number)
        time.sleep(0.5)
        self.still_there = alive(self.sent_to)
        super().stop()


def test_a_forkserver_that_dies_is_one_fault_and_its_successor_leaves_signals_to_the_server(
    tmp_path, monkeypatch
):
    settings = {"num_agents": 6, "agent_processes": 6, "steps": None, "max_failures": 1}
    model, training, summary = run_counting(tmp_path, monkeypatch, KillsForkserver, **settings)
    assert summary["ended"] == "all again" and summary["replaced_processes"] == 6
    trained = [row for rows in model.batches for row in rows]
    check_nothing_lost_or_repeated(trained, agents=len({place[0] for place, _, _ in trained}))
    system = training.system
    assert len(system.sent_to) == 7 and system._forkserver not in system.sent_to
    assert system.still_there == system.sent_to


# 2. an agent hangs


def test_agents_that_hang_are_replaced(tmp_path, monkeypatch):
    """Those with even seeds hang in their second episode: in the end all seeds are odd."""
    settings = {"agent_processes": 6, "agent_timeout": 0.7, "max_failures": 1000}
    model, training, summary = run_counting(
        tmp_path, monkeypatch, GA3C, env_id="helpers:Hanging-v0", **settings
    )
    kinds = [row["event"] for row in read_rows(tmp_path / "run" / "events.csv", EVENT_COLUMNS)]
    assert kinds.count("lost") == training.session.lost.count == summary["replaced_processes"] > 0
    assert 0 <= kinds.count("hung") - kinds.count("lost") <= 6  # at the end, some have just been noticed
    trained = [row for rows in model.batches for row in rows]
    check_nothing_lost_or_repeated(trained, agents=len({place[0] for place, _, _ in trained}))


def test_a_run_that_ends_because_its_environments_are_slow_names_the_setting(tmp_path, monkeypatch):
    settings = {"agent_processes": 6, "agent_timeout": 0.7, "max_failures": 0, "steps": 10**9}
    with pytest.raises(AgentError, match=r"took more than 0\.7 s; --agent-timeout sets how long it may take"):
        run_counting(tmp_path, monkeypatch, GA3C, env_id="helpers:Hanging-v0", **settings)


def test_only_a_value_that_stays_the_same_stands_still_and_a_pause_of_all_does_not_count():
    now = [0.0]
    standstill = Standstill(clock=lambda: now[0])
    for second in range(1, 40):
        now[0] = float(second)
        values = {"changes": second, "stays": 5.0} | ({"comes and goes": 7.0} if second % 2 else {})
        found = standstill.seconds(values)
    assert found == {"changes": 0.0, "stays": 38.0, "comes and goes": 0.0}
    now[0] += 3600  # the machine slept
    assert standstill.seconds({"stays": 5.0}) == {"stays": 39.0}


@pytest.mark.parametrize("kind", [GA3C, A2C])
def test_cores_that_are_taken_away_change_nothing(tmp_path, monkeypatch, kind):
    """As `taskset -acp 0 PID` does it, from the first step on."""
    cores = 3
    for name in ("ga3c.system", "session"):
        monkeypatch.setattr(f"ga3c_tf.systems.{name}.usable_cores", lambda: cores)

    class Deprived(kind):
        def start(self):
            nonlocal cores
            cores = 1
            super().start()

    model, _, summary = run_counting(tmp_path, monkeypatch, Deprived, agent_processes=None)
    assert summary["ended"] == "steps" and summary["replaced_processes"] == 0
    check_nothing_lost_or_repeated([row for rows in model.batches for row in rows], agents=6)


# 3. a thread raises


@pytest.mark.parametrize("method", ["predict", "train"])
def test_a_threads_error_ends_the_run_with_a_checkpoint(tmp_path, monkeypatch, method):
    original = getattr(helpers.CheckingModel, method)
    calls = []

    def fail(self, *args):
        calls.append(method)
        if len(calls) > 200:
            raise ZeroDivisionError(method)
        return original(self, *args)

    monkeypatch.setattr(helpers.CheckingModel, method, fail)
    with pytest.raises(ZeroDivisionError, match=method):
        run_counting(tmp_path, monkeypatch, GA3C, steps=10**9)
    assert max(int(path.name) for path in (tmp_path / "run" / "checkpoints").glob("0*")) > 100


# 4. a loss is not finite


@pytest.mark.parametrize("kind", [GA3C, SerialGA3C])
def test_an_update_that_is_not_finite_is_left_out_and_counted(tmp_path, monkeypatch, kind):
    poisoned(monkeypatch, {20, 40, 60})
    _, training, summary = run_counting(tmp_path, monkeypatch, kind)
    assert summary["skipped_updates"] == 3 and summary["updates"] == training.session.stats.updates > 100
    events = read_rows(tmp_path / "run" / "events.csv", EVENT_COLUMNS)
    assert {row["event"] for row in events} == {"skipped"}
    assert sum(int(row["why"].split()[0]) for row in events) == 3


def outcome(result):
    return result.version, result.applied


def weights_of(model):
    return [variable.numpy() for group in model.checkpoint_objects().values() for variable in group]


@pytest.mark.parametrize("dual", [False, True])
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan, 1e30])
def test_a_batch_that_is_not_finite_changes_nothing(bad, dual):
    model = Model(Config(network="mlp", dual_rmsprop=dual), EnvironmentSpec((4,), "float32", 2), seed=0)
    states = np.ones((5, 4), np.float32)
    actions = np.zeros(5, np.int32)
    returns = np.ones(5, np.float32)
    assert outcome(update(model, batch_of(states, actions, returns), 0.01, 0.01)) == (1, True)
    before = weights_of(model)
    result = update(
        model, batch_of(states, actions, np.where(np.arange(5) == 3, np.float32(bad), returns)), 0.01, 0.01
    )
    assert outcome(result) == (1, False) and not np.isfinite(result.metrics["value_loss"])
    assert all(np.array_equal(one, other) for one, other in zip(before, weights_of(model), strict=True))
    assert outcome(update(model, batch_of(states, actions, returns), 0.01, 0.01)) == (2, True)
    assert not all(np.array_equal(one, other) for one, other in zip(before, weights_of(model), strict=True))


def test_a_gradient_that_is_not_finite_is_skipped_though_the_loss_is(tmp_path, monkeypatch):
    (tmp_path / "steep.py").write_text(
        "import tensorflow as tf\n"
        "def loss(batch, config):\n"
        "    zero = tf.reduce_sum(tf.sqrt(batch.values * 0.0))\n"  # 0, with an infinite slope
        "    return tf.reduce_sum(batch.logits), zero, tf.reduce_sum(batch.logits)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    model = Model(Config(network="mlp", loss="steep:loss"), EnvironmentSpec((4,), "float32", 2), seed=0)
    before = weights_of(model)
    result = update(
        model,
        batch_of(np.ones((5, 4), np.float32), np.zeros(5, np.int32), np.ones(5, np.float32)),
        0.01,
        0.01,
    )
    assert np.isfinite([*result.metrics.values()]).all() and outcome(result) == (0, False)
    assert all(np.array_equal(one, other) for one, other in zip(before, weights_of(model), strict=True))


# 6. the disk is full


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 8 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small file system needs the right to mount one")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def fill(disk):
    ballast = disk / "ballast"
    with contextlib.suppress(OSError), ballast.open("ab", buffering=0) as stream:
        while True:
            stream.write(b"\0" * 4096)
    with contextlib.suppress(OSError), ballast.open("ab", buffering=0) as stream:
        while stream.write(b"\0"):
            pass
    return ballast


def whole_episodes(run):
    numbers = [int(row["episode"]) for row in read_rows(run / "episodes.csv", EPISODE_COLUMNS)]
    assert numbers == list(range(1, len(numbers) + 1))
    return len(numbers)


def checkpoints_of(run):
    return {path.name for path in (run / "checkpoints").glob("0*")}


def test_a_full_disk_holds_up_saving_but_not_the_training(small_disk):
    """The output goes to the full disk too, as `reproduce` directs it."""
    run = small_disk / "run"
    log = small_disk / "log.txt"
    with log.open("w") as output, start_training(run, "--agents", 4, output=output) as (process, _):
        fill(small_disk)
        time.sleep(1)  # in which a checkpoint that was being written has ended, and given back what it took
        ballast = fill(small_disk)
        with contextlib.suppress(OSError):
            while True:
                os.write(output.fileno(), b"\n")  # what room the last page of the log has
        before = checkpoints_of(run)
        time.sleep(2)  # in which some checkpoints and many lines are due
        assert process.poll() is None and checkpoints_of(run) == before
        ballast.unlink()
        assert wait_until(lambda: checkpoints_of(run) - before)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    assert "Traceback" not in log.read_text()
    assert whole_episodes(run) > 0
    events = read_rows(run / "events.csv", EVENT_COLUMNS)
    assert {row["event"] for row in events} == {"not saved"}
    assert all(
        "No space left on device" in row["why"]
        and row["why"].endswith("the training goes on, the last checkpoint remains")
        for row in events
    )


def test_output_that_cannot_be_written_ends_no_training(tmp_path):
    with open("/dev/full", "w") as full:
        options = ["--preset", "smoke", "--run-dir", tmp_path / "run"]
        done = ga3c_tf("train", "CartPole-v1", *options, capture_output=False, stdout=full, stderr=full)
    assert done.returncode == 0
    assert max(map(int, checkpoints_of(tmp_path / "run"))) >= 2000


def test_output_that_cannot_be_written_is_one_line_where_it_is_all_there_is():
    with open("/dev/full", "w") as full:
        done = ga3c_tf("games", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (
        1,
        "ga3c-tf: cannot write the output: No space left on device\n",
    )


def test_the_last_checkpoint_is_written_whatever_fails_before(tmp_path, monkeypatch):
    class FailingAtTheEnd(GA3C):
        def stop(self):
            super().stop()
            raise OSError("standard error cannot be written")

    with pytest.raises(OSError, match="standard error cannot be written"):
        run_counting(tmp_path, monkeypatch, FailingAtTheEnd)
    assert max(map(int, checkpoints_of(tmp_path / "run"))) >= 3000


def test_a_disk_that_stays_full_ends_in_one_line_and_the_last_checkpoint_stands(small_disk):
    run = small_disk / "run"
    with start_training(run, "--agents", 4) as (process, _):
        fill(small_disk)
        newest = max(path.name for path in (run / "checkpoints").glob("0*"))
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate()
    assert process.returncode == 1 and "Traceback" not in output
    assert "what was saved before remains" in output.splitlines()[-1]
    assert max(path.name for path in (run / "checkpoints").glob("0*")) == newest


def test_a_run_whose_first_checkpoint_has_no_room_is_to_be_removed(small_disk):
    ballast = fill(small_disk)
    os.truncate(ballast, ballast.stat().st_size - 40 * 1024)
    done = ga3c_tf("train", "CartPole-v1", "--preset", "smoke", "--run-dir", small_disk / "run")
    assert done.returncode == 1
    assert f"nothing was saved; remove {small_disk / 'run'}" in done.stderr.splitlines()[-1]


def test_what_has_no_room_is_written_later_in_order(small_disk):
    said = []
    file = RetryingWriter(small_disk / "rows", said.append)
    file.write(b"first\n")
    ballast = fill(small_disk)
    rows = [b"%d\n" % number for number in range(4000)]
    for row in rows:
        file.write(row)
    assert said and "No space left on device" in said[-1]
    with pytest.raises(OSError):
        file.flush()
    ballast.unlink()
    file.write(b"last\n")
    file.flush()
    file.close()
    assert (small_disk / "rows").read_bytes() == b"first\n" + b"".join(rows) + b"last\n"


# 10. load, and stages that stand still


LOADS = {
    "one agent, 16 predictors": {"num_agents": 1, "agent_processes": 1, "num_predictors": 16},
    "queues of one": {"max_training_queue": 1, "max_prediction_batch": 1},
    "a minimum batch beyond all slots": {"min_training_batch": 900, "max_training_queue": 6},
    "more trainers than agents": {"num_agents": 2, "num_trainers": 16},
}


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS.keys())
def test_odd_proportions_do_not_lock_up(tmp_path, monkeypatch, load):
    model, _, summary = run_counting(tmp_path, monkeypatch, GA3C, **load)
    assert summary["ended"] == "steps" and model.batches
    check_nothing_lost_or_repeated([row for rows in model.batches for row in rows], load.get("num_agents", 6))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_256_agents_for_five_minutes(tmp_path, monkeypatch):
    settings = {
        "num_agents": 256,
        "agent_processes": None,
        "steps": None,
        "minutes": 5.0,
        "max_training_queue": 512,
    }
    model, training, summary = run_counting(tmp_path, monkeypatch, GA3C, **settings)
    assert summary["ended"] == "minutes" and training.session.lost.count == 0
    assert training.session.memory.steps[:256].min() > 100
    check_nothing_lost_or_repeated([row for rows in model.batches for row in rows], agents=256)


NO_UPDATE = re.compile(r"no update for \d+ s; .* segments for an update")
NO_STEP = re.compile("no step for ")


def test_a_stage_that_stands_still_is_named_with_its_queue(tmp_path, monkeypatch):
    """The trainers stop working: no update any more, and soon no step."""
    monkeypatch.setattr("ga3c_tf.systems.health.STALL_SECONDS", 1.0)
    release = threading.Event()

    def wait(model, *_):
        if model._version > 50:
            release.wait()

    class Released(GA3C):
        def ended(self, by_budget):
            said = [row["why"] for row in read_rows(tmp_path / "run" / "events.csv", EVENT_COLUMNS)]
            both = all(any(map(pattern.match, said)) for pattern in (NO_UPDATE, NO_STEP))
            return "both were said" if both else None

        def stop(self):
            release.set()
            super().stop()

    before_updates(monkeypatch, wait)
    run_counting(tmp_path, monkeypatch, Released, steps=None)


@pytest.mark.parametrize(("gathered", "told"), [(0, [31, 61, 91]), (5, [])])
def test_a_stall_is_told_once_in_a_while_and_a_batch_that_grows_is_none(gathered, told):
    now = [0.0]
    said = []
    session = SimpleNamespace(
        agent_steps=0,
        stats=Stats((), rolling_episodes=1),
        training_queue=[],
        tell=lambda event, why: said.append((now[0], why)),
    )
    system = SimpleNamespace(counts=lambda: Counts(agents=1, gathered=int(gathered * now[0])))
    monitor = HealthMonitor(session, system)
    monitor._standstill = Standstill(clock=lambda: now[0])
    for _ in range(100):
        now[0] += 1.0
        session.agent_steps += 1
        session.stats.predicted(1)
        monitor._tell_stalls()
    assert [second for second, _ in said] == told and all(NO_UPDATE.match(why) for _, why in said)


@pytest.mark.parametrize("kind", [GA3C, SerialGA3C])
def test_a_minimum_batch_that_takes_minutes_is_said_at_the_start(tmp_path, monkeypatch, capsys, kind):
    monkeypatch.setattr("ga3c_tf.systems.health.SPEED_SECONDS", 0.5)
    monkeypatch.setattr("ga3c_tf.systems.health.RARE_SECONDS", 1.0)
    settings = {"env_id": "helpers:PacedCounting-v0", "num_agents": 2, "steps": 2500}
    _, training, _ = run_counting(tmp_path, monkeypatch, kind, min_training_batch=100_000, **settings)
    said = capsys.readouterr().out.splitlines()
    assert training.session.stats.updates == 0 and not read_rows(
        tmp_path / "run" / "events.csv", EVENT_COLUMNS
    )
    line, ending = said
    assert ending.startswith("no update was made in ")
    pattern = r"an update needs 100001 new states or more: at (\d+) steps per second, about (\d+) s for each"
    speed, seconds = map(int, re.fullmatch(pattern, line).groups())
    assert speed * seconds == pytest.approx(100_001, rel=0.05)


def test_an_ordinary_minimum_batch_is_not_mentioned(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("ga3c_tf.systems.health.SPEED_SECONDS", 0.1)
    run_counting(tmp_path, monkeypatch, GA3C, steps=1500, min_training_batch=40)
    assert capsys.readouterr().out == ""


# what is dealt with, up to a limit


def test_failures_are_forgiven_up_to_so_many_a_minute():
    now = [0.0]
    failures = FailureBudget(2, clock=lambda: now[0])
    for second in (0, 1, 62, 100, 130):
        now[0] = float(second)
        failures.add(ValueError("bad luck"))
    assert failures.count == 5
    now[0] = 140.0
    with pytest.raises(ValueError, match="once too often"):
        failures.add(ValueError("once too often"))


@pytest.mark.slow
def test_nothing_is_left_of_a_run_whose_agents_were_killed(tmp_path):
    with start_training(tmp_path / "run", "--agents", 8, "--max-failures", 100) as (process, children):
        agents = set().union(*(descendants(child) for child in children if parent_of(child) == process.pid))
        os.kill(min(agents), signal.SIGKILL)
        time.sleep(3)
        children = descendants(process.pid)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate()
    assert process.returncode == 130 and "agent processes replaced: 1" in output.splitlines()
    wait_for_the_end_of(children)


# which losses of processes are one fault, and which are faults of their own


@pytest.fixture
def supervisor():
    supervisor = AgentSupervisor(["ga3c_tf.errors"])
    yield supervisor
    supervisor.kill()
    supervisor.join(lambda: None, STOP_SECONDS)


def test_each_process_that_exits_with_255_while_the_others_live_is_a_fault_of_its_own(supervisor):
    """With this exit code, multiprocessing also reports processes whose forkserver has died."""
    writers = []
    for number in range(3):
        reader, writer = connection.Pipe(duplex=False)
        supervisor.start(number, unruly.exit_when_told, pipe=reader)
        writers.append(writer)
    for number in range(2):
        [lost] = [sentinel for sentinel, process in supervisor.sentinels().items() if process == number]
        writers[number].send(FORKSERVER_DIED)
        assert connection.wait([lost], PATIENCE)
        error = supervisor.error_of(number)
        assert "exit code 255" in str(error) and not isinstance(error, AlsoLostWithForkserver)


@pytest.mark.parametrize("how", ["kill", "join", "end"])
def test_the_forks_of_a_process_end_with_it(supervisor, how):
    reader, writer = connection.Pipe(duplex=False)
    supervisor.start(0, unruly.fork_and_wait, pipe=reader)
    [agent] = [process.pid for process in supervisor._processes.values()]
    assert wait_until(lambda: descendants(agent))
    family = {agent, *descendants(agent)}
    writer.close()
    if how == "kill":
        supervisor.kill()
    elif how == "join":
        assert supervisor.join(lambda: None, 0.1) == 1
    else:
        supervisor.end(0, "it has taken too long")
    wait_for_the_end_of(family)

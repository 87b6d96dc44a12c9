"""The bench: the whole system, stopped while the components are measured, and its windows."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from checks import group_ended, wait_until
from commands import children_of

from ga3c_tf.bench import system as bench
from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.host.processes import process_group
from ga3c_tf.runs.csv_rows import METRIC_COLUMNS

CARTPOLE = Config(env_id="CartPole-v1", seed=0, num_agents=4, agent_processes=2, min_training_batch=0)


def row(**changes):
    names = ("time_s", "agent_steps", "updates", *bench.COPIED)
    return {**dict.fromkeys(names, "1"), **{name: str(value) for name, value in changes.items()}}


def test_a_window_counts_true_steps_between_two_rows():
    before = row(time_s=10, agent_steps=1000, updates=50)
    after = row(
        time_s=12.5,
        agent_steps=3000,
        updates=150,
        prediction_batch=7.5,
        training_batch="",
        policy_lag_mean="",
    )
    window = bench.window(before, after)
    assert (window["seconds"], window["pps"], window["tps"]) == (2.5, 800.0, 40.0)
    assert (window["prediction_batch"], window["training_batch"], window["policy_lag_mean"]) == (
        7.5,
        None,
        None,
    )
    assert bench.window(after, after)["pps"] is None


def test_memory_tells_agents_from_the_server(monkeypatch):
    monkeypatch.setattr(
        bench, "proportional_mib", {10: 400.0, 11: 8.0, 12: 9.0, 13: 20.0, 14: 24.0, 15: None}.get
    )
    parents = {10: 1, 11: 10, 12: 10, 13: 12, 14: 12, 15: 12}
    found = bench.memory(10, {number: {"parent": parent} for number, parent in parents.items()})
    assert found == {
        "agent_processes": 3,
        "agent_process_pss_mib": 22.0,
        "agent_process_pss_mib_max": 24.0,
        "server_pss_mib": 400.0,
        "total_pss_mib": 461.0,
    }


def states_of(group):
    """The kernel's letters for what the processes of a group do: T is stopped."""
    letters = {}
    for number in process_group(group):
        letters[number] = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    return set(letters.values())


def stopped(group):
    """Whether all processes of a group are stopped, soon: a signal takes its time to reach every thread."""
    return wait_until(lambda: states_of(group) == {"T"})


def test_the_system_works_only_while_it_is_measured_and_leaves_nothing(tmp_path):
    with (
        children_of(bench),
        bench.TrainingProcess(CARTPOLE.replace(device="cpu"), tmp_path, window_s=0.2, minutes=2) as system,
    ):
        group = system._process.pid
        system.warm_up(0.2)
        assert stopped(group)
        rows = len(system._rows())
        time.sleep(0.5)
        assert states_of(group) == {"T"} and len(system._rows()) == rows
        phase = system.measure(3)
        assert stopped(group)
    assert len(phase["windows"]) == 3
    for window in phase["windows"]:
        assert window["seconds"] > 0.1 and window["pps"] > 0 and window["tps"] > 0
        assert 1 <= window["prediction_batch"] <= 4 and 1 <= window["training_batch"] <= 5
    assert 0 < phase["cpu_utilization"] < 1.05 and 0 <= phase["others_utilization"] < 1
    assert phase["memory"]["agent_processes"] == 2
    assert 1 < phase["memory"]["agent_process_pss_mib"] < 60 < phase["memory"]["server_pss_mib"]
    assert group_ended(group)


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        ([3.0, 3.2, 3.4, 3.6], [0.2, 0.2, 0.2]),  # the first row covers the stop
        ([1.0, 3.0, 3.2, 3.4], [0.2, 0.2]),  # it was on its way when the system was stopped: the second does
        ([3.0, 3.05, 3.25], [0.2]),  # short ones say little
        ([3.0], []),
    ],
)
def test_no_window_covers_a_stop(times, seconds):
    rows = [dict.fromkeys(METRIC_COLUMNS, "1") | {"time_s": str(time_s)} for time_s in times]
    assert [window["seconds"] for window in bench.windows_of(rows, 0.2)] == pytest.approx(seconds)


def test_a_system_is_warm_once_it_has_made_an_update(monkeypatch):
    system = object.__new__(bench.TrainingProcess)
    course = []
    rows = iter([[], [{"agent_steps": "640", "updates": "0"}], [{"agent_steps": "645", "updates": "1"}]])
    monkeypatch.setattr(system, "_rows", lambda: next(rows))
    monkeypatch.setattr(system, "_wait", lambda deadline, problem: course.append(problem))
    monkeypatch.setattr(system, "_signal", course.append)
    system.warm_up(0.0)
    assert course == ["no update was made", "no update was made", signal.SIGSTOP]


def test_a_system_that_ends_tells_why(tmp_path):
    with (
        children_of(bench),
        pytest.raises(UserError, match="unknown environment 'Nowhere-v0'"),
        bench.TrainingProcess(CARTPOLE.replace(env_id="Nowhere-v0"), tmp_path, 0.2, 1) as system,
    ):
        system.warm_up(0.1)
    budget = CARTPOLE.replace(device="cpu", steps=100)
    with (
        children_of(bench),
        pytest.raises(RuntimeError, match=r"the system ended, exit code 0(.|\n)*budget reached"),
        bench.TrainingProcess(budget, tmp_path, 0.2, 1) as system,
    ):
        system.warm_up(1)
        system.measure(1)


PROGRAM = """
import pathlib, signal, sys, time
from ga3c_tf.bench import system as bench
from ga3c_tf.config import Config
signal.signal(signal.SIGHUP, signal.SIG_DFL)
config = Config(env_id="CartPole-v1", seed=0, num_agents=2, device="cpu")
system = bench.TrainingProcess(config, pathlib.Path(sys.argv[1]), 0.2, minutes=60)
system.warm_up(0.1)
if sys.argv[2] == "working":
    system._signal(signal.SIGCONT)
print(system._process.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("state", ["stopped", pytest.param("working", marks=pytest.mark.slow)])
def test_a_system_ends_with_a_bench_that_is_killed(tmp_path, state):
    words = [sys.executable, "-c", PROGRAM, str(tmp_path), state]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    group = int(process.stdout.readline())
    assert stopped(group) if state == "stopped" else process_group(group)
    process.kill()
    process.wait()
    assert group_ended(group)

"""The bench: the limit's arithmetic, each component's process, the stopped system, and one short run of it all."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import warm
from commands import children_of

from ga3c_tf.bench import components
from ga3c_tf.bench import run as bench
from ga3c_tf.bench.advice import advice, compared
from ga3c_tf.bench.components import (
    ComponentProcess,
    bind_to_one_core,
    group_size,
    host_components,
    model_components,
    ms_per_call,
    prediction_sizes,
    training_sizes,
)
from ga3c_tf.bench.physical import against_the_machine, machine_limits, mflop_per_state
from ga3c_tf.bench.report import report
from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.host.calibration import Calibration
from ga3c_tf.model.networks import build_network
from ga3c_tf.runs.log import METRIC_COLUMNS

CARTPOLE = Config(env_id="CartPole-v1", seed=0, num_agents=4, agent_processes=2, min_training_batch=0)

# the arithmetic


def test_the_limit_of_a_cpu_is_the_cores_over_the_sum():
    assert bench.limits(0.25, 0.15, 0.6, cores=2, on_gpu=False) == {
        "host_pps": 2000.0,
        "device_pps": None,
        "pps_limit": 2000.0,
    }


@pytest.mark.parametrize(("environment_ms", "host", "limit"), [(0.25, 8000.0, 4000.0), (1.0, 2000.0, 2000.0)])
def test_the_limit_with_a_gpu_is_the_slower_of_two_bounds(environment_ms, host, limit):
    found = bench.limits(environment_ms, 0.15, 0.1, cores=2, on_gpu=True)
    assert found == {"host_pps": host, "device_pps": 4000.0, "pps_limit": limit}


def test_a_time_lies_on_the_line_between_measured_sizes():
    times = {5: 4.0, 25: 8.0, 1: 2.0}
    assert [bench.time_at(times, size) for size in (1, 3, 5, 10, 25)] == [2.0, 3.0, 4.0, 5.0, 8.0]
    assert [bench.time_at(times, size) for size in (0.5, 40)] == [2.0, 8.0]


def test_shares_make_up_the_cores_time():
    step_ms = {"environment": 0.25, "prediction": 0.15, "update": 0.2, "queue": 0.1}
    shares = bench.shares(step_ms, pps=2000, cores=2, on_gpu=False)
    assert shares == pytest.approx({"environment": 0.25, "prediction": 0.15, "update": 0.2, "queue": 0.1, "rest": 0.3})
    shares = bench.shares(step_ms, pps=2000, cores=2, on_gpu=True)
    assert shares == pytest.approx({"environment": 0.25, "prediction": 0.3, "update": 0.4, "queue": 0.1})


def test_the_median_leaves_out_what_did_not_happen():
    assert bench.median_of([3, None, 1, 2]) == 2
    assert bench.median_of([None]) is None
    assert bench.median_of([{5: 1.0, 25: 7.0}, {5: 3.0, 25: 9.0}]) == {5: 2.0, 25: 8.0}


@pytest.mark.parametrize(("minimum", "t_max", "own"), [(0, 5, {5}), (20, 5, {25}), (40, 5, {45}), (7, 3, {3, 9, 10})])
def test_the_batches_measured_include_those_of_the_settings(minimum, t_max, own):
    assert set(training_sizes(Config(min_training_batch=minimum, t_max=t_max))) == {5, 25, 45, 85, 128} | own


def test_predictions_are_measured_to_128_and_to_all_agents():
    assert prediction_sizes(Config()) == [1, 2, 4, 8, 16, 32, 64, 128]
    assert prediction_sizes(Config(num_agents=200)) == [1, 2, 4, 8, 16, 32, 64, 128, 200]


def row(**changes):
    names = ("time_s", "agent_steps", "updates", *bench.COPIED)
    return {**dict.fromkeys(names, "1"), **{name: str(value) for name, value in changes.items()}}


def test_a_window_counts_true_steps_between_two_rows():
    before = row(time_s=10, agent_steps=1000, updates=50)
    after = row(time_s=12.5, agent_steps=3000, updates=150, prediction_batch=7.5, training_batch="", policy_lag_mean="")
    window = bench.window(before, after)
    assert (window["seconds"], window["pps"], window["tps"]) == (2.5, 800.0, 40.0)
    assert (window["prediction_batch"], window["training_batch"], window["policy_lag_mean"]) == (7.5, None, None)
    assert bench.window(after, after)["pps"] is None


def measured(pps=1000.0, training_batch=5.0, busy=(), others=0.01):
    """One round of components, and one phase with a window of the system."""
    components = {
        "environment_ms": 0.25,
        "bare_environment_ms": 0.1,
        "queue_ms": 0.2,
        "prediction_ms": {1: 0.5, 16: 2.0, 32: 4.0},
        "update_ms": {5: 2.0, 25: 6.0},
    }
    copied = dict.fromkeys(bench.COPIED, 2.0) | {"prediction_batch": 24.0, "training_batch": training_batch}
    memory = {
        "agent_processes": 8,
        "agent_process_pss_mib": 20.0,
        "agent_process_pss_mib_max": 22.0,
        "server_pss_mib": None,
        "total_pss_mib": 600.0,
    }
    phase = {"cpu_utilization": 0.9, "others_utilization": others, "gpu_utilization": list(busy), "memory": memory}
    return components, {**phase, "windows": [{"seconds": 1.0, "pps": pps, "tps": pps / 5, **copied}]}


def test_the_summary_by_hand():
    rounds, phases = zip(measured(900.0), measured(1000.0), measured(1400.0), strict=True)
    result = bench.summarize(CARTPOLE, "cpu", 4, rounds, phases, cores=2)
    assert (result["pps"], result["pps_min"], result["pps_max"], result["tps"]) == (1000.0, 900.0, 1400.0, 200.0)
    assert result["call_ms"] == {"environment": 0.25, "prediction": 3.0, "update": 2.0, "queue": 0.2}
    assert result["step_ms"] == pytest.approx({"environment": 0.25, "prediction": 0.125, "update": 0.4, "queue": 0.05})
    assert result["pps_limit"] == pytest.approx(2000 / 0.775)
    assert result["efficiency"] == pytest.approx(1000 / (2000 / 0.775))
    assert result["pps_as_the_authors_count"] == pytest.approx(1200.0)
    assert len(result["windows"]) == len(result["rounds"]) == 3
    json.dumps(result, allow_nan=False)


def test_a_bench_without_an_update_says_what_to_do():
    rounds, phases = measured(training_batch=None)
    with pytest.raises(UserError, match="no update happened in any window; give more --seconds"):
        bench.summarize(CARTPOLE, "cpu", 4, [rounds], [phases], cores=2)


# what it prints


def result_of(**devices):
    return {
        "machine": {"cores": 2, "cpu": "Abacus", "gpus": ["H200"] if "gpu" in devices else [], "onednn": "on"},
        "commit": None,
        "dirty": None,
        "versions": {"python": "3.11.7", "tensorflow": "2.21.0"},
        "settings": {name: getattr(CARTPOLE, name) for name in CARTPOLE.__dataclass_fields__},
        "network": "mlp",
        "rounds": 1,
        "windows": 1,
        "window_s": 1.0,
        "devices": devices,
    }


def summary(kind, speeds=(1.0, 1.1), **changes):
    """A device's numbers, measured between calibrations of so many times GFLOP/s, GB/s and frames/s of one machine."""
    rounds, phases = measured(**changes)
    found = bench.summarize(CARTPOLE, kind, 4, [rounds], [phases], cores=2)
    calibrations = [Calibration(26.7 * speed, 5.0 * speed, 4000.0 * speed) for speed in speeds]
    return {**found, **against_the_machine(found, {"prediction": 1.035, "update": 4.572}, calibrations)}


def test_the_report_names_components_shares_limit_and_the_inflated_count():
    text = report(result_of(cpu=summary("cpu")))
    for words in ("2 cores of Abacus", "commit unknown", "network mlp, 4 agents in 2 processes", "straight lines"):
        assert words in text
    lines = {line[:36].strip(): line[36:].split() for line in text.splitlines()}
    assert lines["agent step with its environment"] == ["0.250", "0.250", "12.5%"]
    assert lines["update on the mean batch"] == ["2.000", "0.400", "20.0%"]
    assert lines["efficiency = PPS / PPS limit"] == ["0.39"]
    assert lines["PPS as the authors' code would print"] == ["1200", "(too", "high)"]
    assert lines["PSS of the server, MiB"] == ["-"]
    assert lines["used by others, at most"] == ["1%"]
    assert lines["limit of the cores, bare environment"] == ["20000", "(5%", "reached)"]
    assert lines["and the network's arithmetic on them"] == ["6667", "(15%", "reached)"]
    assert lines["PPS a unit of the calibration"] == ["1.90"]  # a unit at 1.05 times 500
    assert "27 and 29 GFLOP/s" in text and "they agree (15%)" in text
    assert "they differ" in report(result_of(cpu=summary("cpu", speeds=(1.0, 1.3))))
    disturbed = report(result_of(cpu=summary("cpu", others=0.2)))
    assert "20% (measure again when idle)" in disturbed


def test_two_devices_stand_side_by_side_and_the_question_is_answered():
    text = report(result_of(cpu=summary("cpu"), gpu=summary("gpu", pps=2500.0, busy=[0.1, 0.3, 0.2])))
    [line] = [line for line in text.splitlines() if line.startswith("PPS, true")]
    assert line.split()[-8::4] == ["1000", "2500"]
    assert text.splitlines()[-2] == (
        "A GPU helps here with network mlp: 2500 agent steps/s against 1000 on the CPU (2.50 times), and 20% of its "
        "time is used."
    )


@pytest.mark.parametrize(
    ("pps", "answer"), [(800.0, "does not help"), (1050.0, "makes no difference"), (1200.0, "helps")]
)
def test_the_verdict(pps, answer):
    said = compared("small", summary("cpu"), summary("gpu", pps=pps))
    assert f"A GPU {answer} here" in said and "what share of it is used is not known" in said


def test_devices_are_not_compared_where_the_machine_changed_between_them():
    said = compared("small", summary("cpu"), summary("gpu", pps=5000.0, speeds=(1.2, 1.2)))
    assert said.startswith("Whether a GPU helps here is not known: 5000 agent steps/s against 1000")


def advised(kind, environment, prediction, update, used=0.9, batches=None, rest=0.2):
    """The answer to components of so many ms a step, which leave this share of the time."""
    found = summary(kind)
    step_ms = {"environment": environment, "prediction": prediction, "update": update, "queue": 0.01}
    limits = bench.limits(environment, prediction, update, 2, kind == "gpu")
    components = {**found["components"], "update_ms": batches or {5: 5 * update}}
    changes = {"step_ms": step_ms, "components": components, "cpu_utilization": used, **limits}
    changes["step_shares"] = {**found["step_shares"], "rest": rest}
    return " ".join(advice("small", {kind: {**found, **changes}}))


@pytest.mark.parametrize(
    ("measurements", "sentences"),
    [
        (
            ("cpu", 1.0, 0.04, 0.04),
            ("goes to agents and", "A GPU would not help", "1.1 times", "4 instead of 2 about double", "3704 agent"),
        ),
        (("cpu", 1.0, 0.8, 0.1), ("A GPU may help, but could not double", "1.9 times", "1900 agent steps/s")),
        (("cpu", 0.2, 0.6, 0.2), ("goes to predictions", "A GPU may help, and could double", "5.0 times")),
        (("cpu", 0.2, 0.1, 0.7), ("goes to updates: an agent step takes", "0.70 ms of updates", "5.0 times")),
        (("cpu", 0.2, 0.1, 0.7, 0.5), ("More cores would not help yet: 49% of the time of these 2 is not used",)),
        (("gpu", 0.5, 0.1, 0.4), ("The GPU is the limit: the cores allow 4000", "the GPU 2000", "would not help")),
        (("gpu", 1.0, 0.1, 0.1), ("The cores are the limit", "2000", "5000", "More cores would help, up to 2.5 times")),
        (("gpu", 1.0, 0.24, 0.24), ("balanced", "Twice the speed takes more of both")),
    ],
)
def test_the_question_what_would_help_is_answered_from_the_measurements(measurements, sentences):
    said = advised(*measurements)
    assert [words for words in sentences if words not in said] == [], said


def test_no_hardware_is_advised_where_most_of_the_time_is_waiting():
    said = advised("cpu", 0.2, 0.1, 0.7, rest=0.6)
    assert said.startswith("Most of the time (60%) goes to waiting") and "A GPU may help" not in said
    assert "A GPU may help" in advised("cpu", 0.2, 0.1, 0.7, rest=0.5)


def test_larger_batches_are_named_where_they_would_help():
    said = advised("cpu", 0.2, 0.1, 0.7, batches={5: 3.5, 45: 9.0, 85: 25.5})
    assert said.endswith("training batches of 45 states allow up to 2.0 times the speed.")
    assert "training batches" not in advised("cpu", 0.2, 0.1, 0.7, batches={5: 3.5, 45: 30.0})


def test_the_limits_of_the_machine_by_hand():
    mflop = {"prediction": 2.0, "update": 6.0}
    limits = machine_limits(0.25, mflop, gflops=32.0, cores=2, on_gpu=False)
    assert limits == {"emulator_pps": 8000.0, "arithmetic_pps": 4000.0}
    assert machine_limits(0.25, mflop, 32.0, 2, on_gpu=True) == {"emulator_pps": 8000.0, "arithmetic_pps": None}


def test_the_arithmetic_of_the_small_network():
    found = mflop_per_state(build_network("small", (84, 84, 4), "uint8", 6, 0), (84, 84, 4), "uint8")
    first = 2 * (8 * 8 * 4 * 16) * 21 * 21
    rest = 2 * (4 * 4 * 16 * 32) * 11 * 11 + 2 * (11 * 11 * 32 * 256) + 2 * 256 * 7
    assert found == pytest.approx({"prediction": 1e-6 * (first + rest), "update": 1e-6 * (2 * first + 3 * rest)})


# the machine


def test_memory_tells_agents_from_the_server(monkeypatch):
    monkeypatch.setattr(bench, "proportional_mib", {10: 400.0, 11: 8.0, 12: 9.0, 13: 20.0, 14: 24.0, 15: None}.get)
    parents = {10: 1, 11: 10, 12: 10, 13: 12, 14: 12, 15: 12}
    found = bench.memory(10, {number: {"parent": parent} for number, parent in parents.items()})
    assert found == {
        "agent_processes": 3,
        "agent_process_pss_mib": 22.0,
        "agent_process_pss_mib_max": 24.0,
        "server_pss_mib": 400.0,
        "total_pss_mib": 461.0,
    }


# components


def test_time_per_call_is_a_mean_without_the_first_call():
    calls = []

    def call():
        calls.append(1)
        time.sleep(0.2 if len(calls) == 1 else 0.01)

    assert 10 <= ms_per_call(call, 0.1) < 100
    assert 2 <= len(calls) <= 12


def bound():
    bind_to_one_core()
    return {"cores": len(os.sched_getaffinity(0))}, lambda seconds: {"asked": seconds}


def refusing():
    raise UserError("no such thing")


def failing():
    return {}, lambda seconds: {"never": 1 / 0}


def ending():
    os._exit(7)


def test_a_component_is_measured_in_a_process_on_one_core():
    cores = os.sched_getaffinity(0)
    with ComponentProcess(bound) as component:
        assert component.facts == {"cores": 1}
        assert [component.measure(seconds) for seconds in (0.5, 2)] == [{"asked": 0.5}, {"asked": 2}]
        process = component._process
    assert not process.is_alive()
    assert os.sched_getaffinity(0) == cores


def test_a_components_troubles_reach_the_caller():
    with pytest.raises(UserError, match="no such thing"):
        ComponentProcess(refusing)
    with (
        ComponentProcess(failing) as component,
        pytest.raises(RuntimeError, match=r"failing failed(.|\n)*ZeroDivision"),
    ):
        component.measure(0.1)
    with pytest.raises(RuntimeError, match="ending ended by itself, exit code 7"):
        ComponentProcess(ending)


def test_a_wrapper_may_change_the_actions_of_the_bare_environment():
    step = components._bare_step(Config(env_id="helpers:Discretized-v0", seed=1))
    for _ in range(100):
        step()


def test_agents_and_queue_are_timed_even_with_two_slots_each():
    config = CARTPOLE.replace(num_agents=100, agent_processes=34)
    assert config.segments_per_agent == 1 and group_size(config) == 3
    with ComponentProcess(host_components, config) as host:
        first, second = host.measure(0.3), host.measure(0.3)
    assert host.facts == {"group": 3}
    for found in (first, second):
        assert 0.0001 < found["bare_environment_ms"] < found["environment_ms"] < 5 and 0.001 < found["queue_ms"] < 5


@pytest.mark.parametrize(
    ("settings", "device", "words"),
    [
        ({}, "abacus", "it must be auto, cpu, gpu or gpu:N"),
        ({}, "gpu:99", "device is 'gpu:99', but TensorFlow finds"),
        ({"network": "small"}, "cpu", "network 'small' takes uint8 images"),
    ],
)
def test_a_model_that_cannot_be_is_refused(settings, device, words, monkeypatch):
    """As the component's process would refuse it; that its refusal reaches the caller is tested above."""
    monkeypatch.setattr("ga3c_tf.bench.components.bind_to_one_core", lambda: None)
    with pytest.raises(UserError, match=words):
        model_components(CARTPOLE.replace(**settings), device)


def test_predictions_and_updates_are_timed_by_batch():
    with ComponentProcess(model_components, CARTPOLE, "cpu") as model:
        found = model.measure(0.1)
    assert (model.facts["device"], model.facts["network"]) == ("cpu", "mlp")
    assert list(found["prediction_ms"]) == prediction_sizes(CARTPOLE)
    assert list(found["update_ms"]) == training_sizes(CARTPOLE)
    times = [*found["prediction_ms"].values(), *found["update_ms"].values()]
    assert all(0.005 < milliseconds < 500 for milliseconds in times)


# the whole system


def states_of(group):
    """The kernel's letters for what the processes of a group do: T is stopped."""
    letters = {}
    for number in bench.process_group(group):
        letters[number] = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    return set(letters.values())


def gone(group, seconds=20):
    deadline = time.monotonic() + seconds
    while (left := bench.process_group(group)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not left


def stopped(group):
    """Whether all processes of a group are stopped, soon: a signal takes its time to reach every thread."""
    for _ in range(100):
        if states_of(group) == {"T"}:
            return True
        time.sleep(0.05)
    return False


def test_the_system_works_only_while_it_is_measured_and_leaves_nothing(tmp_path):
    with bench.System(CARTPOLE.replace(device="cpu"), tmp_path, window_s=0.2, minutes=2) as system:
        group = system._process.pid
        system.warm_up(0.2)
        rows = len(system._rows())
        time.sleep(0.6)
        assert states_of(group) == {"T"} and len(system._rows()) == rows
        phase = system.measure(3)
        assert stopped(group)
    assert len(phase["windows"]) == 3
    for window in phase["windows"]:
        assert window["seconds"] > 0.1 and window["pps"] > 10 and window["tps"] > 1
        assert 1 <= window["prediction_batch"] <= 4 and 1 <= window["training_batch"] <= 5
    assert 0.05 < phase["cpu_utilization"] < 1.05 and 0 <= phase["others_utilization"] < 1
    assert phase["memory"]["agent_processes"] == 2
    assert 1 < phase["memory"]["agent_process_pss_mib"] < 60 < phase["memory"]["server_pss_mib"]
    assert gone(group)


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
    system = object.__new__(bench.System)
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
        bench.System(CARTPOLE.replace(env_id="Nowhere-v0"), tmp_path, 0.2, 1) as system,
    ):
        system.warm_up(0.1)
    budget = CARTPOLE.replace(device="cpu", steps=100)
    with (
        children_of(bench),
        pytest.raises(RuntimeError, match=r"the system ended, exit code 0(.|\n)*budget reached"),
        bench.System(budget, tmp_path, 0.2, 1) as system,
    ):
        system.warm_up(1)
        system.measure(1)


PROGRAM = """
import pathlib, signal, sys, time
from ga3c_tf.bench import run as bench
from ga3c_tf.config import Config
signal.signal(signal.SIGHUP, signal.SIG_DFL)
config = Config(env_id="CartPole-v1", seed=0, num_agents=2, device="cpu")
system = bench.System(config, pathlib.Path(sys.argv[1]), 0.2, minutes=60)
system.warm_up(0.1)
print(system._process.pid, flush=True)
time.sleep(60)
"""


def test_a_stopped_system_ends_with_a_bench_that_is_killed(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    group = int(process.stdout.readline())
    assert stopped(group)
    process.kill()
    process.wait()
    assert gone(group)


# the command


def start(*arguments, **options):
    return warm.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def test_a_short_bench_prints_one_object_with_everything(tmp_path):
    settings = {"agents": 4, "agent-processes": 2, "min-training-batch": 10, "device": "cpu", "seconds": 2}
    options = [word for name, value in settings.items() for word in (f"--{name}", value)]
    process = start("bench", "--env", "CartPole-v1", *options, "--json", env={**os.environ, "TMPDIR": str(tmp_path)})
    output, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors
    result = json.loads(output, parse_constant=pytest.fail)
    assert list(tmp_path.iterdir()) == []
    assert {"machine", "commit", "dirty", "versions", "settings", "network", "window_s", "took_s"} <= set(result)
    assert (result["settings"]["num_agents"], result["settings"]["min_training_batch"]) == (4, 10)
    assert (result["network"], result["window_s"], list(result["devices"])) == ("mlp", 0.1, ["cpu"])
    device = result["devices"]["cpu"]
    assert len(device["windows"]) == result["windows"] == 20 and len(device["rounds"]) == result["rounds"] == 4
    assert set(device["components"]["update_ms"]) == {"5", "15", "25", "45", "85", "128"}
    assert 10 < device["pps"] < device["pps_limit"] and 10 < device["training_batch"] <= 15
    assert math.isclose(device["efficiency"], device["pps"] / device["pps_limit"])
    assert device["pps_as_the_authors_count"] == pytest.approx(1.2 * device["pps"])
    assert sum(device["step_shares"].values()) == pytest.approx(1)
    assert device["memory"]["agent_processes"] == 2
    assert len(device["calibrations"]) == 2 and result["machine"]["processor"]["caches"]
    assert device["machine_limits"]["emulator_pps"] > device["machine_limits"]["arithmetic_pps"] > device["pps"]
    assert math.isclose(device["pps_per_unit"], device["pps"] / device["unit_pps"])
    assert report({**result, "devices": {"cpu": with_numbers(device)}}).startswith(
        f"{result['machine']['cores']} cores"
    )


def with_numbers(device):
    """The batch sizes as numbers again, which JSON makes texts."""
    times = {
        name: {int(size): time for size, time in value.items()} if isinstance(value, dict) else value
        for name, value in device["components"].items()
    }
    return {**device, "components": times}


@pytest.mark.parametrize(
    "number", [pytest.param(number, marks=pytest.mark.slow) for number in (signal.SIGINT, signal.SIGTERM)]
)
def test_an_interrupted_bench_leaves_nothing(tmp_path, number):
    options = ("bench", "--env", "CartPole-v1", "--device", "cpu", "--seconds", "12")
    process = start(*options, env={**os.environ, "TMPDIR": str(tmp_path)}, process_group=0)
    while "round 1" not in process.stderr.readline():
        assert process.poll() is None
    time.sleep(1)
    started = time.monotonic()
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert (process.returncode, output) == (128 + number, "")
    assert time.monotonic() - started < 20
    assert list(tmp_path.iterdir()) == [] and gone(process.pid)
    commands = [file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline") if file.exists()]
    assert not any(bytes(tmp_path) in command for command in commands)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["--device", "cpu,gpu:99"], "device is 'gpu:99', but TensorFlow finds", marks=pytest.mark.slow),
        pytest.param(["--device", "cpu,cpu"], "name cpu and gpu once each", marks=pytest.mark.slow),
        (["--env", "Nowhere-v0"], "unknown environment 'Nowhere-v0'"),
        (["--agents", "0"], "num_agents (--agents) is 0; it must be at least 1"),
        (["--seconds", "1"], "1.0 is not in the range"),
    ],
)
def test_bad_input_is_one_line_with_exit_code_2(arguments, words):
    process = start("bench", "--env", "CartPole-v1", *arguments)
    output, errors = process.communicate(timeout=60)
    [line] = errors.splitlines()
    assert (process.returncode, output) == (2, "") and line.startswith("ga3c-tf: ") and words in line

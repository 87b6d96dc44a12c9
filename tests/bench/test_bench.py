"""The bench: the command, and the speed of several devices."""

import json
import math
import os
import runpy
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
import warm
from checks import group_ended
from commands import children_of

from ga3c_tf.bench import devices
from ga3c_tf.bench import system as bench
from ga3c_tf.bench.devices import devices_report, run_devices
from ga3c_tf.bench.model_components import PREDICTION_SIZES
from ga3c_tf.bench.report import report
from ga3c_tf.cli import tools
from ga3c_tf.cli.main import cli
from ga3c_tf.config import Config
from ga3c_tf.errors import UserError


def start(*arguments, **options):
    return warm.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def test_a_short_bench_prints_one_object_with_everything(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(tools, "exit_on_signals", lambda: None)
    settings = {"agents": 4, "agent-processes": 2, "min-training-batch": 10, "device": "cpu", "seconds": 2}
    options = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    with children_of(bench):
        cli.main(["bench", "--env", "CartPole-v1", *options, "--json"], standalone_mode=False)
    result = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert list(tmp_path.iterdir()) == []
    assert {"machine", "commit", "dirty", "versions", "settings", "network", "window_s", "took_s"} <= set(
        result
    )
    assert (result["settings"]["num_agents"], result["settings"]["min_training_batch"]) == (4, 10)
    assert (result["network"], result["window_s"], list(result["devices"])) == (
        "mlp-two-trunks",
        0.1,
        ["cpu"],
    )
    device = result["devices"]["cpu"]
    assert (
        len(device["windows"]) == result["windows"] == 20 and len(device["rounds"]) == result["rounds"] == 4
    )
    components = device["components"]
    assert set(components["prediction_ms"]) == set(map(str, PREDICTION_SIZES))
    assert set(components["update_ms"]) == {"5", "15", "25", "45", "85", "128"}
    times = [*components["prediction_ms"].values(), *components["update_ms"].values()]
    assert min(*times, components["full_call_ms"]) > 0
    assert min(device["pps"], device["pps_limit"]) > 0 and 10 < device["training_batch"] <= 15
    assert math.isclose(device["efficiency"], device["pps"] / device["pps_limit"])
    assert device["pps_as_the_authors_count"] == pytest.approx(1.2 * device["pps"])
    assert sum(device["step_shares"].values()) == pytest.approx(1)
    assert device["memory"]["agent_processes"] == 2
    assert len(device["calibrations"]) == 2 and result["machine"]["processor"]["caches"]
    assert min(device["machine_limits"][name] for name in ("emulator_pps", "arithmetic_pps")) > 0
    assert math.isclose(device["pps_per_unit"], device["pps"] / device["unit_pps"])
    text = report({**result, "devices": {"cpu": with_numbers(device)}})
    assert f"\n\n{result['machine']['cores']} core" in text


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
    process.send_signal(number)
    output, _ = process.communicate()
    assert (process.returncode, output) == (128 + number, "")
    assert list(tmp_path.iterdir()) == [] and group_ended(process.pid)
    commands = [file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline") if file.exists()]
    assert not any(bytes(tmp_path) in command for command in commands)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(
            ["--device", "cpu,gpu:99"], "device is 'gpu:99', but TensorFlow finds", marks=pytest.mark.slow
        ),
        (["--device", "cpu,cpu"], "name cpu and gpu once each"),
        (["--env", "Nowhere-v0"], "unknown environment 'Nowhere-v0'"),
        (["--agents", "0"], "num_agents (--agents) is 0; it must be at least 1"),
        (["--seconds", "1"], "--seconds is 1.0; it must be a number from 2 to 3600"),
    ],
)
def test_bad_input_is_one_line_with_exit_code_2(arguments, words):
    process = start("bench", "--env", "CartPole-v1", *arguments)
    output, errors = process.communicate()
    [line] = errors.splitlines()
    assert (process.returncode, output) == (2, "") and line.startswith("ga3c-tf: ") and words in line


# several devices


SPEEDS = {"gpu:1": 1000.0, "gpu:1,gpu:0": 1500.0}


class Training:
    """Stands for a training that makes `SPEEDS` agent steps a second, and notes when it is measured."""

    measured = []

    def __init__(self, config, folder, window_s, minutes):
        assert folder.is_dir() and minutes * 60 > 2 * 20 * window_s
        self.config = config

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def warm_up(self, seconds):
        assert seconds > 0

    def measure(self, count):
        self.measured.append((self.config.devices, self.config.sync))
        pps = SPEEDS[self.config.devices]
        window = {"pps": pps, "tps": pps / 20, "training_batch": 20.0, "policy_lag_mean": 1.5}
        return {"windows": [window] * count}


def test_the_first_device_and_all_are_measured_in_turn(monkeypatch):
    monkeypatch.setattr(devices, "TrainingProcess", Training)
    monkeypatch.setattr(Training, "measured", [])
    result = run_devices(Config(seed=0, devices="gpu:1,gpu:0", sync="none"), 10, lambda line: None)
    assert Training.measured == [("gpu:1", "mean"), ("gpu:1,gpu:0", "none")] * 4
    assert result["speed_up"] == 1.5
    assert {name: medians["pps"] for name, medians in result["devices"].items()} == SPEEDS
    answer, *lines = devices_report(result).splitlines()
    assert answer == "gpu:1,gpu:0, --sync none: 1.50 times the speed of one."
    [rates] = [line.split() for line in lines if "agent steps/s" in line]
    assert rates == ["agent", "steps/s", "1,000.0", "1,500.0"]


def test_a_bench_without_an_update_says_so(monkeypatch):
    monkeypatch.setattr(devices, "TrainingProcess", Training)
    monkeypatch.setattr(Training, "measure", lambda self, count: {"windows": [dict.fromkeys(devices.ROWS)]})
    with pytest.raises(UserError, match="no update happened in any window; give more --seconds"):
        run_devices(Config(seed=0, devices="cpu:2"), 10, lambda line: None)


def test_one_device_has_nothing_to_be_compared_with():
    with pytest.raises(UserError, match="--devices is cpu:1; bench compares two or more"):
        run_devices(Config(seed=0, devices="cpu:1"), 10, lambda line: None)


def test_the_simulation_is_that_of_the_page_and_one_device_is_never_old():
    docs = Path(__file__).parents[2] / "docs"
    simulation = runpy.run_path(str(docs / "devices_scaling.py"))
    assert simulation["table"]() in (docs / "devices.md").read_text()
    small, gpus = simulation["SMALL"], simulation["GPUS"]
    rate, lag = simulation["asynchronous"](small, gpus, 1, 1_000)
    assert lag == 0 and rate == pytest.approx(1 / small.seconds(1_000), rel=0.02)


def test_the_scores_of_the_page_are_those_of_the_record():
    docs = Path(__file__).parents[2] / "docs"
    assert runpy.run_path(str(docs / "devices_learning.py"))["table"]() in (docs / "devices.md").read_text()

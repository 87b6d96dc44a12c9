"""The bench of several devices: which trainings it measures, in which order, and what it says."""

import runpy
from pathlib import Path

import pytest

from ga3c_tf.bench import devices
from ga3c_tf.bench.devices import devices_report, run_devices
from ga3c_tf.config import Config
from ga3c_tf.errors import UserError

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

"""The measurements for a GPU: what is planned, and what is recorded when one of them fails."""

import json

import pytest

from ga3c_tf.config import Config
from ga3c_tf.host.machine import usable_cores
from ga3c_tf.reproduce import gpu_check

PHASE = {
    "windows": [{"pps": pps, "tps": pps / 5} for pps in (900.0, 1000.0, 1300.0)],
    "cpu_utilization": 0.5,
    "gpu_utilization": [0.2, 0.6],
}


class InstantTraining:
    """Stands in for a training; the one with the network large-3 fails."""

    def __init__(self, config, folder, window_s, minutes):
        self._config = config

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def warm_up(self, seconds):
        if self._config.network == "large-3":
            raise RuntimeError("the system ended, exit code 1\nout of memory")

    def measure(self, count, gpu):
        return PHASE


@pytest.fixture
def instant(monkeypatch):
    monkeypatch.setattr(gpu_check, "TrainingProcess", InstantTraining)
    monkeypatch.setattr(gpu_check, "run_components", lambda *arguments: {"devices": {}})
    monkeypatch.setattr(gpu_check, "components_report", lambda result: "components")


def test_a_training_that_fails_is_recorded_and_the_others_go_on(instant, tmp_path):
    said = []
    gpu_check.check(tmp_path / "new", "cpu", 1.0, said.append)
    record = json.loads((tmp_path / "new" / "gpu-check.json").read_text())
    trainings = record["trainings"]
    plan = [(one["system"], one["network"], one["min_training_batch"]) for one in trainings]
    assert plan == [
        *(("ga3c", network, 0) for network in ("small", "large-4", "large-3", "large-2", "large-1")),
        *(("ga3c", network, 40) for network in ("small", "large-1")),
        *(("a3c", network, Config.min_training_batch) for network in ("small", "large-1")),
    ]
    assert trainings[-1]["num_agents"] == usable_cores() and trainings[0]["num_agents"] == 128
    assert (trainings[0]["pps"], trainings[0]["tps"]) == (1000.0, 200.0)
    assert [one["network"] for one in trainings if "error" in one] == ["large-3"]
    assert said[0] == "components"
    assert said[1] == "ga3c small, 128 agents, minimum 0: 1000 predictions/s, 200 updates/s, GPU busy 40%"
    assert said[3] == "ga3c large-3, 128 agents, minimum 0: out of memory"


def test_what_was_measured_before_an_interruption_is_kept(instant, monkeypatch, tmp_path):
    def interrupted(config, seconds):
        if config.network == "large-2":
            raise KeyboardInterrupt
        return {
            "system": config.system,
            "network": config.network,
            "num_agents": 2,
            "min_training_batch": 0,
            "error": "none",
        }

    monkeypatch.setattr(gpu_check, "measured", interrupted)
    with pytest.raises(KeyboardInterrupt):
        gpu_check.check(tmp_path, "cpu", 1.0, lambda line: None)
    record = json.loads((tmp_path / "gpu-check.json").read_text())
    assert [one["network"] for one in record["trainings"]] == ["small", "large-4", "large-3"]

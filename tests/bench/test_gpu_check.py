"""The measurements for a GPU: what is planned, and what is recorded when one of them fails."""

import json
import time

import pytest

from ga3c_tf.bench import gpu_check
from ga3c_tf.host.machine import usable_cores

PHASE = {
    "windows": [{"pps": pps, "tps": pps / 5} for pps in (900.0, 1000.0, 1300.0)],
    "cpu_utilization": 0.5,
    "gpu_utilization": [0.2, 0.6],
}
PLAN = [
    "calls, plain",
    "calls, compiled",
    "server, model that answers at once",
    "server, network without arithmetic, plain",
    "server, network without arithmetic, compiled",
    "server, the run's network, plain",
    "server, the run's network, compiled",
    "ga3c, small",
    "ga3c, small, minimum 40",
    "a3c, small",
    "ga3c, small, not compiled",
    "ga3c, large-1",
    "ga3c, large-1, minimum 40",
    "a3c, large-1",
    "ga3c, large-1, not compiled",
    "ga3c, large-4",
    "ga3c, large-3",
    "ga3c, large-2",
    "dqn-atari",
    "dqn-atari, not compiled",
    "pqn-small",
    "pqn-small, not compiled",
]


class InstantComponent:
    """Stands in for the process of a component; servers fail."""

    def __init__(self, build, config, device, *rest):
        self.facts = {"updates_per_call": 8, "compile": config.compile}
        self._fails = build.__name__ == "server_component"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def measure(self, seconds):
        if self._fails:
            raise RuntimeError("server_component failed\nno GPU any more")
        return {"update_ms": {5: 0.9}, "full_call_ms": 1.5, "prediction_ms": {64: 1.1}}


class InstantTraining:
    """Stands in for a training; the one with the network large-3 fails, and large-2 never ends."""

    def __init__(self, config, folder, window_s, minutes):
        self._config = config

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def warm_up(self, seconds):
        if self._config.network == "large-3":
            raise RuntimeError("the system ended, exit code 1\nout of memory")
        if self._config.network == "large-2":
            time.sleep(60)

    def measure(self, count, gpu):
        return {**PHASE, "settings": [self._config.system, self._config.num_agents, self._config.compile]}


@pytest.fixture
def instant(monkeypatch):
    monkeypatch.setattr(gpu_check, "TrainingProcess", InstantTraining)
    monkeypatch.setattr(gpu_check, "MOST_SECONDS", 0.2)
    monkeypatch.setattr("ga3c_tf.bench.components.ComponentProcess", InstantComponent)


def record_of(out):
    return {part["name"]: part for part in json.loads((out / "gpu-check.json").read_text())["parts"]}


def test_a_part_that_fails_or_takes_too_long_is_recorded_and_the_others_go_on(instant, tmp_path):
    said = []
    gpu_check.check(tmp_path / "new", "cpu", 1.0, said.append)
    parts = record_of(tmp_path / "new")
    assert list(parts) == PLAN and len(said) == len(PLAN)
    assert [name for name, part in parts.items() if "error" in part] == [
        *(name for name in PLAN if name.startswith("server")),
        "ga3c, large-3",
        "ga3c, large-2",
    ]
    assert parts["ga3c, large-2"]["error"] == "not done after 0.2 s" and parts["ga3c, large-2"]["took"] < 10
    assert (parts["ga3c, small"]["pps"], parts["ga3c, small"]["tps"]) == (1000.0, 200.0)
    assert parts["ga3c, small"]["settings"] == ["ga3c", 128, "on"]
    assert parts["ga3c, small, not compiled"]["settings"] == ["ga3c", 128, "off"]
    assert parts["a3c, large-1"]["settings"][:2] == ["a3c", usable_cores()]
    assert [parts[f"calls, {model}"]["compile"] for model in ("plain", "compiled")] == ["off", "on"]
    assert said[1].endswith("update of 5 states 0.90 ms, 8 in one call 1.50 ms, prediction of 64 1.10 ms")
    assert said[2].endswith("s): no GPU any more")
    assert said[7].endswith("1000 predictions/s, 200 updates/s, cores busy 50%, GPU busy 40%")


def test_what_was_measured_before_an_interruption_is_kept(instant, monkeypatch, tmp_path):
    def interrupted(config, seconds):
        if config.system == "a3c":
            raise KeyboardInterrupt
        return {"pps": 1.0, "tps": 1.0, "cpu_utilization": 0.5, "gpu_utilization": []}

    monkeypatch.setattr(gpu_check, "measured", interrupted)
    with pytest.raises(KeyboardInterrupt):
        gpu_check.check(tmp_path, "cpu", 1.0, lambda line: None)
    assert list(record_of(tmp_path)) == PLAN[: PLAN.index("a3c, small")]

"""The bench: each component, measured in a process on one core."""

import os

import gymnasium
import numpy as np
import pytest

from ga3c_tf.bench import component_process, components
from ga3c_tf.bench.component_process import ComponentProcess, bind_to_one_core, ms_per_call
from ga3c_tf.bench.components import INSTANT, answer, components_report, run_components
from ga3c_tf.bench.host_components import _bare_step, group_size, host_components
from ga3c_tf.bench.model_components import model_components
from ga3c_tf.bench.server_component import server_component
from ga3c_tf.bench.stand_ins import FreeEnvironment
from ga3c_tf.config import Config
from ga3c_tf.environments.states import LARGEST
from ga3c_tf.errors import UserError
from ga3c_tf.host.machine import usable_cores

CARTPOLE = Config(env_id="CartPole-v1", seed=0, num_agents=4, agent_processes=2, min_training_batch=0)


def test_time_per_call_is_a_mean_without_the_first_call(monkeypatch):
    now = [0.0]

    def call():
        now.append(now[-1] + (0.25 if len(now) == 1 else 0.0625))

    monkeypatch.setattr(component_process.time, "perf_counter", lambda: now[-1])
    assert ms_per_call(call, 0.25) == 62.5
    assert len(now) == 6  # the first call, four in the time, and the beginning


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
    step = _bare_step(Config(env_id="helpers:Discretized-v0", seed=1))
    for _ in range(100):
        step()


def test_agents_and_queue_are_timed_even_with_two_slots_each():
    config = CARTPOLE.replace(num_agents=100, agent_processes=34)
    assert config.segments_per_agent == 1 and group_size(config) == 3
    with ComponentProcess(host_components, config) as host:
        first, second = host.measure(0.3), host.measure(0.3)
    assert host.facts == {"group": 3}
    for found in (first, second):
        assert all(found[name] > 0 for name in ("bare_environment_ms", "environment_ms", "queue_ms"))


def test_each_process_is_measured_with_its_share_of_the_agents_on_all_cores():
    config = CARTPOLE.replace(num_agents=64, agent_processes=None)
    with ComponentProcess(host_components, config) as host:
        assert host.facts == {"group": -(-64 // usable_cores())}


@pytest.mark.parametrize(
    ("settings", "device", "words"),
    [
        ({}, "abacus", "it must be auto, cpu, gpu or gpu:N"),
        ({}, "gpu:99", "device is 'gpu:99', but TensorFlow finds"),
        ({"network": "small"}, "cpu", "network 'small' takes uint8 screens"),
        ({"network": "lstm"}, "cpu", "bench measures networks without memory"),
    ],
)
def test_a_model_that_cannot_be_is_refused(settings, device, words, monkeypatch):
    """As the component's process would refuse it; that its refusal reaches the caller is tested above."""
    monkeypatch.setattr("ga3c_tf.bench.model_components.bind_to_one_core", lambda: None)
    with pytest.raises(UserError, match=words):
        model_components(CARTPOLE.replace(**settings), device)


def test_a_server_whose_model_answers_at_once_serves_all_agents():
    with ComponentProcess(server_component, CARTPOLE, "cpu", True) as server:
        found = server.measure(0.5)
    assert found["predictions_per_s"] > 0 and found["server_us"] > 0
    # Segments have 5 states. Three of each agent may wait when the time begins or ends.
    assert found["updates_per_s"] == pytest.approx(found["predictions_per_s"] / 5, rel=0.2, abs=24)


def test_the_state_of_a_free_environment_is_one_that_a_loss_can_be_of():
    boundless = gymnasium.spaces.Box(-LARGEST, LARGEST, (4,), np.float32)
    state, _ = FreeEnvironment(boundless, gymnasium.spaces.Discrete(2)).reset()
    assert np.abs(state).max() <= 1


@pytest.mark.slow  # 40 s
@pytest.mark.parametrize("env_id", ["CartPole-v1", "MinAtar/Breakout-v1"])
def test_all_components_are_measured_and_reported(env_id):
    result = run_components(CARTPOLE.replace(env_id=env_id), ["cpu"], 4.0, lambda line: None)
    [device] = result["devices"].values()
    assert INSTANT in device["servers"] and len(device["servers"]) == 1 + 2 * len(device["calls"])
    assert all(rates["updates_per_s"] > 0 for rates in device["servers"].values())
    text = components_report(result)
    assert text.startswith("Everything but environment and arithmetic allows ")
    assert "prediction of 128" in text and "the run's network, compiled" in text
    assert [calls["updates_per_call"] for calls in device["calls"].values()] == [1, 8]


class InstantComponent:
    """Stands in for the process of a component whose algorithm has only a plain model."""

    def __init__(self, build, config, device, *rest):
        self.facts = {"device": device, "gpus": [], "onednn": "on", "network": "mlp", "compiled": False}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def measure(self, seconds):
        return {"seconds": seconds}


def test_a_model_with_only_a_plain_form_is_not_reported_as_compiled(monkeypatch):
    monkeypatch.setattr(components, "ComponentProcess", InstantComponent)
    said = []
    result = run_components(CARTPOLE, ["cpu"], 7.0, said.append)["devices"]["cpu"]
    assert list(result["calls"]) == ["plain"] and result["calls"]["plain"]["seconds"] == 1.0
    assert list(result["servers"]) == [
        INSTANT,
        "network without arithmetic, plain",
        "the run's network, plain",
    ]
    assert said[2] == "cpu: this model has only a plain form"


def test_a_missing_gpu_ends_it_before_the_cpu_is_measured(monkeypatch):
    monkeypatch.setattr(components, "ComponentProcess", InstantComponent)
    begun = []
    result = run_components(CARTPOLE, ["cpu", "gpu"], 7.0, begun.append)
    assert begun[0].startswith("gpu: ") and begun[-1].startswith("cpu: ")
    assert list(result["devices"]) == ["cpu", "gpu"]


def test_the_answer_names_the_best_model_and_the_share_of_its_calls():
    rates = {INSTANT: 40_000, "network without arithmetic, plain": 10_000, "the run's network, plain": 900}
    said = answer("cpu", {name: {"predictions_per_s": rate} for name, rate in rates.items()})
    assert "allows 10,000 predictions/s on cpu (network without arithmetic, plain)" in said
    assert "takes 75% of that time" in said

"""The bench: the limit's arithmetic, the summary, the report and what it advises."""

import json

import pytest

from ga3c_tf.bench import run as bench
from ga3c_tf.bench.advice import advice, compared, fixed_part
from ga3c_tf.bench.model_components import prediction_sizes, training_sizes
from ga3c_tf.bench.physical import against_the_machine, machine_limits, mflop_per_state
from ga3c_tf.bench.report import report
from ga3c_tf.bench.system import COPIED
from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.host.calibration import Calibration
from ga3c_tf.model.networks import build_network

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
    """Two of the four cores are the server's, as in training."""
    found = bench.limits(environment_ms, 0.15, 0.1, cores=4, on_gpu=True)
    assert found == {"host_pps": host, "device_pps": 4000.0, "pps_limit": limit}


def test_a_time_lies_on_the_line_between_measured_sizes():
    times = {5: 4.0, 25: 8.0, 1: 2.0}
    assert [bench.time_at(times, size) for size in (1, 3, 5, 10, 25)] == [2.0, 3.0, 4.0, 5.0, 8.0]
    assert [bench.time_at(times, size) for size in (0.5, 40)] == [2.0, 8.0]


def test_shares_make_up_the_cores_time():
    step_ms = {"environment": 0.25, "prediction": 0.15, "update": 0.2, "queue": 0.1}
    shares = bench.shares(step_ms, pps=2000, cores=2, on_gpu=False)
    assert shares == pytest.approx(
        {"environment": 0.25, "prediction": 0.15, "update": 0.2, "queue": 0.1, "rest": 0.3}
    )
    shares = bench.shares(step_ms, pps=2000, cores=4, on_gpu=True)
    assert shares == pytest.approx({"environment": 0.25, "prediction": 0.3, "update": 0.4, "queue": 0.1})


def test_the_median_leaves_out_what_did_not_happen():
    assert bench.median_of([3, None, 1, 2]) == 2
    assert bench.median_of([None]) is None
    assert bench.median_of([{5: 1.0, 25: 7.0}, {5: 3.0, 25: 9.0}]) == {5: 2.0, 25: 8.0}


@pytest.mark.parametrize(
    ("minimum", "t_max", "own"), [(0, 5, {5}), (20, 5, {25}), (40, 5, {45}), (7, 3, {3, 9, 10})]
)
def test_the_batches_measured_include_those_of_the_settings(minimum, t_max, own):
    assert set(training_sizes(Config(min_training_batch=minimum, t_max=t_max))) == {5, 25, 45, 85, 128} | own


def test_predictions_are_measured_to_128_and_to_all_agents():
    assert prediction_sizes(Config()) == [1, 2, 4, 8, 16, 32, 64, 128]
    assert prediction_sizes(Config(num_agents=200)) == [1, 2, 4, 8, 16, 32, 64, 128, 200]


def measured(pps=1000.0, training_batch=5.0, busy=(), others=0.01):
    """One round of components, and one phase with a window of the system."""
    components = {
        "environment_ms": 0.25,
        "bare_environment_ms": 0.1,
        "queue_ms": 0.2,
        "prediction_ms": {1: 0.5, 16: 2.0, 32: 4.0},
        "update_ms": {5: 2.0, 25: 6.0},
    }
    copied = dict.fromkeys(COPIED, 2.0) | {"prediction_batch": 24.0, "training_batch": training_batch}
    memory = {
        "agent_processes": 8,
        "agent_process_pss_mib": 20.0,
        "agent_process_pss_mib_max": 22.0,
        "server_pss_mib": None,
        "total_pss_mib": 600.0,
    }
    phase = {
        "cpu_utilization": 0.9,
        "others_utilization": others,
        "gpu_utilization": list(busy),
        "memory": memory,
    }
    return components, {**phase, "windows": [{"seconds": 1.0, "pps": pps, "tps": pps / 5, **copied}]}


def test_the_summary_by_hand():
    rounds, phases = zip(measured(900.0), measured(1000.0), measured(1400.0), strict=True)
    result = bench.summarize(CARTPOLE, "cpu", 4, rounds, phases, cores=2)
    assert (result["pps"], result["pps_min"], result["pps_max"], result["tps"]) == (
        1000.0,
        900.0,
        1400.0,
        200.0,
    )
    assert result["call_ms"] == {"environment": 0.25, "prediction": 3.0, "update": 2.0, "queue": 0.2}
    assert result["step_ms"] == pytest.approx(
        {"environment": 0.25, "prediction": 0.125, "update": 0.4, "queue": 0.05}
    )
    assert result["pps_limit"] == pytest.approx(2000 / 0.775)
    assert result["efficiency"] == pytest.approx(1000 / (2000 / 0.775))
    assert result["pps_as_the_authors_count"] == pytest.approx(1200.0)
    assert len(result["windows"]) == len(result["rounds"]) == 3
    json.dumps(result, allow_nan=False)


@pytest.mark.parametrize(
    ("settings", "passes"),
    [
        ({"epochs": 4, "clip_ratio": 0.2, "minibatch_size": 5}, 4),
        ({"algorithm": "dqn", "training_intensity": 8.0}, 8),
    ],
)
def test_an_update_of_a_step_counts_as_often_as_the_step_is_trained_on(settings, passes):
    rounds, phases = measured()
    result = bench.summarize(
        Config(env_id="CartPole-v1", seed=0, num_agents=4, **settings), "cpu", 4, [rounds], [phases], cores=2
    )
    assert result["step_ms"]["update"] == pytest.approx(passes * 0.4)


def test_a_bench_without_an_update_says_what_to_do():
    rounds, phases = measured(training_batch=None)
    with pytest.raises(UserError, match="no update happened in any window; give more --seconds"):
        bench.summarize(CARTPOLE, "cpu", 4, [rounds], [phases], cores=2)


# what it prints


def result_of(**devices):
    return {
        "machine": {
            "cores": 2,
            "cpu": "Abacus",
            "gpus": ["H200"] if "gpu" in devices else [],
            "onednn": "on",
        },
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
    """A device's numbers between calibrations of so many times GFLOP/s, GB/s and frames/s of one machine."""
    rounds, phases = measured(**changes)
    found = bench.summarize(CARTPOLE, kind, 4, [rounds], [phases], cores=2)
    calibrations = [Calibration(26.7 * speed, 5.0 * speed, 4000.0 * speed) for speed in speeds]
    return {**found, **against_the_machine(found, {"prediction": 1.035, "update": 4.572}, calibrations)}


def test_the_report_names_components_shares_limit_and_the_inflated_count():
    text = report(result_of(cpu=summary("cpu")))
    for words in (
        "2 cores of Abacus",
        "commit unknown",
        "network mlp, 4 agents, ",
        "straight lines",
    ):
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


def test_the_report_begins_with_the_answer_and_before_it_says_that_the_machine_was_busy():
    quiet = report(result_of(cpu=summary("cpu", others=0.05))).splitlines()
    answer = advice("mlp", {"cpu": summary("cpu")})
    assert quiet[: len(answer) + 1] == [*answer, ""] and quiet[len(answer) + 1].startswith(
        "2 cores of Abacus"
    )
    busy = report(result_of(cpu=summary("cpu", others=0.2), gpu=summary("gpu", others=0.65))).splitlines()
    assert busy[0] == (
        "Do not trust these numbers: other programs used up to 65% of the machine. "
        "Measure again when it is idle."
    )
    assert busy[1].startswith("A GPU")
    assert [line.split()[-2:] for line in busy if line.startswith("used by others")] == [["20%", "65%"]]


def test_two_devices_stand_side_by_side_and_the_question_is_answered():
    text = report(result_of(cpu=summary("cpu"), gpu=summary("gpu", pps=2500.0, busy=[0.1, 0.3, 0.2])))
    [line] = [line for line in text.splitlines() if line.startswith("PPS, true")]
    assert line.split()[-8::4] == ["1000", "2500"]
    assert text.splitlines()[0] == (
        "A GPU helps here with network mlp: 2500 agent steps/s against 1000 on the CPU (2.50 times), and 20% "
        "of its time is used."
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


def advised(kind, environment, prediction, update, used=0.9, batches=None, rest=0.2, passes=1):
    """The answer to components of so many ms a step, which leave this share of the time."""
    found = summary(kind)
    step_ms = {"environment": environment, "prediction": prediction, "update": update, "queue": 0.01}
    cores = 4 if kind == "gpu" else 2
    limits = bench.limits(environment, prediction, update, cores, kind == "gpu")
    components = {**found["components"], "update_ms": batches or {5: 5 * update, 25: 25 * update}}
    changes = {
        "step_ms": step_ms,
        "components": components,
        "cpu_utilization": used,
        "passes": passes,
        **limits,
    }
    shares = bench.shares(step_ms, limits["pps_limit"], cores, kind == "gpu")
    changes["step_shares"] = {**shares, "rest": rest}
    return " ".join(advice("small", {kind: {**found, **changes}}))


@pytest.mark.parametrize(
    ("measurements", "sentences"),
    [
        (
            ("cpu", 1.0, 0.04, 0.04),
            (
                "goes to agents and",
                "A GPU would not help",
                "1.1 times",
                "4 instead of 2 about double",
                "3704 agent",
            ),
        ),
        (("cpu", 1.0, 0.8, 0.1), ("A GPU may help, but could not double", "1.9 times", "1900 agent steps/s")),
        (("cpu", 0.2, 0.6, 0.2), ("goes to predictions", "A GPU may help, and could double", "5.0 times")),
        (("cpu", 0.2, 0.1, 0.7), ("goes to updates: an agent step takes", "0.70 ms of updates", "5.0 times")),
        (
            ("cpu", 0.2, 0.1, 0.7, 0.5),
            ("More cores would not help yet: 49% of the time of these 2 is not used",),
        ),
        (
            ("gpu", 0.5, 0.1, 0.4),
            (
                "goes to updates",
                "The GPU is the limit: the cores allow 4000",
                "the GPU 2000",
                "would not help",
            ),
        ),
        (
            ("gpu", 1.0, 0.1, 0.1),
            ("The cores are the limit", "2000", "5000", "More cores would help, up to 2.5 times"),
        ),
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


def test_the_part_of_an_update_on_a_gpu_that_no_batch_changes():
    said = fixed_part({5: 5.8, 25: 5.9, 128: 7.3})
    assert said.startswith("Of an update of 5 states, 5.7 of 5.8 ms do not depend on the batch")
    assert said.endswith("Larger batches take hardly longer.")
    assert "1.0 of 6.0 ms do not" in (said := fixed_part({5: 6.0, 25: 26.0})) and said.endswith(
        "most of the time."
    )
    assert "2.0 of 2.0 ms do not" in advised("gpu", 0.5, 0.1, 0.4, batches={5: 2.0, 25: 2.0})


def test_larger_batches_are_named_where_they_would_help():
    said = advised("cpu", 0.2, 0.1, 0.7, batches={5: 3.5, 45: 9.0, 85: 25.5})
    assert said.endswith("training batches of 45 states allow up to 2.0 times the speed.")
    assert "training batches" not in advised("cpu", 0.2, 0.1, 0.7, batches={5: 3.5, 45: 30.0})
    # Trained on eight times: 0.7 ms of updates are less than those of any other batch.
    assert "training batches" not in advised("cpu", 0.2, 0.1, 0.7, batches={5: 3.5, 45: 9.0}, passes=8)


def test_the_limits_of_the_machine_by_hand():
    mflop = {"prediction": 2.0, "update": 6.0}
    limits = machine_limits(0.25, mflop, passes=1, gflops=32.0, cores=2, on_gpu=False)
    assert limits == {"emulator_pps": 8000.0, "arithmetic_pps": 4000.0}
    assert machine_limits(0.25, mflop, 8, 32.0, 2, on_gpu=False)["arithmetic_pps"] == 1000 * 2 / 1.8125
    assert machine_limits(0.25, mflop, 1, 32.0, 2, on_gpu=True) == {
        "emulator_pps": 8000.0,
        "arithmetic_pps": None,
    }


def test_the_arithmetic_of_the_small_network():
    network = build_network(Config(network="small"), EnvironmentSpec((84, 84, 4), "uint8", 6), 0)
    found = mflop_per_state(network, (84, 84, 4), "uint8")
    first = 2 * (8 * 8 * 4 * 16) * 21 * 21
    rest = 2 * (4 * 4 * 16 * 32) * 11 * 11 + 2 * (11 * 11 * 32 * 256) + 2 * 256 * 7
    assert found == pytest.approx(
        {"prediction": 1e-6 * (first + rest), "update": 1e-6 * (2 * first + 3 * rest)}
    )

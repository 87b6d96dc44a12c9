"""Programs that environments start, like simulators: they get signals as usual; none outlives the command."""

import json
import os
import secrets
import signal
import subprocess

import psutil
import pytest
import warm
from checks import wait_until
from commands import ENVIRONMENT, ga3c_tf

from ga3c_tf.runs.csv_rows import EPISODE_COLUMNS, read_columns

SMALL = ("--agents", 2, "--log-seconds", 0.5)


@pytest.fixture
def simulator_seconds():
    """The argument by which the simulators of a test are recognized."""
    seconds = f"600.{secrets.randbelow(10**9):09d}"
    yield seconds
    for simulator in simulators(seconds):
        simulator.kill()


def simulators(seconds):
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if process.info["cmdline"] == ["sleep", seconds]
    ]


@pytest.mark.parametrize(
    ("env_id", "options"),
    [
        ("helpers:Simulator-v0", ()),
        pytest.param("helpers:Simulator-v0", ("--system", "a2c"), marks=pytest.mark.slow),
        ("helpers:Simulator-v0", ("--system", "a3c")),
        ("helpers:SlowSimulator-v0", ()),
        ("helpers:UnclosedSimulator-v0", ()),
    ],
)
def test_simulators_end_with_a_training_and_with_an_evaluation(tmp_path, simulator_seconds, env_id, options):
    """The reader of the output waits for its end, which a simulator that is left would hold up."""
    run = tmp_path / "run"
    environment = {**ENVIRONMENT, "SIMULATOR_SECONDS": simulator_seconds}
    words = ("train", env_id, "--preset", "smoke", "--steps", 300, "--run-dir", run, *SMALL, *options)
    done = ga3c_tf(*words, env=environment)
    assert done.returncode == 0, done.stderr
    assert simulators(simulator_seconds) == []
    if env_id != "helpers:SlowSimulator-v0" and not options:
        done = ga3c_tf("evaluate", run, "--episodes", 2, "--trust-code", env=environment)
        assert done.returncode == 0, done.stderr
        assert simulators(simulator_seconds) == []


@pytest.mark.parametrize("system", ["ga3c", pytest.param("a2c", marks=pytest.mark.slow), "a3c"])
def test_ctrl_c_that_ends_the_simulators_ends_the_run_as_usual(tmp_path, simulator_seconds, system):
    """A simulator of an agent that was killed has ended before."""
    run = tmp_path / "run"
    words = ("train", "helpers:Simulator-v0", "--system", system, "--run-dir", run, *SMALL, "--json")
    environment = {**ENVIRONMENT, "SIMULATOR_SECONDS": simulator_seconds}
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = warm.Popen(words, env=environment, start_new_session=True, **output)
    try:
        assert wait_until(lambda: read_columns(run / "episodes.csv", EPISODE_COLUMNS)["score"].size > 0)
        assert wait_until(lambda: len(simulators(simulator_seconds)) == 2)
        first = simulators(simulator_seconds)
        if system == "ga3c":
            os.kill(first[0].ppid(), signal.SIGKILL)
            assert wait_until(lambda: not first[0].is_running() and len(simulators(simulator_seconds)) == 2)
        os.killpg(process.pid, signal.SIGINT)
        text, errors = process.communicate()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == 130, errors
    assert json.loads(text.splitlines()[-1])["ended"] == "interrupted"
    assert simulators(simulator_seconds) == []

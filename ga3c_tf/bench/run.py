"""The benchmark of `ga3c-tf bench`: the system's speed, compared with the limit set by its components
measured alone.

Components and the whole system are measured in turn, so that noise on the machine affects both. The whole
system is `ga3c-tf train` itself, stopped (SIGSTOP) while the components are measured. Speeds and times are
medians.
"""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ga3c_tf.bench.component_process import ComponentProcess
from ga3c_tf.bench.host_components import host_components
from ga3c_tf.bench.model_components import model_components
from ga3c_tf.bench.physical import against_the_machine
from ga3c_tf.bench.system import START_SECONDS, TrainingProcess
from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.host import calibration
from ga3c_tf.host.gpu import gpu_id
from ga3c_tf.host.machine import agent_cores, machine, package_versions, source_version, usable_cores

ROUNDS = 4
WINDOWS_PER_ROUND = 5
COMPONENT_SHARE = 1 / 12  # share of the system's seconds, for one round of each kind of component
WARM_UP_SHARE = 1 / 6  # share of the system's seconds, before the first window


def run_bench(config: Config, devices: Sequence[str], seconds: float, say: Callable[[str], None]) -> dict:
    """Measure the system and its components on each device.

    Args:
        config: the settings; its seed must be set.
        devices: devices as in Config's `device`: one device, or one CPU and one GPU.
        seconds: seconds for which the whole system is measured on each device, not counting the warm-up.
        say: called with one line of progress at a time.

    Returns:
        The result that `ga3c-tf bench --json` prints: machine, versions, settings, and by device the entries
        of `summarize` and `against_the_machine`.

    Raises:
        UserError: a device, environment or network does not exist, or `seconds` is too small.
        RuntimeError: the system or a component failed; the text says how.
    """
    start = time.monotonic()
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(ComponentProcess(host_components, config))
        models = [
            stack.enter_context(ComponentProcess(model_components, config, device)) for device in devices
        ]
        kinds = [model.facts["device"] for model in models]
        measured = {
            kind: _measure(config, device, host, model, seconds, say)
            for kind, device, model in zip(kinds, devices, models, strict=True)
        }
    return {
        "machine": {**machine(), "gpus": models[0].facts["gpus"], "onednn": models[0].facts["onednn"]},
        **source_version(),
        "versions": package_versions(),
        "settings": dataclasses.asdict(config),
        "network": models[0].facts["network"],
        "rounds": ROUNDS,
        "windows": ROUNDS * WINDOWS_PER_ROUND,
        "window_s": seconds / (ROUNDS * WINDOWS_PER_ROUND),
        "devices": measured,
        "took_s": round(time.monotonic() - start, 1),
    }


def _measure(
    config: Config,
    device: str,
    host: ComponentProcess,
    model: ComponentProcess,
    seconds: float,
    say: Callable[[str], None],
) -> dict:
    """Measure components and system in turn on one device, between two calibrations; return its summary."""
    kind = model.facts["device"]
    gpu = gpu_id(device) if kind == "gpu" else None
    minutes = (10 * seconds + 2 * START_SECONDS) / 60
    window_s = seconds / (ROUNDS * WINDOWS_PER_ROUND)
    rounds = []
    phases = []
    calibration_s = min(calibration.SECONDS, seconds / 4)
    before = calibration.calibrate(calibration_s)
    say(f"{kind}: starting the system")
    with (
        tempfile.TemporaryDirectory() as folder,
        TrainingProcess(config.replace(device=device), Path(folder), window_s, minutes) as system,
    ):
        system.warm_up(WARM_UP_SHARE * seconds)
        for number in range(ROUNDS):
            say(f"{kind}: round {number + 1} of {ROUNDS}")
            rounds.append(
                {**host.measure(COMPONENT_SHARE * seconds), **model.measure(COMPONENT_SHARE * seconds)}
            )
            phases.append(system.measure(WINDOWS_PER_ROUND, gpu))
    calibrations = [before, calibration.calibrate(calibration_s)]
    summary = summarize(config, kind, host.facts["group"], rounds, phases, usable_cores())
    return {**summary, **against_the_machine(summary, model.facts["mflop"], calibrations)}


def time_at(times: Mapping[int, float], size: float) -> float:
    """Return the time of a batch of `size` states, interpolated linearly, constant outside those measured."""
    sizes = sorted(times)
    return float(np.interp(size, sizes, [times[batch_size] for batch_size in sizes]))


def limits(
    environment_ms: float, prediction_ms: float, update_ms: float, cores: int, on_gpu: bool
) -> dict[str, float | None]:
    """Return the maximum number of agent steps per second that the components allow.

    Without a GPU the cores share all the work: cores / (environment + prediction + update). With a GPU there
    are two limits, and the lower one holds: the cores of agents run the environments, and the GPU predicts
    and trains. The limit of the GPU is an estimate: the host's work for predictions and updates is not
    counted, and several threads may overlap transfers and computation.

    Args:
        environment_ms: milliseconds of the environment per agent step, on one core.
        prediction_ms: milliseconds of prediction per agent step.
        update_ms: milliseconds of the update per agent step.
        cores: number of cores of the host.
        on_gpu: whether a GPU makes the predictions and updates.

    Returns:
        'host_pps', 'device_pps' (None without a GPU) and 'pps_limit', the lower of the two.
    """
    model_ms = prediction_ms + update_ms
    host_ms = environment_ms if on_gpu else environment_ms + model_ms
    host = 1000 * agent_cores(cores, on_gpu) / host_ms
    device = 1000 / model_ms if on_gpu else None
    return {"host_pps": host, "device_pps": device, "pps_limit": min(host, device) if device else host}


def summarize(
    config: Config, kind: str, group: int, rounds: Sequence[dict], phases: Sequence[dict], cores: int
) -> dict:
    """Return the medians, the limit and the efficiency of one device, with the measurements that they come
    from.

    Args:
        config: the settings.
        kind: 'cpu' or 'gpu'.
        group: number of requests in a queue's round trip.
        rounds: measurements of the components, one dict per round.
        phases: results of `TrainingProcess.measure`, one per round.
        cores: number of cores of the host.

    Raises:
        UserError: no window contains an update.
    """
    windows = [window for phase in phases for window in phase["windows"]]
    if not any(window["training_batch"] for window in windows):
        raise UserError("no update happened in any window; give more --seconds")
    system = {name: median_of([window[name] for window in windows]) for name in windows[0]}
    components = {name: median_of([timings[name] for timings in rounds]) for name in rounds[0]}
    prediction = system["prediction_batch"]
    update = system["training_batch"]
    call_ms = {
        "environment": components["environment_ms"],
        "prediction": time_at(components["prediction_ms"], prediction),
        "update": time_at(components["update_ms"], update),
        "queue": components["queue_ms"],
    }
    passes = config.training_intensity if config.algorithm == "dqn" else config.epochs
    calls = {"environment": 1, "prediction": prediction, "update": update / passes, "queue": group}
    step_ms = {name: milliseconds / calls[name] for name, milliseconds in call_ms.items()}
    limit = limits(step_ms["environment"], step_ms["prediction"], step_ms["update"], cores, kind == "gpu")
    busy = [sample for phase in phases for sample in phase["gpu_utilization"]]
    return {
        "device": kind,
        **{name: value for name, value in system.items() if name != "seconds"},
        "pps_min": min(window["pps"] for window in windows),
        "pps_max": max(window["pps"] for window in windows),
        "pps_as_the_authors_count": system["pps"] * (config.t_max + 1) / config.t_max,
        **limit,
        "efficiency": system["pps"] / limit["pps_limit"],
        "cores": cores,
        "passes": passes,
        "components": components,
        "call_ms": call_ms,
        "step_ms": step_ms,
        "step_shares": shares(step_ms, system["pps"], cores, kind == "gpu"),
        "cpu_utilization": median_of([phase["cpu_utilization"] for phase in phases]),
        "others_utilization": max(phase["others_utilization"] for phase in phases),
        "gpu_utilization": statistics.mean(busy) if busy else None,
        "memory": phases[-1]["memory"],
        "windows": windows,
        "rounds": list(rounds),
    }


def median_of(values: Sequence) -> Any:
    """Return the median of numbers, or of dicts entry by entry; None values are left out.

    The median of nothing is None.
    """
    measured = [value for value in values if value is not None]
    if measured and isinstance(measured[0], dict):
        return {name: median_of([value[name] for value in measured]) for name in measured[0]}
    return statistics.median(measured) if measured else None


def shares(step_ms: Mapping[str, float], pps: float, cores: int, on_gpu: bool) -> dict[str, float]:
    """Return each component's share of the time of one agent step in the whole system.

    The time of an agent step is cores / pps, counting the cores of agents. On a GPU, the shares of prediction
    and update are relative to 1 / pps, the GPU's time. Without a GPU, the remaining time of the cores is
    'rest': waiting, contention, and Python around the model.
    """
    host_ms = 1000 * agent_cores(cores, on_gpu) / pps
    gpu_ms = 1000 / pps
    whole = {"prediction": gpu_ms, "update": gpu_ms} if on_gpu else {}
    fractions = {name: milliseconds / whole.get(name, host_ms) for name, milliseconds in step_ms.items()}
    return fractions if on_gpu else {**fractions, "rest": 1 - sum(fractions.values())}

"""All measurements that a GPU is wanted for, in one program of about eleven minutes.

It measures the calls of the model and the server without its environment (`ga3c-tf bench --components`), GA3C
with and without compiled programs, with five networks and at a larger training batch, A3C on all cores, and
DQN and PQN with their presets, with and without compiled programs.

Usage, from the repository: `python3 -m ga3c_tf.bench.gpu_check OUT [DEVICE [SECONDS]]`. Whenever the
program ends, OUT/gpu-check.json has the parts that have ended, of which the most important are made first. A
part that fails or takes too long is recorded with its error. `cpu 1` is the rehearsal without a GPU.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ga3c_tf.bench.components import calls, servers
from ga3c_tf.bench.run import median_of
from ga3c_tf.bench.system import TrainingProcess
from ga3c_tf.config import Config
from ga3c_tf.console import warn
from ga3c_tf.errors import UserError
from ga3c_tf.files import json_text, write_aside
from ga3c_tf.host.gpu import gpu_id
from ga3c_tf.host.machine import machine, package_versions, source_version, usable_cores
from ga3c_tf.host.signals import TimeLimitReached, time_limit

NETWORKS = ("small", "large-1", "large-4", "large-3", "large-2")
EXTREMES = NETWORKS[:2]
LARGER_BATCH = 40
WINDOWS = 10
WARM_UP_SHARE = 1 / 5
COMPONENT_SHARE = 1 / 2
"""Seconds of a component for each second of a training."""
MOST_SECONDS = 150.0
"""Of one part, with its start."""
GA3C = Config(
    env_id="ALE/Pong-v5",
    seed=1,
    num_agents=128,
    num_predictors=2,
    num_trainers=2,
    min_training_batch=0,
    adjustment="off",
    compile="on",
)


class Part(NamedTuple):
    """One measurement: its name, and what makes it."""

    name: str
    measure: Callable[[], dict[str, Any]]


def check(out: Path, device: str, seconds: float, say: Callable[[str], None]) -> None:
    """Make all measurements, and write each to OUT/gpu-check.json as soon as it is made.

    The record has the machine, the versions, and 'parts': for each its 'name', the seconds that it 'took' and
    what was measured, or the 'error'.

    Args:
        out: folder for the record; it is made.
        device: device of GA3C, as in Config's `device`.
        seconds: seconds that each training is measured for, after its first update.
        say: called with the lines to show.
    """
    out.mkdir(parents=True, exist_ok=True)
    made: list[dict[str, Any]] = []
    record = {"machine": machine(), **source_version(), "versions": package_versions(), "parts": made}
    for part in [*components(device, COMPONENT_SHARE * seconds), *trainings(device, seconds)]:
        made.append(attempted(part))
        write_aside(out / "gpu-check.json", json_text(record))
        say(line(made[-1]))


def components(device: str, seconds: float) -> Iterator[Part]:
    """Yield calls and servers, with the plain and the compiled model."""
    for kind, measured in (("calls", calls(GA3C, device)), ("server", servers(GA3C, device))):
        for component in measured:
            yield Part(f"{kind}, {component.name}", functools.partial(component.measured, seconds))


def trainings(device: str, seconds: float) -> Iterator[Part]:
    """Yield the trainings whose rates are compared, those of the networks in between, and Q-learning."""
    ga3c = GA3C.replace(device=device)
    a3c = Config(env_id=GA3C.env_id, seed=GA3C.seed, system="a3c", device="cpu", num_agents=usable_cores())
    configs = {}
    for network in NETWORKS:
        configs[f"ga3c, {network}"] = ga3c.replace(network=network)
        if network in EXTREMES:
            larger = {"network": network, "min_training_batch": LARGER_BATCH}
            configs[f"ga3c, {network}, minimum {LARGER_BATCH}"] = ga3c.replace(**larger)
            configs[f"a3c, {network}"] = a3c.replace(network=network)
            configs[f"ga3c, {network}, not compiled"] = ga3c.replace(network=network, compile="off")
    for preset in ("dqn-atari", "pqn-small"):
        env_id = GA3C.env_id if preset == "dqn-atari" else "MinAtar/Breakout-v1"
        for name, compile in (("", "on"), (", not compiled", "off")):
            given = {"env_id": env_id, "seed": GA3C.seed, "device": device, "compile": compile}
            configs[preset + name] = Config.from_preset(preset, given)
    for name, config in configs.items():
        yield Part(name, functools.partial(measured, config, seconds))


def attempted(part: Part) -> dict[str, Any]:
    """Return the record of a part: what was measured, or the error."""
    start = time.monotonic()
    try:
        with time_limit(MOST_SECONDS):
            results = part.measure()
    except (RuntimeError, UserError, TimeLimitReached) as error:
        results = {"error": str(error)}
    return {"name": part.name, "took": round(time.monotonic() - start, 1), **results}


def measured(config: Config, seconds: float) -> dict[str, Any]:
    """Train, and return medians of `WINDOWS` windows, such as 'pps', and all of `TrainingProcess.measure`."""
    window_s = seconds / WINDOWS
    gpu = gpu_id(config.device) if config.device.startswith("gpu") else None
    with (
        tempfile.TemporaryDirectory() as folder,
        TrainingProcess(config, Path(folder), window_s, MOST_SECONDS / 60) as system,
    ):
        system.warm_up(WARM_UP_SHARE * seconds)
        phase = system.measure(WINDOWS, gpu)
    windows = phase["windows"]
    medians = {name: median_of([window[name] for window in windows]) for name in windows[0]}
    return {"num_agents": config.num_agents, "device": config.device, **medians, **phase}


def line(part: dict[str, Any]) -> str:
    """Format the record of a part in one line."""
    return f"{part['name']} ({part['took']:.0f} s): {outcome(part)}"


def outcome(part: dict[str, Any]) -> str:
    """Format what a part has measured: times of calls, or rates; or its error."""
    if "error" in part:
        return part["error"].splitlines()[-1]
    if "update_ms" in part:
        return (
            f"update of 5 states {part['update_ms'][5]:.2f} ms, {part['updates_per_call']} in one call "
            f"{part['full_call_ms']:.2f} ms, prediction of 64 {part['prediction_ms'][64]:.2f} ms"
        )
    if "predictions_per_s" in part:
        return f"{part['predictions_per_s']:.0f} predictions/s, {part['updates_per_s']:.0f} updates/s"
    samples = part["gpu_utilization"]
    busy = f", GPU busy {sum(samples) / len(samples):.0%}" if samples else ""
    rates = f"{part['pps']:.0f} predictions/s, {part['tps']:.0f} updates/s"
    return f"{rates}, cores busy {part['cpu_utilization']:.0%}{busy}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("device", nargs="?", default="gpu")
    parser.add_argument("seconds", nargs="?", type=float, default=12.0)
    given = parser.parse_args()
    check(given.out, given.device, given.seconds, warn)

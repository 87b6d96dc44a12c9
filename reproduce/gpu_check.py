"""All measurements that a GPU is wanted for, in one program of about ten minutes.

It measures the calls of the model and the server without its environment (`ga3c-tf bench --components`), GA3C
with five networks, the smallest and the largest at a larger training batch, and A3C on all cores.

Usage, from the repository: `python3 -m ga3c_tf.reproduce.gpu_check OUT [DEVICE [SECONDS]]`. What was measured
is in OUT/gpu-check.json, whenever the program ends. `cpu 3` is the rehearsal without a GPU.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ga3c_tf.bench.components import run_components
from ga3c_tf.bench.components_report import components_report
from ga3c_tf.bench.run import median_of
from ga3c_tf.bench.system import START_SECONDS, TrainingProcess
from ga3c_tf.config import Config
from ga3c_tf.console import warn
from ga3c_tf.errors import UserError
from ga3c_tf.files import json_text, write_aside
from ga3c_tf.host.gpu import gpu_id
from ga3c_tf.host.machine import usable_cores

NETWORKS = ("small", "large-4", "large-3", "large-2", "large-1")
EXTREMES = (NETWORKS[0], NETWORKS[-1])
LARGER_BATCH = 40
WINDOWS = 10
WARM_UP_SHARE = 1 / 5
COMPONENTS_SHARE = 3
"""Seconds of the components for each second of a training."""
GA3C = Config(
    env_id="ALE/Pong-v5",
    seed=1,
    num_agents=128,
    num_predictors=2,
    num_trainers=2,
    min_training_batch=0,
    adjustment="off",
)


def check(out: Path, device: str, seconds: float, say: Callable[[str], None]) -> dict[str, Any]:
    """Make all measurements, and write each to OUT/gpu-check.json as soon as it is made.

    Args:
        out: folder for the record; it is made.
        device: device of GA3C, as in Config's `device`.
        seconds: seconds that each training is measured for, after its first update.
        say: called with the lines to show.

    Returns:
        The record: 'components', the result of `run_components`, and 'trainings', the list of results of
        `measured`.
    """
    out.mkdir(parents=True, exist_ok=True)
    components = run_components(GA3C, [device], COMPONENTS_SHARE * seconds, say)
    say(components_report(components))
    record: dict[str, Any] = {"components": components, "trainings": []}
    for config in trainings(device):
        write_aside(out / "gpu-check.json", json_text(record))
        record["trainings"].append(measured(config, seconds))
        say(line(record["trainings"][-1]))
    write_aside(out / "gpu-check.json", json_text(record))
    return record


def trainings(device: str) -> Iterator[Config]:
    """Yield the settings of each training."""
    ga3c = GA3C.replace(device=device)
    for network in NETWORKS:
        yield ga3c.replace(network=network)
    for network in EXTREMES:
        yield ga3c.replace(network=network, min_training_batch=LARGER_BATCH)
    for network in EXTREMES:
        yield Config(
            env_id=GA3C.env_id,
            seed=GA3C.seed,
            system="a3c",
            device="cpu",
            num_agents=usable_cores(),
            network=network,
        )


def measured(config: Config, seconds: float) -> dict[str, Any]:
    """Train, and return the settings with the medians of `WINDOWS` windows, or with the error.

    Returns:
        'system', 'network', 'min_training_batch' and 'agents'; the medians, such as 'pps' and 'tps';
        'cpu_utilization'; 'gpu_utilization', the samples of the driver; 'windows'. If the training fails,
        'error' takes the place of what was measured.
    """
    names = ("system", "network", "min_training_batch", "num_agents", "device")
    settings = {name: getattr(config, name) for name in names}
    window_s = seconds / WINDOWS
    minutes = (2 * seconds + 2 * START_SECONDS) / 60
    gpu = gpu_id(config.device) if config.device.startswith("gpu") else None
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            TrainingProcess(config, Path(folder), window_s, minutes) as system,
        ):
            system.warm_up(WARM_UP_SHARE * seconds)
            phase = system.measure(WINDOWS, gpu)
    except (RuntimeError, UserError) as error:
        return {**settings, "error": str(error)}
    windows = phase["windows"]
    medians = {name: median_of([window[name] for window in windows]) for name in windows[0]}
    return {**settings, **medians, **phase}


def line(training: dict[str, Any]) -> str:
    """Format a training's result in one line."""
    label = f"{training['system']} {training['network']}, {training['num_agents']} agents"
    if training["system"] == "ga3c":
        label += f", minimum {training['min_training_batch']}"
    if "error" in training:
        return f"{label}: {training['error'].splitlines()[-1]}"
    samples = training["gpu_utilization"]
    busy = f", GPU busy {sum(samples) / len(samples):.0%}" if samples else ""
    return f"{label}: {training['pps']:.0f} predictions/s, {training['tps']:.0f} updates/s{busy}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("device", nargs="?", default="gpu")
    parser.add_argument("seconds", nargs="?", type=float, default=20.0)
    given = parser.parse_args()
    check(given.out, given.device, given.seconds, warn)

"""The benchmark of `ga3c-tf bench --devices`: the speed on all devices, and on the first of them alone."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ga3c_tf.bench.run import ROUNDS, WARM_UP_SHARE, WINDOWS_PER_ROUND, median_of
from ga3c_tf.bench.system import START_SECONDS, TrainingProcess
from ga3c_tf.config import Config
from ga3c_tf.errors import UserError
from ga3c_tf.host.machine import machine, package_versions, source_version

ROWS = {
    "pps": "agent steps/s",
    "tps": "updates/s",
    "training_batch": "states in an update",
    "policy_lag_mean": "policy lag, updates",
}
"""What is measured, by its name in metrics.csv."""


def run_devices(config: Config, seconds: float, say: Callable[[str], None]) -> dict:
    """Train on the first device and on all of them, in turn, so that noise on the machine affects both.

    Args:
        config: the settings, with `devices`; the seed must be set.
        seconds: seconds for which each training is measured, not counting its warm-up.
        say: called with one line of progress at a time.

    Returns:
        The result that `ga3c-tf bench --devices --json` prints: machine, versions, settings, 'speed_up', and
        in 'devices' the medians of `ROWS` by devices.

    Raises:
        UserError: a device or environment does not exist, or `seconds` is too small.
        RuntimeError: a training failed; the text says how.
    """
    if len(config.device_names) < 2:
        raise UserError(f"--devices is {config.devices}; bench compares two or more devices with the first")
    windows = _windows([_first(config), config], seconds, say)
    measured = {devices: median_of(of_devices) for devices, of_devices in windows.items()}
    if not all(medians and medians["training_batch"] for medians in measured.values()):
        raise UserError("no update happened in any window; give more --seconds")
    one, several = measured.values()
    return {
        "machine": machine(),
        **source_version(),
        "versions": package_versions(),
        "settings": dataclasses.asdict(config),
        "speed_up": several["pps"] / one["pps"],
        "devices": measured,
    }


def devices_report(result: Mapping[str, Any]) -> str:
    """Format the result of `run_devices` as text, the answer first."""
    settings = result["settings"]
    lines = [
        f"{settings['devices']}, --sync {settings['sync']}: {result['speed_up']:.2f} times the speed of one.",
        "",
        f"{settings['env_id']} on {result['machine']['cpu']}, commit {(result['commit'] or 'unknown')[:9]}",
        "".join(f"{cell:>20}" for cell in ("", *result["devices"])),
    ]
    for name, words in ROWS.items():
        lines.append(f"{words:>20}" + "".join(f"{of[name]:20,.1f}" for of in result["devices"].values()))
    return "\n".join(lines)


def _first(config: Config) -> Config:
    """Return the settings for the first device alone."""
    first = str(config.devices).split(",")[0]
    return config.replace(devices="cpu:1" if first.startswith("cpu") else first, sync="mean")


def _windows(trainings: list[Config], seconds: float, say: Callable[[str], None]) -> dict[str, list[dict]]:
    """Run the trainings in turn, and return the windows of each by its devices."""
    minutes = (10 * seconds + len(trainings) * START_SECONDS) / 60
    window_s = seconds / (ROUNDS * WINDOWS_PER_ROUND)
    with contextlib.ExitStack() as stack:
        systems = {}
        for config in trainings:
            say(f"{config.devices}: starting the system")
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            system = stack.enter_context(TrainingProcess(config, folder, window_s, minutes))
            system.warm_up(WARM_UP_SHARE * seconds)
            systems[str(config.devices)] = system
        windows: dict[str, list[dict]] = {devices: [] for devices in systems}
        for number in range(ROUNDS):
            say(f"round {number + 1} of {ROUNDS}")
            for devices, system in systems.items():
                windows[devices] += system.measure(WINDOWS_PER_ROUND)["windows"]
    return windows

"""The benchmark of `ga3c-tf bench --components`: calls of the model alone, and GA3C without its environment.

It says what the next step of tuning is. The bench of the whole system measures how fast training is; this one
measures what the program itself adds: the path of a call to the model, and pipes, queues, threads and
statistics.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from ga3c_tf.bench.component_process import ComponentProcess
from ga3c_tf.bench.model_components import model_components
from ga3c_tf.bench.server_component import server_component
from ga3c_tf.config import Config
from ga3c_tf.host.machine import machine, package_versions, source_version

MODELS: dict[str, dict[str, str]] = {"plain": {"compile": "off"}, "compiled": {"compile": "on"}}
"""The ways to compute the model, by the settings that choose them."""
NO_ARITHMETIC = "ga3c_tf.bench.stand_ins:network_without_arithmetic"
INSTANT = "model that answers at once"


def run_components(
    config: Config, devices: Sequence[str], seconds: float, say: Callable[[str], None]
) -> dict:
    """Measure the calls and the server on each device.

    Args:
        config: the settings; the seed must be set.
        devices: devices as in Config's `device`.
        seconds: seconds of measurements on each device, not counting starts; calls and servers share them.
        say: called with one line of progress at a time.

    Returns:
        The result that `ga3c-tf bench --components --json` prints: machine, versions, settings, network, and
        by device ('cpu' or 'gpu') 'calls' (by model, the times of `model_components`) and 'servers' (by
        model, the rates of `server_component`).

    Raises:
        UserError: a device, environment or network does not exist.
        RuntimeError: a component failed; the text says how.
    """
    measured = [_measure(config, device, seconds, say) for device in devices]
    facts = measured[0]
    return {
        "machine": {**machine(), "gpus": facts["gpus"], "onednn": facts["onednn"]},
        **source_version(),
        "versions": package_versions(),
        "settings": dataclasses.asdict(config),
        "network": facts["network"],
        "devices": {measures["device"]: measures for measures in measured},
    }


def _measure(config: Config, device: str, seconds: float, say: Callable[[str], None]) -> dict:
    models = {name: config.replace(**settings) for name, settings in MODELS.items()}
    servers = _servers(models)
    share = seconds / (len(models) + len(servers))
    calls = {}
    facts: dict = {}
    for name, settings in models.items():
        say(f"{device}: calls, {name}")
        with ComponentProcess(model_components, settings, device) as component:
            facts = component.facts
            calls[name] = {
                **component.measure(share),
                "updates_per_call": facts["updates_per_call"],
            }
    rates = {}
    for name, settings in servers.items():
        say(f"{device}: server, {name}")
        with ComponentProcess(server_component, settings, device, name == INSTANT) as component:
            rates[name] = component.measure(share)
    return {**facts, "calls": calls, "servers": rates}


def _servers(models: dict[str, Config]) -> dict[str, Config]:
    """Return the settings of the servers to measure, by name."""
    bare = {name: settings.replace(network=NO_ARITHMETIC) for name, settings in models.items()}
    return {
        INSTANT: next(iter(models.values())),
        **{f"network without arithmetic, {name}": settings for name, settings in bare.items()},
        **{f"the run's network, {name}": settings for name, settings in models.items()},
    }

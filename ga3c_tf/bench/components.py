"""The benchmark of `ga3c-tf bench --components`: calls of the model alone, and GA3C without its environment.

It says what the next step of tuning is. The bench of the whole system measures how fast training is; this one
measures what the program itself adds: the path of a call to the model, and pipes, queues, threads and
statistics.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ga3c_tf.bench.component_process import ComponentProcess
from ga3c_tf.bench.model_components import model_components
from ga3c_tf.bench.report import machine_and_settings
from ga3c_tf.bench.server_component import server_component
from ga3c_tf.config import Config
from ga3c_tf.host.machine import machine, package_versions, source_version

MODELS: dict[str, dict[str, str]] = {"plain": {"compile": "off"}, "compiled": {"compile": "on"}}
"""The ways to compute the model, by the settings that choose them."""
NO_ARITHMETIC = "ga3c_tf.bench.stand_ins:network_without_arithmetic"
INSTANT = "model that answers at once"
CELL = 22  # characters
KINDS = {"prediction_ms": "prediction", "update_ms": "update"}


class Component(NamedTuple):
    """A part that is measured alone, in a process."""

    name: str
    build: Callable[..., tuple[dict, Callable[[float], dict]]]
    arguments: tuple

    def measured(self, seconds: float) -> dict:
        """Return its facts and what is measured of it in about `seconds`.

        Raises:
            UserError, RuntimeError: as for `ComponentProcess`.
        """
        with ComponentProcess(self.build, *self.arguments) as process:
            return {**process.facts, **process.measure(seconds)}


def calls(config: Config, device: str) -> Iterator[Component]:
    """Yield the calls of each of `MODELS`."""
    for name in MODELS:
        yield Component(name, model_components, (config.replace(**MODELS[name]), device))


def servers(config: Config, device: str, models: Iterable[str] = MODELS) -> Iterator[Component]:
    """Yield the server with a model that answers at once, and with each of `MODELS`, or of some of them."""
    plain = config.replace(**MODELS["plain"])
    yield Component(INSTANT, server_component, (plain, device, True))
    for network, words in (
        (NO_ARITHMETIC, "network without arithmetic"),
        (config.network, "the run's network"),
    ):
        for name in models:
            settings = config.replace(network=network, **MODELS[name])
            yield Component(f"{words}, {name}", server_component, (settings, device, False))


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
        by device ('cpu' or 'gpu') 'calls' (by model, facts and times of `model_components`) and 'servers' (by
        model, the rates of `server_component`). What is not compiled has no compiled model there.

    Raises:
        UserError: a device, environment or network does not exist.
        RuntimeError: a component failed; the text says how.
    """
    # GPUs first: without one this ends before any time was spent.
    by_device = {
        device: _measure(config, device, seconds, say) for device in sorted(devices, key="cpu".__eq__)
    }
    measured = [by_device[device] for device in devices]
    facts = measured[0]["calls"]["plain"]
    return {
        "machine": {**machine(), "gpus": facts["gpus"], "onednn": facts["onednn"]},
        **source_version(),
        "versions": package_versions(),
        "settings": dataclasses.asdict(config),
        "network": facts["network"],
        "devices": {measures["calls"]["plain"]["device"]: measures for measures in measured},
    }


def _measure(config: Config, device: str, seconds: float, say: Callable[[str], None]) -> dict:
    share = seconds / len([*calls(config, device), *servers(config, device)])

    def measured(kind: str, components: Iterable[Component]) -> dict[str, dict]:
        results = {}
        for component in components:
            say(f"{device}: {kind}, {component.name}")
            results[component.name] = component.measured(share)
        return results

    of_calls = measured("calls", calls(config, device))
    if not of_calls["compiled"]["compiled"]:
        say(f"{device}: this model has only a plain form")
        del of_calls["compiled"]
    return {"calls": of_calls, "servers": measured("server", servers(config, device, of_calls))}


def components_report(result: dict) -> str:
    """Format the result of `run_components` as text, the answer first."""
    devices = result["devices"]
    lines = [answer(device, measured["servers"]) for device, measured in devices.items()]
    lines += ["", machine_and_settings(result)]
    for device, measured in devices.items():
        lines += ["", *calls_table(device, measured["calls"]), "", *server_table(device, measured["servers"])]
    return "\n".join(lines)


def answer(device: str, servers: Mapping[str, dict]) -> str:
    """State how many predictions the program serves without emulator and arithmetic, and what limits them."""
    bare = [name for name in servers if name.startswith("network without")]
    best = max(bare, key=lambda name: servers[name]["predictions_per_s"])
    rate = servers[best]["predictions_per_s"]
    path = max(0.0, 1 - rate / servers[INSTANT]["predictions_per_s"])
    return (
        f"Everything but environment and arithmetic allows {rate:,.0f} predictions/s on {device} ({best}). "
        f"The path of the calls takes {path:.0%} of that time; pipes, queues and threads take the rest."
    )


def calls_table(device: str, calls: Mapping[str, dict]) -> list[str]:
    """Return the lines of the times of calls, with a column for each model."""
    lines = [_row(f"calls on {device}, ms (calls/s)", calls)]
    for kind, word in KINDS.items():
        for size in next(iter(calls.values()))[kind]:
            times = [measured[kind][size] for measured in calls.values()]
            lines.append(_row(f"{word} of {size}", [f"{ms:.3f} ({1000 / ms:,.0f})" for ms in times]))
    full = [(measured["updates_per_call"], measured["full_call_ms"]) for measured in calls.values()]
    lines.append(_row("updates of t_max in one call", [f"{count} in {ms:.3f}" for count, ms in full]))
    return lines


def server_table(device: str, servers: Mapping[str, dict]) -> list[str]:
    """Return the lines of the rates of GA3C without its environment."""
    heading = ("predictions/s", "updates/s", "server, us/prediction")
    lines = [_row(f"GA3C on {device}, free environment", heading)]
    for name, rates in servers.items():
        cells = (rates["predictions_per_s"], rates["updates_per_s"], rates["server_us"])
        lines.append(_row(name, [f"{cell:,.0f}" for cell in cells]))
    return lines


def _row(label: str, cells) -> str:
    return f"{label:38}{''.join(f'{cell:>{CELL}}' for cell in cells)}"

"""The benchmark of `ga3c-tf bench --components`: calls of the model alone, and GA3C without its environment.

It says what the next step of tuning is. The bench of the whole system measures how fast training is; this one
measures what the program itself adds: the path of a call to the model, and pipes, queues, threads and
statistics.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ga3c_tf.bench.component_process import ComponentProcess
from ga3c_tf.bench.model_components import model_components
from ga3c_tf.bench.server_component import server_component
from ga3c_tf.config import Config
from ga3c_tf.host.machine import machine, package_versions, source_version

MODELS: dict[str, dict[str, str]] = {"plain": {"compile": "off"}, "compiled": {"compile": "on"}}
"""The ways to compute the model, by the settings that choose them."""
NO_ARITHMETIC = "ga3c_tf.bench.stand_ins:network_without_arithmetic"
INSTANT = "model that answers at once"


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


def calls(config: Config, device: str, models: Iterable[str] = MODELS) -> Iterator[Component]:
    """Yield the calls of each of `MODELS`, or of some of them."""
    for name in models:
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
    measured = [_measure(config, device, seconds, say) for device in devices]
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

"""Simulates updates on several devices: the table of docs/devices.md.

python docs/devices_scaling.py

Nothing of it was measured on several GPUs: the assumptions are the constants below.
"""

import heapq
import itertools
from dataclasses import dataclass

import numpy as np

OPERATIONS_PER_SECOND = 10e12  # assumed: what a GPU reaches on convolutions
ADDING = 25e9  # bytes/s of one thread of the host, measured: 4 MB in 0.16 ms (AMD EPYC with AVX-512)
SPREAD = 0.1  # assumed: standard deviation of a device's time for an update, relative to its mean
UPDATES = 2_000
PULL_UPDATES = 4
COUNTS = (2, 4, 8)


@dataclass(frozen=True)
class Links:
    """What lies between a device and the memory where gradients are added."""

    name: str
    bandwidth: float  # bytes/s
    latency: float  # s of each transfer
    shared: bool  # whether the transfers of all devices go over one link


GPUS = Links("GPUs of one machine", 32e9, 20e-6, shared=False)  # PCIe 4.0 x16; an assumed latency
MACHINES = Links("machines", 10e9, 20e-3, shared=True)  # Ethernet of 100 Gbit/s; a call through Ray


@dataclass(frozen=True)
class Network:
    """A network for 6 actions: its weights, and operations of a prediction for one state."""

    name: str
    weights: int
    operations: int

    def seconds(self, states: int) -> float:
        """Return the time of a device for the gradients of a batch: three predictions."""
        return 3 * self.operations * states / OPERATIONS_PER_SECOND


SMALL = Network("small", 1_005_623, 7_581_184)
LARGE = Network("large-1", 7_284_871, 216_763_904)


def transfer(network: Network, links: Links, devices: int = 1) -> float:
    """Return the seconds in which gradients or weights go to or from so many devices at once."""
    sharing = devices if links.shared else 1
    return links.latency + 4 * network.weights * sharing / links.bandwidth


def exchange(network: Network, links: Links, devices: int) -> float:
    """Return the seconds of an update in which no device computes: gradients go to the host, their sum to the
    first device, its weights back to the host and to the others.
    """
    to_all = transfer(network, links, devices - 1)
    to_one = transfer(network, links)
    adding = (devices - 1) * 4 * network.weights / ADDING
    return 2 * to_all + 2 * to_one + adding


def synchronous(network: Network, links: Links, devices: int, part_seconds: float) -> float:
    """Return the updates per second of `--sync mean`: all wait for the slowest device, then for the exchange.

    Args:
        network, links, devices: what is simulated.
        part_seconds: mean time of a device for its part.
    """
    seconds = part_seconds * times((UPDATES, devices)).max(axis=1).mean()
    if devices > 1:
        seconds += exchange(network, links, devices)
    return 1 / seconds


def asynchronous(network: Network, links: Links, devices: int, states: int) -> tuple[float, float]:
    """Return the updates per second of `--sync none`, and the mean `replica_lag`.

    The first device takes one gradient after another. A copy is renewed when it is `PULL_UPDATES` old.
    """
    move = 2 * transfer(network, links)
    ready = [(network.seconds(states) * time, device) for device, time in enumerate(times(devices))]
    jitter = iter(times(UPDATES))
    versions = [0] * devices
    free, lags = 0.0, []
    for update in range(UPDATES):
        now, device = heapq.heappop(ready)
        applied = max(now, free) + (move if device else 0)
        free = applied
        lags.append(update - versions[device])
        pulled = applied
        if device == 0 or update + 1 - versions[device] >= PULL_UPDATES:
            versions[device] = update + 1
            pulled += move if device else 0
        heapq.heappush(ready, (pulled + network.seconds(states) * next(jitter), device))
    return UPDATES / free, float(np.mean(lags))


def times(shape) -> np.ndarray:
    """Return times of updates, relative to their mean."""
    return np.random.default_rng(0).gamma(SPREAD**-2, SPREAD**2, shape)


def table() -> str:
    """Return the speed-ups as a table in Markdown."""
    lines = [
        "| devices | network | states an update | `mean`: 2, 4, 8 devices | `none`: 2, 4, 8 devices |",
        "|---|---|---|---|---|",
    ]
    for links, network, states in itertools.product((GPUS, MACHINES), (SMALL, LARGE), (40, 1_000, 8_000)):
        one = 1 / network.seconds(states)
        mean = [synchronous(network, links, count, 1 / one / count) / one for count in COUNTS]
        none = [asynchronous(network, links, count, states)[0] / one for count in COUNTS]
        cells = [links.name, f"`{network.name}`", f"{states:,}", listed(mean), listed(none)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def as_stooke_and_abbeel() -> list[float]:
    """Return the speed-ups where each GPU has a batch of its own: 64 games, 5 steps, as in their example of
    A2C for several GPUs, at the 3,655 steps a second of one GPU and its simulators.
    """
    part = 64 * 5 / 3_655
    return [count * part * synchronous(SMALL, GPUS, count, part) for count in COUNTS]


def listed(numbers: list[float]) -> str:
    return ", ".join(f"{number:.1f}" if number >= 1 else f"{number:.2g}" for number in numbers)


if __name__ == "__main__":
    print(table())
    print("with a batch for each of 2, 4, 8 GPUs:", listed(as_stooke_and_abbeel()))
    lags = [asynchronous(SMALL, GPUS, count, 1_000)[1] for count in COUNTS]
    print("replica_lag of 2, 4, 8 GPUs:", listed(lags))

"""Text report of `ga3c-tf bench --components`, from the numbers of `ga3c_tf.bench.components`."""

from __future__ import annotations

from collections.abc import Mapping

from ga3c_tf.bench.components import INSTANT
from ga3c_tf.bench.report import machine_and_settings

CELL = 22  # characters
KINDS = {"prediction_ms": "prediction", "update_ms": "update"}


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

"""The commands about this machine: `bench` and `games`."""

from __future__ import annotations

import functools
from collections.abc import Callable

import rich_click as click

from ga3c_tf.cli.options import FiniteRange, setting_options
from ga3c_tf.cli.terminal import exit_on_signals
from ga3c_tf.config import Config
from ga3c_tf.config.rules import check_effects
from ga3c_tf.console import warn
from ga3c_tf.errors import UserError
from ga3c_tf.files import json_text

BENCH_SETTINGS = (
    "num_agents",
    "agent_processes",
    "num_predictors",
    "num_trainers",
    "min_training_batch",
    "t_max",
    "network",
    "algorithm",
    "devices",
    "sync",
)


@click.command()
@click.option(
    "--env", "env_id", default=Config.env_id, show_default=True, help="Gymnasium id of the environment."
)
@setting_options(BENCH_SETTINGS, {})
@click.option(
    "--device",
    default="auto",
    show_default=True,
    help="'auto', 'cpu', 'gpu' or 'gpu:N', or 'cpu,gpu' to measure both and compare them.",
)
@click.option(
    "--seconds",
    type=FiniteRange(2, 3600),
    default=60,
    show_default=True,
    help="Seconds for which the whole system is measured. "
    "The benchmark takes about twice as long for each device. With --components all parts share them, and "
    "with --devices each training takes them.",
)
@click.option(
    "--components",
    is_flag=True,
    help="Measure calls of the model alone, and GA3C with an environment that takes no time, instead of the "
    "whole system.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def bench(env_id: str, device: str, seconds: float, components: bool, as_json: bool, **settings) -> None:
    """Measure the speed of each component and of the whole system, and compare it with the limit that they
    set.
    """
    from ga3c_tf.environments.ids import in_words, resolve_env_id
    from ga3c_tf.runner import check_linux

    check_linux("bench")
    given = {name: value for name, value in settings.items() if value is not None}
    today, note = resolve_env_id(env_id)
    config = Config.from_values({**given, "env_id": today, "seed": 0, "adjustment": "off"})
    check_effects(config, given)
    if note:
        warn(f"{note}; now: {in_words(config)}")
    exit_on_signals()
    measure, report = _benchmark(config, device, components)
    result = measure(config, seconds=seconds, say=warn)
    print(json_text(result) if as_json else report(result))


def _benchmark(
    config: Config, device: str, components: bool
) -> tuple[Callable[..., dict], Callable[[dict], str]]:
    """Return what measures and what reports: several devices, what the program adds, or the whole system."""
    if config.devices is not None:
        if components or device != "auto":
            raise UserError(
                "--devices is measured in whole trainings; it goes with neither --device nor --components"
            )
        from ga3c_tf.bench.devices import devices_report, run_devices

        return run_devices, devices_report
    devices = device.split(",")
    kinds = [name.partition(":")[0] for name in devices]
    if len(kinds) > 1 and ("auto" in kinds or len(set(kinds)) < len(kinds)):
        raise UserError(f"--device is {device}; to compare devices, name cpu and gpu once each")
    if components:
        from ga3c_tf.bench.components import components_report, run_components

        return functools.partial(run_components, devices=devices), components_report
    from ga3c_tf.bench.report import report
    from ga3c_tf.bench.run import run_bench

    return functools.partial(run_bench, devices=devices), report


@click.command()
def games() -> None:
    """List the installed Atari environment ids."""
    from ga3c_tf.environments.ids import atari_ids

    print("\n".join(atari_ids()))

"""Text report of `ga3c-tf bench`: a table with a column per device, from numbers of `ga3c_tf.bench.run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ga3c_tf.bench.advice import advice
from ga3c_tf.console import counted
from ga3c_tf.host.calibration import TOLERANCE
from ga3c_tf.host.machine import agent_cores

CELL = 27  # characters
DISTURBED = 0.05  # share of the cores' time
NOTE = """\
PPS limit of the host: cores / (agent step + prediction + update) in ms/step, with a GPU
(cores - 2) / agent step; of the GPU: 1 / (prediction + update). The limits of the cores, whatever the
program: cores / bare environment, and cores / (bare environment + MFLOP of prediction and update at the
calibrated GFLOP/s).
Times of the mean batches lie on straight lines between those measured:"""


def report(result: dict) -> str:
    """Format the result of `run_bench` as text: first the answer, and before it whether it can be trusted."""
    devices = list(result["devices"].values())
    lines = [*disturbance(devices), *advice(result["network"], result["devices"]), ""]
    lines += [heading(result), "", *table([rows(device) for device in devices]), "", NOTE]
    for device in devices:
        lines += curves(device)
    lines += [calibrated(device) for device in devices]
    return "\n".join(lines)


def disturbance(devices: Sequence[dict]) -> list[str]:
    """Return a line that says that other programs used the machine meanwhile, if they did."""
    share = max(device["others_utilization"] for device in devices)
    if share <= DISTURBED:
        return []
    busy = f"other programs used up to {share:.0%} of the machine"
    return [f"Do not trust these numbers: {busy}. Measure again when it is idle."]


def heading(result: dict) -> str:
    """Format the machine, the software, the settings and the numbers of measurements in three lines."""
    return (
        f"{machine_and_settings(result)}\n"
        f"medians of {result['rounds']} rounds of the components, "
        f"in turn with {result['windows']} windows of {result['window_s']:g} s of the whole system"
    )


def machine_and_settings(result: dict) -> str:
    """Format the machine, the software and the settings in two lines."""
    machine = result["machine"]
    versions = result["versions"]
    settings = result["settings"]
    commit = f"{(result['commit'] or 'unknown')[:9]}{' (changed since)' if result['dirty'] else ''}"
    tensorflow = versions.get("tensorflow") or versions.get("tensorflow-cpu")
    return (
        f"{counted(machine['cores'], 'core')} of {machine['cpu']}, "
        f"GPU: {', '.join(machine['gpus']) or 'none'}, oneDNN: {machine['onednn']}; "
        f"commit {commit}, TensorFlow {tensorflow}, Python {versions['python']}\n"
        f"{settings['env_id']}, network {result['network']}, {counted(settings['num_agents'], 'agent')}, "
        f"{counted(settings['num_predictors'], 'predictor')}, "
        f"{counted(settings['num_trainers'], 'trainer')}, "
        f"minimum training batch {settings['min_training_batch']}, t_max {settings['t_max']}"
    )


def table(columns: Sequence[Sequence[tuple[str, str]]]) -> list[str]:
    """Return the lines of the table.

    Args:
        columns: labels and cells of each device's column, from `rows`; all columns have the same labels.
    """
    width = max(len(label) for label, _ in columns[0])
    return [
        f"{row[0][0]:{width}}  {'  '.join(f'{cell:{CELL}}' for _, cell in row)}".rstrip()
        for row in zip(*columns, strict=True)
    ]


def rows(device: dict) -> list[tuple[str, str]]:
    """Return the labels and cells of one device's column."""
    call = device["call_ms"]
    step = device["step_ms"]
    share = device["step_shares"]
    used = device["memory"]
    whole_ms = 1000 * agent_cores(device["cores"], device["device"] == "gpu") / device["pps"]

    def component(name: str) -> str:
        return f"{call[name]:9.3f} {step[name]:8.3f} {share[name]:7.1%}"

    return [
        ("component, measured alone", device["device"].upper()),
        ("", f"{'ms/call':>9} {'ms/step':>8} {'share':>7}"),
        ("agent step with its environment", component("environment")),
        ("prediction of the mean batch", component("prediction")),
        ("update on the mean batch", component("update")),
        ("queue round trip of one process", component("queue")),
        ("the rest: waiting, contention, Python", _rest(whole_ms, share)),
        ("one agent step, cores / PPS", f"{'':9} {whole_ms:8.3f} {1:7.1%}"),
        ("", ""),
        (
            "PPS, true agent steps/s",
            f"{device['pps']:9.0f} ({device['pps_min']:.0f} to {device['pps_max']:.0f})",
        ),
        ("TPS, updates/s", f"{device['tps']:9.1f}"),
        ("mean prediction batch, states", f"{device['prediction_batch']:9.1f}"),
        ("mean training batch, states", f"{device['training_batch']:9.1f}"),
        ("policy lag, updates", f"{device['policy_lag_mean']:9.1f} (95 %: {device['policy_lag_p95']:.0f})"),
        ("PPS limit of the host", _number(device["host_pps"], "9.0f")),
        ("PPS limit of the GPU", _number(device["device_pps"], "9.0f")),
        ("efficiency = PPS / PPS limit", f"{device['efficiency']:9.2f}"),
        ("limit of the cores, bare environment", _limit(device, "emulator_pps")),
        ("and the network's arithmetic on them", _limit(device, "arithmetic_pps")),
        ("PPS a unit of the calibration", f"{device['pps_per_unit']:9.2f}"),
        ("processor time used", _number(device["cpu_utilization"], "9.0%")),
        ("used by others, at most", f"{device['others_utilization']:9.0%}"),
        ("GPU time used", _number(device["gpu_utilization"], "9.0%")),
        ("agent processes", f"{used['agent_processes']:9}"),
        ("PSS of an agent process, MiB", _number(used["agent_process_pss_mib"], "9.1f")),
        ("PSS of the largest, MiB", _number(used["agent_process_pss_mib_max"], "9.1f")),
        ("PSS of the server, MiB", _number(used["server_pss_mib"], "9.1f")),
        ("PSS of all processes, MiB", _number(used["total_pss_mib"], "9.1f")),
        ("PPS as the authors' code would print", f"{device['pps_as_the_authors_count']:9.0f} (too high)"),
    ]


def _rest(whole_ms: float, share: Mapping[str, float]) -> str:
    return f"{'':9} {whole_ms * share['rest']:8.3f} {share['rest']:7.1%}" if "rest" in share else ""


def _limit(device: dict, name: str) -> str:
    limit = device["machine_limits"][name]
    return f"{'-':>9}" if limit is None else f"{limit:9.0f} ({device['machine_shares'][name]:.0%} reached)"


def _number(value: float | None, form: str) -> str:
    return f"{'-':>9}" if value is None else f"{value:{form}}"


def curves(device: dict) -> list[str]:
    """Format the times of prediction and update per state, by batch size."""

    def line(name: str, times: Mapping[int, float]) -> str:
        per_state = (f"{size}: {milliseconds / size:.3f}" for size, milliseconds in sorted(times.items()))
        return f"{device['device']} {name}, ms a state by batch  {'  '.join(per_state)}"

    times = device["components"]
    return [line("prediction", times["prediction_ms"]), line("update", times["update_ms"])]


def calibrated(device: dict) -> str:
    """Format the calibrations before and after the measurements on a device."""
    before, after = device["calibrations"]
    kinds = {"GFLOP/s": "gflops", "GB/s copied": "copy_gb_s", "frames/s": "frames_s"}
    values = ", ".join(f"{before[name]:.0f} and {after[name]:.0f} {words}" for words, name in kinds.items())
    agreement = (
        "they agree" if device["calibrations_agree"] else "they differ: the machine's speed changed meanwhile"
    )
    return (
        f"{device['device']} calibration of one core, before and after: {values}; {agreement} "
        f"({TOLERANCE:.0%})"
    )

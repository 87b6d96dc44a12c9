"""Advice from the numbers of one benchmark: would a GPU, or more cores, make training faster here?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ga3c_tf.host.calibration import Calibration, agree

MATTERS = 1.1
"""Smallest speed-up that counts as faster; speeds of a machine vary by some percent from minute to minute."""
IDLE = 0.3
"""Idle share of the cores' time above which more cores would be idle too."""
MOSTLY_WAITING = 0.5
"""Share of the time outside the components above which faster components would bring little."""
WORDS = {"environment": "agents and environments", "prediction": "predictions", "update": "updates"}


def advice(network: str, devices: Mapping[str, dict[str, Any]]) -> list[str]:
    """Return the advice as a few lines of text.

    Args:
        network: name of the network.
        devices: summaries of the benchmark by device: 'cpu', 'gpu' or both.
    """
    if len(devices) == 2:
        return [compared(network, devices["cpu"], devices["gpu"]), *about_gpu(devices["gpu"])]
    if "gpu" in devices:
        return [where_time_goes(devices["gpu"]), *about_gpu(devices["gpu"])]
    cpu = devices["cpu"]
    if cpu["step_shares"]["rest"] > MOSTLY_WAITING:
        return [waits(cpu)]
    return [where_time_goes(cpu), would_a_gpu_help(cpu), would_more_cores_help(cpu)]


def waits(cpu: dict) -> str:
    """State that most time is spent outside the components, so neither a GPU nor more cores would help."""
    return (
        f"Most of the time ({cpu['step_shares']['rest']:.0%}) goes to waiting, contention and Python around "
        "the components, so neither a GPU nor more cores would help much. More agents, or fewer threads, may."
    )


def compared(network: str, cpu: dict, gpu: dict) -> str:
    """State whether a GPU helps, if both devices were measured; within 10 % it makes no difference."""
    calibrations = [Calibration(**values) for device in (cpu, gpu) for values in device["calibrations"]]
    speeds = f"{gpu['pps']:.0f} agent steps/s against {cpu['pps']:.0f} on the CPU"
    if not agree(calibrations):
        return (
            f"Whether a GPU helps here is not known: {speeds}, but the machine's speed changed between the "
            "two. Measure again when it is idle."
        )
    ratio = gpu["pps"] / cpu["pps"]
    answer = "makes no difference"
    if ratio > MATTERS:
        answer = "helps"
    elif ratio < 1 / MATTERS:
        answer = "does not help"
    used = gpu["gpu_utilization"]
    share = f"{used:.0%} of its time is used" if used is not None else "what share of it is used is not known"
    return f"A GPU {answer} here with network {network}: {speeds} ({ratio:.2f} times), and {share}."


def where_time_goes(device: dict) -> str:
    """State which component takes most of the time of what it runs on, the cores or a GPU."""
    step_ms = device["step_ms"]
    most = max(WORDS, key=lambda name: device["step_shares"][name])
    parts = ", ".join(f"{step_ms[name]:.2f} ms of {WORDS[name]}" for name in WORDS)
    return f"Most of the time goes to {WORDS[most]}: an agent step takes {parts}."


def would_a_gpu_help(cpu: dict) -> str:
    """State the largest possible speed-up by a GPU, where predictions and updates take the cores no time."""
    step_ms = cpu["step_ms"]
    whole_ms = sum(step_ms[name] for name in WORDS)
    gain = whole_ms / step_ms["environment"]
    bound = (
        f"even one that predicts and trains in no time leaves the environments, {gain:.1f} times the "
        "speed at most"
    )
    if gain < MATTERS:
        return f"A GPU would not help: {bound}."
    doubles = "and could double the speed" if gain >= 2 else "but could not double the speed"
    return (
        f"A GPU may help, {doubles}: {bound} ({gain * cpu['pps']:.0f} agent steps/s at the same efficiency)."
    )


def would_more_cores_help(cpu: dict) -> str:
    """State what twice the cores would bring, and what larger training batches would."""
    idle = 1 - cpu["cpu_utilization"] - cpu["others_utilization"]
    if idle > IDLE:
        return (
            f"More cores would not help yet: {idle:.0%} of the time of these {cpu['cores']} is not used; try "
            "more agents, predictors or trainers first."
        )
    twice = f"More cores would help: {2 * cpu['cores']} instead of {cpu['cores']} about double the speed"
    return f"{twice} (limit {2 * cpu['pps_limit']:.0f} agent steps/s)." + larger_batches(cpu)


def larger_batches(cpu: dict) -> str:
    """State the speed-up by the training batch size with the least time per state; '' if below `MATTERS`."""
    step_ms = cpu["step_ms"]
    whole_ms = sum(step_ms[name] for name in WORDS)
    per_state = {size: milliseconds / size for size, milliseconds in cpu["components"]["update_ms"].items()}
    size = min(per_state, key=per_state.__getitem__)
    gain = whole_ms / (whole_ms - step_ms["update"] + cpu["passes"] * per_state[size])
    if gain < MATTERS:
        return ""
    return (
        f" Without more hardware, training batches of {size} states allow up to {gain:.1f} times the speed."
    )


def about_gpu(gpu: dict) -> list[str]:
    """State what limits a system with a GPU, and what part of an update the batch does not change."""
    return [with_gpu(gpu), fixed_part(gpu["components"]["update_ms"])]


def fixed_part(update_ms: Mapping[int, float]) -> str:
    """State which part of an update on a GPU does not depend on the number of states, by a straight line."""
    size = min(update_ms)
    whole_ms = update_ms[size]
    a_state_ms = np.polyfit(list(update_ms), list(update_ms.values()), 1)[0]
    fixed_ms = min(whole_ms, max(0.0, whole_ms - size * a_state_ms))
    said = f"Of an update of {size} states, {fixed_ms:.1f} of {whole_ms:.1f} ms do not depend on the batch"
    if fixed_ms < MOSTLY_WAITING * whole_ms:
        return f"{said}; the GPU computes most of the time."
    return f"{said}: the GPU waits for its kernels to be started. Larger batches take hardly longer."


def with_gpu(gpu: dict) -> str:
    """State whether the cores or the GPU limit a system with a GPU, and whether more cores would help."""
    host = gpu["host_pps"]
    device = gpu["device_pps"]
    numbers = f"the cores allow {host:.0f} agent steps/s and the GPU {device:.0f}"
    if host >= device:
        return (
            f"The GPU is the limit: {numbers}. More cores would not help; "
            "a faster GPU or larger batches would."
        )
    gain = device / host
    if gain < MATTERS:
        return f"Cores and GPU are balanced: {numbers}. Twice the speed takes more of both."
    return f"The cores are the limit: {numbers}. More cores would help, up to {gain:.1f} times the speed."

"""GPU utilization, read from NVIDIA's management library (NVML)."""

from __future__ import annotations

import contextlib
import functools
import os
from typing import Any

import pynvml


def gpu_id(device: str) -> str:
    """Return NVML's index or UUID of TensorFlow's device 'gpu' or 'gpu:N'."""
    number = int(device.partition(":")[2] or 0)
    visible = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return visible[number] if number < len(visible) else str(number)


def gpu_utilization(gpu: str) -> list[float]:
    """Return the share of the last sampling period in which a GPU was busy, 0 to 1, as a list of one number.

    The list is empty where there is no GPU or no driver, or where the GPU does not report its utilization.

    Args:
        gpu: index or UUID of the GPU, as `gpu_id` returns it.
    """
    with contextlib.suppress(pynvml.NVMLError):
        handle = _handle(gpu)
        if handle is not None:
            return [pynvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100]
    return []


_newest: dict[str, int] = {}
"""Time of the newest sample read of each GPU, in the driver's microseconds."""


def gpu_samples(gpu: str) -> list[float]:
    """Return the shares, 0 to 1, of all short periods that the driver has sampled since the last call.

    Unlike the rate of `gpu_utilization`, which is that of one period, samples cover all of the time between
    two calls. The first call returns what the driver still holds. Where it keeps no samples, the rate is
    returned instead.

    Args:
        gpu: index or UUID of the GPU, as `gpu_id` returns it.
    """
    with contextlib.suppress(pynvml.NVMLError):
        handle = _handle(gpu)
        if handle is not None:
            before = _newest.get(gpu, 0)
            _, samples = pynvml.nvmlDeviceGetSamples(handle, pynvml.NVML_GPU_UTILIZATION_SAMPLES, before)
            _newest[gpu] = max([before, *(sample.timeStamp for sample in samples)])
            return [sample.sampleValue.uiVal / 100 for sample in samples if sample.timeStamp > before]
    return gpu_utilization(gpu)


@functools.cache
def _handle(gpu: str) -> Any:
    """Return NVML's handle of a GPU, or None where there is no such GPU or no driver.

    The library stays open until this process ends, because opening it takes longer than all queries.
    """
    try:
        pynvml.nvmlInit()
        return (
            pynvml.nvmlDeviceGetHandleByIndex(int(gpu))
            if gpu.isdigit()
            else pynvml.nvmlDeviceGetHandleByUUID(gpu)
        )
    except pynvml.NVMLError:
        return None

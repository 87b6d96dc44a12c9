"""How busy a GPU is, from NVIDIA's management library (NVML)."""

from __future__ import annotations

import contextlib
import functools
import os
from typing import Any

import pynvml


def gpu_id(device: str) -> str:
    """Return what NVML calls TensorFlow's device 'gpu' or 'gpu:N': an index or a UUID."""
    number = int(device.partition(":")[2] or 0)
    visible = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return visible[number] if number < len(visible) else str(number)


def gpu_utilization(gpu: str) -> list[float]:
    """Return the share of its last sampling period in which the GPU `gpu`, as of `gpu_id`, was busy.

    Empty where there is no GPU or no driver, or where the GPU does not tell.
    """
    with contextlib.suppress(pynvml.NVMLError):
        handle = _handle(gpu)
        if handle is not None:
            return [pynvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100]
    return []


@functools.cache
def _handle(gpu: str) -> Any:
    """Return NVML's handle of a GPU, None where there is none.

    The library stays open until this process ends: opening it takes longer than all that is asked of it.
    """
    try:
        pynvml.nvmlInit()
        return pynvml.nvmlDeviceGetHandleByIndex(int(gpu)) if gpu.isdigit() else pynvml.nvmlDeviceGetHandleByUUID(gpu)
    except pynvml.NVMLError:
        return None

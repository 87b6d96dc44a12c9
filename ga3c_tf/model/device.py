"""The device of the model, TensorFlow's threads, dtype policies and determinism."""

from __future__ import annotations

import contextlib
import re

from ga3c_tf.errors import UserError
from ga3c_tf.host.machine import usable_cores
from ga3c_tf.model.bfloat16 import bfloat16_is_faster
from ga3c_tf.model.tensorflow import keras, tf


def configure_device(
    device: str, intra_op_threads: int | None = None, inter_op_threads: int | None = None
) -> str:
    """Prepare TensorFlow for a device. Call this before any other function of TensorFlow.

    The default numbers of threads are for many agents on few cores. Up to 7 cores, there is one intra-op
    thread. A second one makes an update faster only while a core is idle. With a second one, beside two busy
    trainers, a prediction of 16 states took 3 to 5 ms instead of 1 (2-core EPYC, shared; more cores were not
    measured). TensorFlow accepts these settings only before it starts. A second call in one process does not
    change them.

    Args:
        device: 'auto' (a GPU when there is one), 'cpu', 'gpu' or 'gpu:N'.
        intra_op_threads: Number of threads within one operation (default: a quarter of the cores from 8 on,
            else 1).
        inter_op_threads: Number of operations that run in parallel (default: one per core, at least 2).

    Returns:
        TensorFlow's name of the device, for `Model`.

    Raises:
        UserError: The device is unknown, or the GPU does not exist.
    """
    match = re.fullmatch(r"auto|cpu|gpu(?::(\d+))?", device)
    if not match:
        raise UserError(f"device is {device!r}; it must be auto, cpu, gpu or gpu:N")
    cores = usable_cores()
    _set_threads(intra_op_threads or (cores // 4 if cores >= 8 else 1), inter_op_threads or max(2, cores))
    gpus = tf.config.get_visible_devices("GPU")
    if device == "cpu" or (device == "auto" and not gpus):
        with contextlib.suppress(RuntimeError):  # of settings that cannot change once TensorFlow has started
            tf.config.set_visible_devices([], "GPU")
        return "/CPU:0"
    number = int(match[1] or 0)
    if number >= len(gpus):
        if len(gpus) < len(tf.config.list_physical_devices("GPU")):
            raise UserError(
                f"device is {device!r}, but this process has used the CPU before; start another process"
            )
        raise UserError(
            f"device is {device!r}, but TensorFlow finds {len(gpus) or 'no'} GPU"
            f"{'s' if len(gpus) > 1 else ''} here; --device cpu and auto need none"
        )
    with contextlib.suppress(RuntimeError):  # of settings that cannot change once TensorFlow has started
        for gpu in gpus:
            tf.config.experimental.set_memory_growth(gpu, True)
    return f"/GPU:{number}"


def configure_devices(devices: str, intra_op_threads: int | None = None) -> str:
    """Prepare TensorFlow for several devices, as `configure_device` does for one.

    Args:
        devices: 'cpu:N' for N logical devices of the CPU, or GPUs, such as 'gpu:0,gpu:1'.
        intra_op_threads: as for `configure_device`.

    Returns:
        TensorFlow's name of the first device.

    Raises:
        UserError: a GPU does not exist, or TensorFlow has started with fewer logical devices.
    """
    if not devices.startswith("cpu:"):
        names = devices.split(",")
        there = len(tf.config.list_physical_devices("GPU"))
        if missing := [name for name in names if int(name.removeprefix("gpu:")) >= there]:
            raise UserError(
                f"devices is {devices!r}, but TensorFlow finds no {missing[0]} here; name others, or "
                "cpu:N to try several without"
            )
        first, *_ = [configure_device(device, intra_op_threads) for device in names]
        return first
    count = int(devices.removeprefix("cpu:"))
    with contextlib.suppress(RuntimeError):  # of settings that cannot change once TensorFlow has started
        [cpu] = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
    device = configure_device("cpu", intra_op_threads)
    if len(tf.config.list_logical_devices("CPU")) < count:
        raise UserError(
            f"devices is {devices!r}, but TensorFlow has started with fewer in this process; start another"
        )
    return device


def resolve_dtype_policy(policy: str, device: str | None) -> str:
    """Return Keras's name of the dtype policy for a value of `Config.dtype_policy` on a device.

    'auto' measures which is faster on a CPU. It is float32 on a GPU, where the two were not compared.

    Args:
        policy: 'float32', 'mixed_bfloat16' or 'auto'.
        device: TensorFlow device, as `configure_device` returns it; None for a CPU.
    """
    if policy != "auto":
        return policy
    on_cpu = device is None or "CPU" in device
    return "mixed_bfloat16" if on_cpu and bfloat16_is_faster() else "float32"


def gpu_names() -> list[str]:
    """Return the product names of the GPUs that TensorFlow finds on this machine."""
    details = tf.config.experimental.get_device_details
    return [details(gpu).get("device_name", gpu.name) for gpu in tf.config.list_physical_devices("GPU")]


def make_deterministic(seed: int) -> None:
    """Make this process compute bit-identical results for the same seed, for `--system serial`.

    Call this before `configure_device`. It seeds Python, NumPy and Keras, and makes TensorFlow use
    deterministic kernels. If TensorFlow has not started yet, it also sets one thread for everything. The
    effect lasts until the process ends. Results are the same only on the same kind of processor.

    Args:
        seed: the seed; it is used modulo 2^32.
    """
    keras.utils.set_random_seed(seed % 2**32)
    tf.config.experimental.enable_op_determinism()
    _set_threads(1, 1)


def _set_threads(intra_op: int, inter_op: int) -> None:
    """Set TensorFlow's thread counts, unless they are set already."""
    threading = tf.config.threading
    with contextlib.suppress(RuntimeError):  # of settings that cannot change once TensorFlow has started
        if not threading.get_intra_op_parallelism_threads():
            threading.set_intra_op_parallelism_threads(intra_op)
        if not threading.get_inter_op_parallelism_threads():
            threading.set_inter_op_parallelism_threads(inter_op)

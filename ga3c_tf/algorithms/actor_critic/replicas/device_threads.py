"""Threads in which devices work on the parts of an update at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import Any

from ga3c_tf.errors import DeviceStopped

LIMIT_SECONDS = 60
"""Most seconds to wait for a device. Programs that XLA still has to compile fit in."""


def call_on_devices(
    devices: Sequence[str], function: Callable[..., Any], *arguments: Sequence[Any]
) -> list[Any]:
    """Call a function in a thread for each device, as the builtin `map` does; the shortest argument ends it.

    Args:
        devices: TensorFlow devices, for messages.
        function: function of one of each argument.
        arguments: one for each device.

    Raises:
        DeviceStopped: a device has not answered after `LIMIT_SECONDS`.
        Exception: the first error of a call.
    """
    calls = zip(devices, *arguments, strict=False)
    futures = [(device, _future(device, function, *rest)) for device, *rest in calls]
    return [_result(device, future) for device, future in futures]


def _future(device: str, function: Callable[..., Any], *arguments: Any) -> Future:
    """Return the future result or error of a call. Its thread is a daemon, so that a call that hangs does not
    keep the program.
    """
    future: Future = Future()

    def call() -> None:
        try:
            future.set_result(function(*arguments))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=call, name=f"replica on {device}", daemon=True).start()
    return future


def _result(device: str, future: Future) -> Any:
    for _ in range(LIMIT_SECONDS):  # a pause of the whole program counts as one second
        if wait([future], timeout=1.0).done:
            return future.result()
    raise DeviceStopped(
        f"the replica on {device} has not answered for {LIMIT_SECONDS} s, and the others wait for it"
    )

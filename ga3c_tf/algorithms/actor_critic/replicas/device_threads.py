"""Threads in which devices work on the parts of an update at the same time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from ga3c_tf.errors import DeviceStopped

LIMIT_SECONDS = 60.0
"""Most seconds for which the devices wait for one another. Programs that XLA still has to compile fit in."""


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
    deadline = time.monotonic() + LIMIT_SECONDS
    calls = zip(devices, *arguments, strict=False)
    futures = [(device, _future(device, function, *rest)) for device, *rest in calls]
    return [_result(device, future, deadline) for device, future in futures]


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


def _result(device: str, future: Future, deadline: float) -> Any:
    try:
        return future.result(max(0.0, deadline - time.monotonic()))
    except TimeoutError:
        if future.done():  # the call's own error
            raise
    raise DeviceStopped(
        f"the replica on {device} has not answered for {LIMIT_SECONDS:g} s, and the others wait for it"
    )

"""Threads in which devices work on the parts of an update at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from typing import Any

from ga3c_tf.errors import DeviceStopped

LIMIT_SECONDS = 60
"""Most seconds to wait for the devices. Programs that XLA still has to compile fit in."""


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
        Exception: an error of a call, as soon as it is raised.
    """
    calls = zip(devices, *arguments, strict=False)
    futures = {_future(device, function, *rest): device for device, *rest in calls}
    _wait(futures)
    return [future.result() for future in futures]


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


def _wait(futures: dict[Future, str]) -> None:
    """Wait until the calls have ended, or one has failed, whose error is raised."""
    for _ in range(LIMIT_SECONDS):  # a pause of the whole program counts as one second
        ended, working = wait(futures, timeout=1.0, return_when=FIRST_EXCEPTION)
        for future in ended:
            future.result()
        if not working:
            return
    device = next(futures[future] for future in futures if future in working)
    raise DeviceStopped(
        f"the replica on {device} has not answered for {LIMIT_SECONDS} s, and the others wait for it"
    )

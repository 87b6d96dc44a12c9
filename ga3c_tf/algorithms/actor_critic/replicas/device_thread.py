"""The thread in which a device computes its part of an update."""

from __future__ import annotations

import queue
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from ga3c_tf.errors import DeviceStopped

LIMIT_SECONDS = 60.0
"""Most seconds for which the devices wait for one another. Programs that XLA still has to compile fit in."""


class DeviceThread(threading.Thread):
    """Makes calls one after another. It is a daemon: one that hangs does not keep the program.

    Args:
        device: TensorFlow device, for the thread's name and messages.
    """

    def __init__(self, device: str):
        super().__init__(name=f"replica on {device}", daemon=True)
        self._calls: queue.SimpleQueue = queue.SimpleQueue()
        self.start()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        """Make a call after those submitted before; return its future result or error."""
        future: Future = Future()
        self._calls.put((future, function, arguments))
        return future

    def close(self) -> None:
        """End the thread after the calls submitted before."""
        self._calls.put(None)

    def run(self) -> None:
        while call := self._calls.get():
            future, function, arguments = call
            try:
                future.set_result(function(*arguments))
            except BaseException as error:
                future.set_exception(error)
            del call, future, function, arguments


class DeviceThreads:
    """A thread for each device, in which they work on the parts of an update at the same time.

    Args:
        devices: TensorFlow devices.
    """

    def __init__(self, devices: Sequence[str]):
        self._threads = [DeviceThread(device) for device in devices]
        weakref.finalize(self, _close, self._threads)

    def map(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Call a function in each thread, as the builtin `map` does; the shortest argument ends it.

        Raises:
            DeviceStopped: a device has not answered after `LIMIT_SECONDS`.
            Exception: the first error of a call.
        """
        deadline = time.monotonic() + LIMIT_SECONDS
        calls = list(zip(self._threads, *arguments, strict=False))
        futures = [(thread, thread.submit(function, *rest)) for thread, *rest in calls]
        return [_result(thread, future, deadline) for thread, future in futures]


def _result(thread: DeviceThread, future: Future, deadline: float) -> Any:
    try:
        return future.result(max(0.0, deadline - time.monotonic()))
    except TimeoutError:
        if future.done():  # the call's own error
            raise
    raise DeviceStopped(
        f"the {thread.name} has not answered for {LIMIT_SECONDS:g} s, and the others wait for it"
    )


def _close(threads: Sequence[DeviceThread]) -> None:
    for thread in threads:
        thread.close()

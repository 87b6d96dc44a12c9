"""A process that measures one component of the system, and only on request; and how a component is timed.

An agent step, a queue's round trip and, on a CPU, prediction and update run on one core. Their process is
bound to it if the operating system supports this (Linux), and TensorFlow has one thread there.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable
from multiprocessing import connection
from typing import Any

from ga3c_tf.errors import UserError
from ga3c_tf.host.processes import begin_child_process, end_offspring, kill_family
from ga3c_tf.host.signals import exit_by_signal

CLOSE_SECONDS = 5.0


def ms_per_call(call: Callable[[], object], seconds: float) -> float:
    """Return the mean milliseconds of a `call`, repeated for `seconds` or at least once after a warm-up."""
    call()
    calls = 0
    start = time.perf_counter()
    while True:
        call()
        calls += 1
        elapsed = time.perf_counter() - start
        if elapsed >= seconds:
            return 1000 * elapsed / calls


def bind_to_one_core() -> None:
    """Bind this thread, and the threads and processes that it starts later, to the last core it may use."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


class ComponentProcess:
    """A process that measures on request and waits in between.

    Args:
        build: called in the process with `arguments`. It returns a dict of facts, and a function that takes
            the seconds to measure for and returns the measurements.
        arguments: arguments of `build`. They must be picklable, like `build`, the facts and the measurements.

    Attributes:
        facts: dict of facts that `build` returned.

    Raises:
        UserError: `build` raised it.
        RuntimeError: the process failed or ended by itself; the text has its traceback or exit code.
    """

    def __init__(self, build: Callable[..., tuple[dict, Callable[[float], dict]]], *arguments: Any):
        context = multiprocessing.get_context("spawn")
        self._pipe, child_pipe = context.Pipe()
        self._process = context.Process(
            target=_serve, name=build.__name__, args=(child_pipe, build, arguments)
        )
        self._process.start()
        child_pipe.close()
        try:
            self.facts: dict = self._receive()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> ComponentProcess:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def measure(self, seconds: float) -> dict:
        """Measure for about `seconds` and return the measured milliseconds by name."""
        with contextlib.suppress(BrokenPipeError):  # the process has ended; `_receive` says why
            self._pipe.send(seconds)
        return self._receive()

    def close(self) -> None:
        """End the process, even during a measurement."""
        self._pipe.close()
        self._process.terminate()
        self._process.join(CLOSE_SECONDS)
        if self._process.exitcode is None:
            kill_family(self._process)
            self._process.join()
        end_offspring([self._process.pid])

    def _receive(self) -> dict:
        try:
            kind, content = self._pipe.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            raise RuntimeError(
                f"{self._process.name} ended by itself, exit code {self._process.exitcode}"
            ) from None
        if kind is UserError:
            raise UserError(content)
        if kind is RuntimeError:
            raise RuntimeError(f"{self._process.name} failed\n{content}")
        return content


def _serve(pipe: connection.Connection, build: Callable, arguments: tuple) -> None:
    """Run the component's process, which measures on request until ended. Ctrl-C is left to the parent."""
    begin_child_process()
    signal.signal(signal.SIGTERM, exit_by_signal)  # TensorFlow has temporary files to remove
    try:
        facts, measure = build(*arguments)
        pipe.send((dict, facts))
        while True:
            pipe.send((dict, measure(pipe.recv())))
    except (EOFError, BrokenPipeError):
        pass
    except UserError as error:
        pipe.send((UserError, str(error)))
    except Exception:
        pipe.send((RuntimeError, traceback.format_exc()))
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the process is already ending

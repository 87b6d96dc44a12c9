"""Supervision of agent processes: started from one forkserver, watched, and ended within a deadline."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing.process
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import connection
from typing import cast

from ga3c_tf.errors import Diverged
from ga3c_tf.host.processes import end_offspring, kill_family
from ga3c_tf.host.signals import left_to_this_process
from ga3c_tf.processes import forkserver_with, main_module_left_alone, with_objects

STOP_SECONDS = 2.0
"""Seconds that the workers of a training have to end."""
POLL_SECONDS = 0.05
DIVERGED = 3
"""Exit code of a process that trains by itself and has skipped too many updates."""
FORKSERVER_DIED = 255
"""Exit code that multiprocessing reports for each process whose forkserver died, all at the same moment."""


class AgentError(RuntimeError):
    """An agent process could not be started or ended unexpectedly; the message has its traceback, if any."""


class AlsoLostWithForkserver(AgentError):
    """An agent process was lost with its forkserver, after another one was: both losses are one fault."""


class AgentSupervisor:
    """Starts and ends the agent processes of one run, which are identified by number.

    Each process receives the reading end of a pipe, and ends when the server closes the other end or dies.

    Args:
        modules: modules that the forkserver loads once for all processes. Loading them must not start
            TensorFlow, because a fork would lose its threads.
        objects: settings that may refer to objects which only this program knows and the processes use:
            functions passed as Python objects, and an environment that this program has registered.
        training: whether the processes train by themselves, so that their exit code may be DIVERGED.

    Attributes:
        errors: pipe to which a process writes its traceback before it ends.
    """

    def __init__(self, modules: Sequence[str], objects: Sequence[str] = (), training: bool = False):
        self._modules = modules
        self._training = training
        self._objects = objects
        self._tracebacks, self.errors = connection.Pipe(duplex=False)
        self._processes: dict[int, multiprocessing.process.BaseProcess] = {}
        self._ended: dict[int, str] = {}  # why this program has ended a process
        self._lost_together: set[int] = set()  # processes that were lost in the same moment as another one

    def __iter__(self) -> Iterator[int]:
        return iter(list(self._processes))

    def start(self, number: int, target: Callable, *args, pipe: connection.Connection) -> None:
        """Start process `number`, which runs `target(*args, pipe)`; `pipe` is then closed in this process.

        Raises:
            AgentError: the system could not start the process.
        """
        name = f"agents-{number}"
        arguments = (*args, pipe)
        process = self._context.Process(
            target=with_objects(target, self._objects), name=name, daemon=True, args=arguments
        )
        try:
            with left_to_this_process(), main_module_left_alone():
                process.start()  # also starts the forkserver if there is none or it has died
        except (OSError, EOFError) as error:
            raise AgentError(f"agent process {number} cannot be started: {error!r}") from None
        pipe.close()
        self._processes[number] = process
        self._lost_together.discard(number)

    def sentinels(self) -> dict[int, int]:
        """Return each process's number by its sentinel, which `multiprocessing.connection.wait` awaits."""
        return {process.sentinel: number for number, process in list(self._processes.items())}

    def error_of(self, number: int) -> Exception:
        """Return the error of a process that has ended unexpectedly, and forget the process.

        Returns:
            Diverged: the process trained by itself, its exit code is DIVERGED, and it left a message.
            AlsoLostWithForkserver: the process was lost with the forkserver, and an earlier AgentError has
                said so.
            AgentError: the process ended in any other way.
        """
        process = self._processes.pop(number)
        kill_family(process)
        process.join()
        if process.exitcode == FORKSERVER_DIED:  # `kill` takes it for ended, but it may still run
            with contextlib.suppress(ProcessLookupError):
                os.kill(cast(int, process.pid), signal.SIGKILL)
        end_offspring([process.pid])
        if number in self._ended:
            return AgentError(self._ended.pop(number))
        left = (process.exitcode or 0) > 0 and self._tracebacks.poll()
        text = self._tracebacks.recv_bytes().decode(errors="replace") if left else ""
        if self._training and text and process.exitcode == DIVERGED:
            return Diverged(text)
        if process.exitcode == FORKSERVER_DIED:
            text = (
                f"agent process {number} ended by itself with exit code {FORKSERVER_DIED}, or was lost with "
                "the forkserver that it was started from"
            )
            if number in self._lost_together:
                return AlsoLostWithForkserver(text)
            self._lost_together = self._lost_now()
            return AgentError(text)
        return AgentError(
            f"agent process {number} ended by itself, exit code {process.exitcode}\n{text}".rstrip()
        )

    def join(self, meanwhile: Callable[[], None], seconds: float) -> int:
        """Wait for processes whose pipes are closed; kill those that still run after some seconds in all.

        Args:
            meanwhile: called repeatedly. It must read what the processes write: a process that waits for room
                in a full pipe does not notice that its own pipe is closed.
            seconds: seconds that all processes together may take.

        Returns:
            The number of processes that were killed.
        """
        deadline = time.monotonic() + seconds
        killed = 0
        for process in list(self._processes.values()):
            while process.exitcode is None and time.monotonic() < deadline:
                process.join(POLL_SECONDS)
                meanwhile()
            if process.exitcode is None:
                kill_family(process)
                process.join()
                killed += 1
        end_offspring(self._ids())
        return killed

    def end(self, number: int, why: str) -> None:
        """Kill one process; it then counts as one that has ended unexpectedly, and `why` is its error."""
        self._ended[number] = why
        kill_family(self._processes[number])

    def kill(self) -> None:
        """Kill all processes and the programs that they have started, without waiting for them."""
        for process in list(self._processes.values()):
            kill_family(process)
        end_offspring(self._ids())

    def _ids(self) -> list[int | None]:
        return [process.pid for process in list(self._processes.values())]

    def _lost_now(self) -> set[int]:
        """Return the processes ended by now; if the forkserver has died, these are all that it started."""
        time.sleep(POLL_SECONDS)
        sentinels = self.sentinels()
        return {sentinels[sentinel] for sentinel in connection.wait(list(sentinels), 0)}  # type: ignore[index]

    @functools.cached_property
    def _context(self):
        return forkserver_with(self._modules)

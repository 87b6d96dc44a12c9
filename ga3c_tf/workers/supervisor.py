"""The processes that agents live in: started from one forkserver, watched, and ended within a deadline."""

from __future__ import annotations

import functools
import multiprocessing.process
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import connection

from ga3c_tf.processes import forkserver_with, main_module_left_alone, with_objects
from ga3c_tf.signals import left_to_this_process

STOP_SECONDS = 2.0
POLL_SECONDS = 0.05
DIVERGED = 3
"""Exit code of a process that trains by itself and whose loss was not finite."""
FORKSERVER_DIED = 255
"""Exit code that multiprocessing gives each process of a forkserver that has died."""


class AgentError(RuntimeError):
    """An agent process ended by itself; the text has its traceback where it left one."""


class AlsoLostWithForkserver(AgentError):
    """An agent process was lost with the forkserver, as one before it was: one fault, not two."""


class AgentSupervisor:
    """The agent processes of one run, by number.

    Each is handed the reading end of a pipe, and ends when the server closes the other end or dies.

    Args:
        modules: loaded once, in the forkserver, and shared by all processes; loading them may not start TensorFlow,
            whose threads a fork would lose.
        objects: settings that may name what only this program knows and the processes use: functions passed as Python
            objects, and an environment that it has registered.
        training: whether the processes train by themselves, so that one may end as DIVERGED.

    Attributes:
        errors: where a process writes its traceback before it ends.
    """

    def __init__(self, modules: Sequence[str], objects: Sequence[str] = (), training: bool = False):
        self._modules = modules
        self._training = training
        self._objects = objects
        self._tracebacks, self.errors = connection.Pipe(duplex=False)
        self._processes: dict[int, multiprocessing.process.BaseProcess] = {}
        self._without_forkserver: set[int] = set()

    def __iter__(self) -> Iterator[int]:
        return iter(list(self._processes))

    def start(self, number: int, target: Callable, *args, pipe: connection.Connection) -> None:
        """Start process `number` as `target(*args, pipe)`; `pipe` is then closed here.

        Raises:
            AgentError: the system does not let it.
        """
        name = f"agents-{number}"
        arguments = (*args, pipe)
        process = self._context.Process(
            target=with_objects(target, self._objects), name=name, daemon=True, args=arguments
        )
        try:
            with left_to_this_process(), main_module_left_alone():
                process.start()  # and the forkserver, where there is none or it has died
        except (OSError, EOFError) as error:
            raise AgentError(f"agent process {number} cannot be started: {error!r}") from None
        pipe.close()
        self._processes[number] = process

    def sentinels(self) -> dict[int, int]:
        """Return the number of each process by what `multiprocessing.connection.wait` sees it end by."""
        return {process.sentinel: number for number, process in list(self._processes.items())}

    def error_of(self, number: int) -> Exception:
        """Return the error of a process that has ended by itself, and forget the process.

        Returns:
            FloatingPointError: it was training, its exit code is DIVERGED, and it left a text.
            AlsoLostWithForkserver: the forkserver has died, which an AgentError has said before.
            AgentError: it ended in any other way.
        """
        process = self._processes.pop(number)
        process.kill()  # where it is the forkserver that has died, its processes live on
        process.join()
        left = (process.exitcode or 0) > 0 and self._tracebacks.poll()
        text = self._tracebacks.recv_bytes().decode(errors="replace") if left else ""
        if self._training and text and process.exitcode == DIVERGED:
            return FloatingPointError(text)
        if process.exitcode == FORKSERVER_DIED:
            kind = AlsoLostWithForkserver if number in self._without_forkserver else AgentError
            self._without_forkserver.update(self._processes)
            self._without_forkserver.discard(number)
            return kind(f"agent process {number} was lost with the forkserver that it was started from")
        return AgentError(f"agent process {number} ended by itself, exit code {process.exitcode}\n{text}".rstrip())

    def join(self, meanwhile: Callable[[], None]) -> None:
        """Wait for processes whose pipes are closed; end those that take longer than STOP_SECONDS together.

        Args:
            meanwhile: called again and again. It reads what the processes write: one that waits for room in a full pipe
                does not see that its own is closed.
        """
        deadline = time.monotonic() + STOP_SECONDS
        for process in list(self._processes.values()):
            while process.exitcode is None and time.monotonic() < deadline:
                process.join(POLL_SECONDS)
                meanwhile()
            if process.exitcode is None:
                process.kill()
                process.join()

    def end(self, number: int) -> None:
        """End one at once; it then counts as having ended by itself."""
        self._processes[number].kill()

    def kill(self) -> None:
        """End all at once, without a word."""
        for process in list(self._processes.values()):
            process.kill()

    @functools.cached_property
    def _context(self):
        return forkserver_with(self._modules)


class Watchdog:
    """Notices processes whose step, reset or start takes too long.

    A pause of the whole run, such as a stopped process group or a sleeping machine, is nobody's fault: time counts only
    while someone looks.

    Args:
        patience: gives the seconds that a step, reset or start may take.
        clock: seconds, as `time.monotonic` gives them.
    """

    def __init__(self, patience: Callable[[int], float], clock: Callable[[], float] = time.monotonic):
        self._patience = patience
        self._clock = clock
        self._looked = clock()
        self._busy: dict[int, tuple[float, float]] = {}  # since when, and for how long that was seen

    def hung(self, busy_since: dict[int, float]) -> list[int]:
        """Return the processes that hang.

        Args:
            busy_since: by process, when its current step, reset or start began, 0 while it waits.
        """
        now = self._clock()
        passed = min(now - self._looked, 1.0)
        self._looked = now
        busy = {}
        for number, since in busy_since.items():
            before, seen = self._busy.get(number, (0.0, 0.0))
            if since:
                busy[number] = since, seen + passed if since == before else 0.0
        self._busy = busy
        return [number for number, (_, seen) in busy.items() if seen > self._patience(number)]

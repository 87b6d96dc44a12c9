"""What the processes that this program starts load and know of it."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing.util
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing import forkserver
from typing import Any

from gymnasium.vector.utils import CloudpickleWrapper

from ga3c_tf.host.processes import begin_child_process
from ga3c_tf.plugins import installer

MOST_SOCKET_BYTES = 107
"""Length of the longest path of a socket on Linux, in bytes."""
SOCKET_BYTES = len("/pymp-xxxxxxxx/listener-xxxxxxxx")
"""Length of the part of a socket's path that multiprocessing adds to a folder, in bytes."""
_main_module = threading.Lock()
"""Held while the main module's file and spec are hidden: a second thread would restore the hidden state."""
_loaded: set[str] = set()
"""Modules that the running forkserver was asked to load."""


def forkserver_with(modules: Sequence[str]):
    """Return multiprocessing's forkserver context, with these modules loaded in its server.

    A server that already runs, such as that of an earlier training, cannot load more modules. If it lacks one
    and has no processes left, it is stopped, and the next process starts a new server.
    """
    context = multiprocessing.get_context("forkserver")
    choose_socket_folder()
    server: Any = forkserver._forkserver  # no public function tells whether it runs, or stops it
    if not _loaded.issuperset(modules) and (
        server._forkserver_pid is None or not multiprocessing.active_children()
    ):
        server._stop()
        _loaded.clear()
        _loaded.update(modules)
        context.set_forkserver_preload([*modules])
    return context


def choose_socket_folder() -> None:
    """Let multiprocessing make its sockets in /tmp if their paths in the usual temporary folder would be too
    long.

    Call this before a forkserver is started. Python 3.14 does the same by itself.
    """
    usual = tempfile.gettempdir()
    if len(os.fsencode(usual)) + SOCKET_BYTES > MOST_SOCKET_BYTES:
        tempfile.tempdir = "/tmp"
        try:
            multiprocessing.util.get_temp_dir()  # multiprocessing keeps this folder for all its sockets
        finally:
            tempfile.tempdir = usual


def with_objects(function: Callable[..., Any], names: Iterable[str]) -> Callable[..., Any]:
    """Wrap `function` so that another process first does what every process with environments begins with.

    It leaves signals to this process, as `begin_child_process` does, and registers the objects that only this
    program has.

    Args:
        function: function that the process runs.
        names: settings that may name functions passed as Python objects, or an environment that this program
            has registered; with fewer names a process has less to load.
    """
    install = installer(names)
    return functools.partial(_call, CloudpickleWrapper(install) if install else _nothing, function)  # type: ignore[type-var]


def _nothing() -> None:
    pass


def _call(install: Callable[[], None], function: Callable[..., Any], *args: Any) -> Any:
    begin_child_process()
    install()
    return function(*args)


def allow_children() -> None:
    """Let this process, which makes environments, start processes even if it is daemonic.

    multiprocessing forbids this to agent processes, whose environment may start a simulator, and to the
    workers of a `multiprocessing.Pool`, in which a program may train or evaluate: a daemonic process that is
    killed leaves its children behind. Agent processes end by themselves when the process that trains has
    ended in any way.
    """
    multiprocessing.current_process().daemon = False


@contextlib.contextmanager
def main_module_left_alone() -> Iterator[None]:
    """Keep processes that are started in the block from importing the program's main module.

    multiprocessing imports it because functions may be defined there. The functions that this package runs
    never are, and a script without `if __name__ == "__main__"` would begin its training again in each
    process.
    """
    main = sys.modules["__main__"]
    with _main_module:
        names = [name for name in ("__file__", "__spec__") if name in main.__dict__]
        hidden: dict[str, Any] = {name: main.__dict__.pop(name) for name in names}
        main.__spec__ = None
        try:
            yield
        finally:
            main.__dict__.update(hidden)

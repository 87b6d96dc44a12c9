"""What the processes that this program starts load and know of it."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing import forkserver
from typing import Any

from gymnasium.vector.utils import CloudpickleWrapper

from ga3c_tf.plugins import installer

_main_module = threading.Lock()
"""Held while the main module's file and spec are hidden: a second thread would restore the hidden state."""
_loaded: set[str] = set()
"""Modules that the running forkserver was asked to load."""


def forkserver_with(modules: Sequence[str]):
    """Return multiprocessing's forkserver context, with these modules loaded in its server.

    A server that already runs, such as that of an earlier training, cannot load more modules. If it lacks one and has
    no processes left, it is stopped, and the next process starts a new server.
    """
    context = multiprocessing.get_context("forkserver")
    server: Any = forkserver._forkserver  # no public function tells whether it runs, or stops it
    if not _loaded.issuperset(modules) and (server._forkserver_pid is None or not multiprocessing.active_children()):
        server._stop()
        _loaded.clear()
        _loaded.update(modules)
        context.set_forkserver_preload([*modules])
    return context


def with_objects(function: Callable[..., Any], names: Iterable[str]) -> Callable[..., Any]:
    """Wrap `function` so that another process first registers the objects that only this program has.

    Args:
        function: function that the process runs.
        names: settings that may name functions passed as Python objects, or an environment that this program has
            registered; with fewer names a process has less to load.
    """
    install = installer(names)
    return functools.partial(_call, CloudpickleWrapper(install), function) if install else function  # type: ignore[type-var]


def _call(install: Callable[[], None], function: Callable[..., Any], *args: Any) -> Any:
    install()
    return function(*args)


def allow_children() -> None:
    """Let this process, which makes environments, start processes even if it is daemonic.

    multiprocessing forbids this to agent processes, whose environment may start a simulator, and to the workers of a
    `multiprocessing.Pool`, in which a program may train or evaluate: a daemonic process that is killed leaves its
    children behind. Agent processes end by themselves when the process that trains has ended in any way.
    """
    multiprocessing.current_process().daemon = False


@contextlib.contextmanager
def main_module_left_alone() -> Iterator[None]:
    """Keep processes that are started in the block from importing the program's main module.

    multiprocessing imports it because functions may be defined there. The functions that this package runs never are,
    and a script without `if __name__ == "__main__"` would begin its training again in each process.
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

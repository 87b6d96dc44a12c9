"""What processes that this program starts are to know of it, and what not."""

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
"""Held while the main module has no place: a second thread would take that for how it is."""
_loaded: set[str] = set()
"""What the running forkserver was asked to load."""


def forkserver_with(modules: Sequence[str]):
    """Return multiprocessing's forkserver context, whose server has these modules loaded.

    A server that runs already, as one of an earlier training, loads nothing any more. Where it lacks a module and has
    no process left, it is stopped; the next process starts another.
    """
    context = multiprocessing.get_context("forkserver")
    server: Any = forkserver._forkserver  # no public function says whether it runs, or stops it
    if not _loaded.issuperset(modules) and (server._forkserver_pid is None or not multiprocessing.active_children()):
        server._stop()
        _loaded.clear()
        _loaded.update(modules)
        context.set_forkserver_preload([*modules])
    return context


def with_objects(function: Callable[..., Any], names: Iterable[str]) -> Callable[..., Any]:
    """Return `function` as another process can call it that needs what only this program knows.

    Args:
        function: what the process runs.
        names: settings that may name functions passed as Python objects, or an environment that this program has
            registered; the fewer, the less a process has to load.
    """
    install = installer(names)
    return functools.partial(_call, CloudpickleWrapper(install), function) if install else function  # type: ignore[type-var]


def _call(install: Callable[[], None], function: Callable[..., Any], *args: Any) -> Any:
    install()
    return function(*args)


@contextlib.contextmanager
def main_module_left_alone() -> Iterator[None]:
    """Keep processes that are started within from importing the program's main module.

    multiprocessing would import it for functions that are defined there. Ours never are, and a script without
    `if __name__ == "__main__"` would begin its training again in each process.
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

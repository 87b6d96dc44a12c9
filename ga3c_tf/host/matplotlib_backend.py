"""The backend of matplotlib, which Keras imports."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys

BACKEND = "MPLBACKEND"
"""Environment variable that matplotlib reads when it is imported."""


def drop_unusable_backend() -> None:
    """Unset the backend if matplotlib would refuse to be imported with it. Call this before Keras is
    imported.

    A notebook sets its own backend, which programs that it starts inherit even if they do not have it.
    """
    if BACKEND not in os.environ or "matplotlib" in sys.modules:
        return
    backend = os.environ.pop(BACKEND)
    with contextlib.suppress(ImportError, ValueError):  # it is missing, or does not have this backend
        importlib.import_module("matplotlib").rcParams["backend"] = backend
        os.environ[BACKEND] = backend

"""Environment variables that TensorFlow and matplotlib read when they are imported."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys

from ga3c_tf.host.machine import processor

SWITCH = "TF_ENABLE_ONEDNN_OPTS"
"""Environment variable that TensorFlow reads once, when it is imported."""
WORDS = {"1": "on", "true": "on", "0": "off", "false": "off"}
BACKEND = "MPLBACKEND"
"""Environment variable that matplotlib reads when it is imported."""


def enable_onednn() -> None:
    """Make TensorFlow use oneDNN on processors with AVX2. Call this before TensorFlow is imported.

    By default, TensorFlow uses oneDNN only on newer processors. A value of `SWITCH` set by the user is kept.
    Networks for screens become faster, and so do small networks with large batches. docs/performance.md has
    the numbers.
    """
    if "avx2" in processor()["flags"]:
        os.environ.setdefault(SWITCH, "1")


def enabled_too_late(decided: str) -> bool:
    """Return whether TensorFlow runs without oneDNN because it was imported before oneDNN was enabled.

    Args:
        decided: result of `onednn` when TensorFlow was imported.
    """
    by_itself = "avx512_vnni" in processor()["flags"]
    return onednn() == "on" and decided != "on" and not by_itself


def onednn() -> str:
    """Return the current value of `SWITCH` as a word: 'on', 'off' or 'as TensorFlow decides'."""
    return WORDS.get(os.environ.get(SWITCH, "").lower(), "as TensorFlow decides")


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

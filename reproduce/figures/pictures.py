"""The modules that draw. Matplotlib is imported when a picture is drawn."""

from __future__ import annotations

import importlib
from types import ModuleType


def drawing(name: str) -> ModuleType:
    """Return a module of `drawing`."""
    return importlib.import_module(f"ga3c_tf.reproduce.drawing.{name}")

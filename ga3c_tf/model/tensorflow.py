"""TensorFlow and Keras, imported without startup messages. Other modules import both from here."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import tempfile
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ga3c_tf.console import open_standard_descriptors
from ga3c_tf.errors import UserError
from ga3c_tf.host.libraries import drop_unusable_backend, onednn


def import_quietly(module: str) -> types.ModuleType:
    """Import a module and hide what it writes to file descriptor 2, unless the import fails.

    No setting silences TensorFlow's startup messages, because C++ code writes them before it reads its log
    level.
    """
    if sys.stderr is not None:  # it is None if it was closed when Python started
        sys.stderr.flush()
    open_standard_descriptors()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as greetings:
        os.dup2(greetings.fileno(), 2)
        try:
            return importlib.import_module(module)
        except Exception:  # not Ctrl-C, which fails for no reason that the messages say
            greetings.seek(0)
            os.write(saved, greetings.read())
            raise
        finally:
            os.dup2(saved, 2)
            os.close(saved)


@contextlib.contextmanager
def plain_path(folder: Path) -> Iterator[str]:
    """Yield a path of an existing folder that TensorFlow takes as it is.

    TensorFlow reads the path of a checkpoint as a pattern, where brackets and backslashes have a meaning of
    their own, and encodes every path as UTF-8, whatever the system does.

    Raises:
        OSError: the folder cannot be opened.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"
ONEDNN = onednn()
"""Setting of oneDNN in this process, as `onednn` returns it; TensorFlow reads it when imported below."""
drop_unusable_backend()
tf: Any = import_quietly("tensorflow")
keras: Any = import_quietly("keras")
if keras.config.backend() != "tensorflow":  # the program has imported Keras before, with another setting
    raise UserError(
        f"Keras has started with the backend {keras.config.backend()} in this process; it must be "
        "tensorflow: set KERAS_BACKEND=tensorflow, or import ga3c_tf.model.tensorflow before Keras"
    )
eager_context: Any = importlib.import_module("tensorflow.python.eager.context")
eager_execute: Any = importlib.import_module("tensorflow.python.eager.execute")
"""TensorFlow's way to run an operation with prepared attributes, for `graph_call`. Neither is documented."""

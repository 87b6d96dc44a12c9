"""TensorFlow and Keras, imported without TensorFlow's startup messages. Other modules import both from here."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import types
from typing import Any

from ga3c_tf.errors import UserError
from ga3c_tf.host.onednn import onednn


def import_quietly(module: str) -> types.ModuleType:
    """Import a module and hide what it writes to file descriptor 2, unless the import fails.

    No setting silences TensorFlow's startup messages, because C++ code writes them before it reads its log level.
    """
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as greetings:
        os.dup2(greetings.fileno(), 2)
        try:
            return importlib.import_module(module)
        except BaseException:
            greetings.seek(0)
            os.write(saved, greetings.read())
            raise
        finally:
            os.dup2(saved, 2)
            os.close(saved)


os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"
ONEDNN = onednn()
"""Setting of oneDNN in this process, as `onednn` returns it; TensorFlow reads it when it is imported below."""
tf: Any = import_quietly("tensorflow")
keras: Any = import_quietly("keras")
if keras.config.backend() != "tensorflow":  # the program has imported Keras before, with another setting
    raise UserError(
        f"Keras has started with the backend {keras.config.backend()} in this process; it must be tensorflow: "
        "set KERAS_BACKEND=tensorflow, or import ga3c_tf.model.tensorflow before Keras"
    )
eager_context: Any = importlib.import_module("tensorflow.python.eager.context")
eager_execute: Any = importlib.import_module("tensorflow.python.eager.execute")
"""TensorFlow's own way to run an operation whose attributes are prepared, for `graph_call`. Neither is documented."""

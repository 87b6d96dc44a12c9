"""TensorFlow and Keras, imported without TensorFlow's greetings. Every module of ours takes them from here."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import types
from typing import Any

from ga3c_tf.host.onednn import onednn


def import_quietly(module: str) -> types.ModuleType:
    """Import a module without what it writes to file descriptor 2; a failed import shows that.

    No setting silences TensorFlow's greetings: C++ code writes them before it reads its log level.
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
"""Whether TensorFlow uses oneDNN in this process, which is decided now; for the record."""
tf: Any = import_quietly("tensorflow")
keras: Any = import_quietly("keras")

"""TensorFlow and Keras, imported without TensorFlow's greetings. Every module of ours takes them from here."""

from __future__ import annotations

import os
import sys
import tempfile


def _import_quietly():
    """Imports both; a failed import shows what it said.

    No setting silences the greetings: C++ code writes them to file descriptor 2 before it reads its log level.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["KERAS_BACKEND"] = "tensorflow"
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as greetings:
        os.dup2(greetings.fileno(), 2)
        try:
            import keras
            import tensorflow
        except BaseException:
            greetings.seek(0)
            os.write(saved, greetings.read())
            raise
        finally:
            os.dup2(saved, 2)
            os.close(saved)
    return tensorflow, keras


tf, keras = _import_quietly()

"""oneDNN, the library behind TensorFlow's faster convolutions and matrix products on x86."""

from __future__ import annotations

import os

from ga3c_tf.host.processor import processor

SWITCH = "TF_ENABLE_ONEDNN_OPTS"
"""TensorFlow's environment variable, read once, when TensorFlow is imported."""


def enable_onednn() -> None:
    """Have TensorFlow use oneDNN on processors with AVX2; call it before TensorFlow is imported.

    By itself TensorFlow does so only on newer processors. A value of `SWITCH` that the user has set stays. It is for
    training: updates and large predictions are faster, a prediction of one state is slower, and playing a trained agent
    is nothing else. docs/performance.md has the numbers.
    """
    if "avx2" in processor()["flags"]:
        os.environ.setdefault(SWITCH, "1")


def onednn() -> str:
    """Return what was decided, for the record: 'on', 'off' or 'as TensorFlow decides'."""
    return {"1": "on", "0": "off"}.get(os.environ.get(SWITCH, ""), "as TensorFlow decides")

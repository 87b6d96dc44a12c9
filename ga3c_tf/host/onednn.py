"""oneDNN, the library behind TensorFlow's faster convolutions and matrix products on x86."""

from __future__ import annotations

import os

from ga3c_tf.host.processor import processor

SWITCH = "TF_ENABLE_ONEDNN_OPTS"
"""TensorFlow's environment variable, read once, when TensorFlow is imported."""
WORDS = {"1": "on", "true": "on", "0": "off", "false": "off"}


def enable_onednn() -> None:
    """Have TensorFlow use oneDNN on processors with AVX2; call it before TensorFlow is imported.

    By itself TensorFlow does so only on newer processors. A value of `SWITCH` that the user has set stays. The networks
    for screens gain, and small ones if their batches are large. docs/performance.md has the numbers.
    """
    if "avx2" in processor()["flags"]:
        os.environ.setdefault(SWITCH, "1")


def enabled_too_late(decided: str) -> bool:
    """Whether TensorFlow was imported, and does without oneDNN, before it was enabled.

    Args:
        decided: what `onednn` said when TensorFlow was imported.
    """
    by_itself = "avx512_vnni" in processor()["flags"]
    return onednn() == "on" and decided != "on" and not by_itself


def onednn() -> str:
    """Return what `SWITCH` says: 'on', 'off' or 'as TensorFlow decides'."""
    return WORDS.get(os.environ.get(SWITCH, "").lower(), "as TensorFlow decides")

"""Use of oneDNN, the library for TensorFlow's faster convolutions and matrix products on x86."""

from __future__ import annotations

import os

from ga3c_tf.host.processor import processor

SWITCH = "TF_ENABLE_ONEDNN_OPTS"
"""Environment variable that TensorFlow reads once, when it is imported."""
WORDS = {"1": "on", "true": "on", "0": "off", "false": "off"}


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

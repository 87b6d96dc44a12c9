"""oneDNN, the library behind TensorFlow's faster convolutions and matrix products on x86."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from ga3c_tf.host.processor import processor

SWITCH = "TF_ENABLE_ONEDNN_OPTS"
"""TensorFlow's environment variable, read once, when TensorFlow is imported."""
SCREEN = 36 * 36
"""Numbers in a state from which on its network has enough to compute; MinAtar's states have at most 1,000."""


def enable_onednn(state_shape: Sequence[int]) -> None:
    """Have TensorFlow use oneDNN for states such as screens, with AVX2; call it before TensorFlow is imported.

    By itself TensorFlow does so only on newer processors. A value of `SWITCH` that the user has set stays. It is for
    training: updates and large predictions are faster, a prediction of one state is slower, and playing a trained agent
    is nothing else. docs/performance.md has the numbers.
    """
    if "avx2" in processor()["flags"] and math.prod(state_shape) >= SCREEN:
        os.environ.setdefault(SWITCH, "1")


def onednn() -> str:
    """Return what was decided, for the record: 'on', 'off' or 'as TensorFlow decides'."""
    return {"1": "on", "0": "off"}.get(os.environ.get(SWITCH, ""), "as TensorFlow decides")

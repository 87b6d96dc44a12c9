"""GA3C on TensorFlow 2: one model on the GPU, many agent processes, predictor and trainer threads.

The names in `__all__` are the Python interface; `ga3c-tf --help` describes the command line. Each name is
imported when it is first used, so that `import ga3c_tf` stays fast.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.2.0"
__all__ = ["Agent", "Config", "Run", "Scores", "UserError", "load_agent", "resume", "train"]

_MODULE_OF = {"Config": "ga3c_tf.config", "UserError": "ga3c_tf.errors"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'ga3c_tf' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULE_OF.get(name, "ga3c_tf.api")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

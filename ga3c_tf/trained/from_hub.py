"""Weights on the Hugging Face Hub, named 'hf:OWNER/NAME': folders that `publish` writes for it."""

from __future__ import annotations

import os
from pathlib import Path

from ga3c_tf.errors import UserError
from ga3c_tf.plugins import one_line
from ga3c_tf.trained.weights import KEPT, SAFETENSORS, file_of

PREFIX = "hf:"
MOST_LETTERS = 200
"""Length of the part of an error's text that is shown."""


def is_on_hub(source: Path | str) -> bool:
    """Return whether a name is that of weights on the Hub."""
    return str(source).startswith(PREFIX)


def folder_from_hub(name: str, cache: Path) -> Path:
    """Return the folder of weights on the Hub; fetch what has changed there.

    huggingface_hub fetches it, with its settings: HF_TOKEN for private weights, HF_ENDPOINT, HF_HUB_OFFLINE.

    Args:
        name: name of the weights, 'hf:OWNER/NAME'.
        cache: folder for fetched weights.

    Raises:
        UserError: huggingface_hub is missing, the weights do not exist or cannot be fetched, or they are not
            those of an agent of this package.
    """
    repository = str(name).removeprefix(PREFIX)
    folder = cache / "hub" / repository
    try:
        import huggingface_hub
    except ImportError:
        raise UserError(f"{name} needs pip install '.[export]' in a clone, for huggingface_hub") from None
    try:
        huggingface_hub.snapshot_download(
            repository, local_dir=folder, allow_patterns=[SAFETENSORS, *KEPT, f"{KEPT[-1]}/*"]
        )
    except Exception as error:  # of the name, the network, or a package that fetches; they differ by version
        raise UserError(f"cannot fetch {name}: {one_line(error)[:MOST_LETTERS]}") from None
    if not file_of(folder) or not os.path.isfile(folder / "config.json"):
        raise UserError(f"{name} has no {SAFETENSORS} and config.json; it is no agent of ga3c-tf")
    return folder

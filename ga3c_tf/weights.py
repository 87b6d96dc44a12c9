"""Weights that are handed on: a folder with the settings of the run, its float32 weights, and a card that says more.

The weights lie in a NumPy archive, which cannot hold code. Optimizer slots stay behind: such a folder is for playing
and scoring, not for resuming.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np

from ga3c_tf.config import UserError, did_you_mean
from ga3c_tf.model import Model
from ga3c_tf.run_folder import write_aside

FILE, SCORE = "weights.npz", "score.json"
HERE = Path(__file__).resolve().parents[1]
PUBLISHED = next(
    (each for each in (HERE / "results" / "weights", HERE / "reproduce" / "weights") if each.is_dir()),
    HERE / "reproduce" / "weights",
)
"""The published ones, each in a folder of its name: in a checkout, or installed beside the package."""


def published_folder(name: str) -> Path:
    """The folder of the published weights called `name`.

    Raises:
        UserError: there are none of this name.
    """
    names = sorted(path.parent.name for path in PUBLISHED.glob(f"*/{FILE}"))
    if name not in names:
        hint = did_you_mean(name, names) or f"; there are {', '.join(names) or 'none'}"
        raise UserError(f"no pretrained weights {name!r}{hint}")
    return PUBLISHED / name


def save_weights(folder: Path, model: Model, config_json: str, score: dict) -> Path:
    """Writes the weights, the settings and the score that they were given; returns the file of the weights.

    Args:
        folder: made where it is not there.
        model: whose weights.
        config_json: the settings, as `Config.to_json` gives them.
        score: what `evaluate.summary` says.

    Raises:
        UserError: the folder cannot be written.
    """
    archive = io.BytesIO()
    arrays = {f"{number:02d}": weights for number, weights in enumerate(model.network.get_weights())}
    np.savez_compressed(archive, **{name: array.astype(np.float32) for name, array in arrays.items()})
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FILE).write_bytes(archive.getvalue())
        write_aside(folder / "config.json", config_json)
        write_aside(folder / SCORE, json.dumps(score, indent=2) + "\n")
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}") from None
    return folder / FILE


def load_weights(folder: Path, model: Model) -> int:
    """Gives the model the weights of a folder; returns the agent steps they were trained for.

    Raises:
        UserError: the files are damaged, or of another network.
    """
    try:
        with np.load(folder / FILE, allow_pickle=False) as archive:
            arrays = [archive[name] for name in sorted(archive.files)]
        agent_steps = int(json.loads((folder / SCORE).read_text())["agent_steps"])
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"{folder} is damaged: {type(error).__name__}") from None
    shapes = [array.shape for array in arrays]
    expected = [array.shape for array in model.network.get_weights()]
    if shapes != expected:
        raise UserError(f"{folder / FILE} is of another network: weights of {shapes}, and {expected} here")
    model.network.set_weights(arrays)
    return agent_steps

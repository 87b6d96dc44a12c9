"""Published weights: a folder with the settings of the run, its float32 weights, its score and a model card.

The weights are in a NumPy archive or, for the Hugging Face Hub, in a safetensors file; neither can contain
code. Optimizer slots are left out, so such a folder is for playing and scoring, not for resuming.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import shutil
import types
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ga3c_tf.config import spelled
from ga3c_tf.errors import UserError
from ga3c_tf.files import check_writable, json_text, may_be_undamaged, sync
from ga3c_tf.plugins import one_line
from ga3c_tf.runs.folder import read_config

if TYPE_CHECKING:  # TensorFlow takes seconds to start, and names and pages of weights do not need it
    from ga3c_tf.algorithms.network_model import NetworkModel
    from ga3c_tf.config import Config

MOST_BYTES = 5 * 10**6
FILE = "weights.npz"
SAFETENSORS = "model.safetensors"
SCORE = "score.json"
CARD = "README.md"
BEST = "best_evaluated"
"""Folder in a run folder with the weights of the best evaluation, for `load_agent` and `ga3c-tf play`."""
EPISODE = "episode.gif"
"""Animation of the agent at play."""
ORIGIN = "began_with"
"""Folder in a run folder with the card, the score and the curve of the weights that the run began with."""
CURVE = ("curve.csv", "curve.svg", "curve.png")
KEPT = (CARD, "config.json", SCORE, *CURVE, ORIGIN)


def file_of(folder: Path) -> Path | None:
    """Return the file of the weights in a folder, or None if there is none."""
    return next((folder / name for name in (FILE, SAFETENSORS) if os.path.isfile(folder / name)), None)


def keep_origin(folder: Path, run: Path) -> None:
    """Copy the files in `KEPT`, such as card and score, of the weights that a run begins with to its folder.

    The weights themselves are not copied.

    Args:
        folder: folder of the weights.
        run: the new run folder.

    Raises:
        UserError: the files cannot be copied.
    """
    try:
        shutil.copytree(folder, run / ORIGIN, ignore=lambda _, names: set(names) - set(KEPT))
    except OSError as error:
        raise UserError(f"cannot copy {folder} to {run / ORIGIN}: {error.strerror or error}") from None


def check_free(folder: Path) -> None:
    """Check that weights can be written to a folder: it is new, empty, or has weights that were written
    before.

    Raises:
        UserError: the folder has other content, is a link, or cannot be read or written.
    """
    try:
        with contextlib.suppress(FileNotFoundError):
            os.lstat(folder)
        names = [path.name for path in folder.iterdir()] if os.path.isdir(folder) else []
        if not os.path.islink(folder):
            check_writable(folder)
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}") from None
    # Other models on the Hub have a model.safetensors too. A publication that was killed may lack the score.
    ours = {FILE, SAFETENSORS} & {*names} and {SCORE, f"{SCORE}.new"} & {*names}
    if os.path.islink(folder) or (names and (not ours or "checkpoints" in names)):
        raise UserError(f"{folder} has something else in it; name a new folder for the weights")


def packed_weights(model: NetworkModel, name: str = FILE, is_limited: bool = True) -> bytes:
    """Return the content of a file of weights.

    Args:
        model: the model whose weights are packed.
        name: name of the file, `FILE` or `SAFETENSORS`.
        is_limited: whether a NumPy archive may have `MOST_BYTES` at most.

    Raises:
        UserError: the NumPy archive is larger.
    """
    return _safetensors_of(model) if name == SAFETENSORS else _archive_of(model, is_limited)


def save_weights(folder: Path, content: bytes, config_json: str, score: dict, name: str = FILE) -> Path:
    """Write weights, settings and score to a folder; return the file of the weights.

    Args:
        folder: folder to write to, as `check_free` allows it; it is created if it does not exist.
        content: weights, from `packed_weights`.
        config_json: the settings, as `Config.to_json` returns them.
        score: summary of an evaluation, from `evaluation.summary`.
        name: name of the file of the weights, `FILE` or `SAFETENSORS`.

    Raises:
        UserError: the folder cannot be written; existing files are unchanged.
    """
    score_json = json_text(score, indent=2) + "\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        contents = {name: content, "config.json": config_json.encode(), SCORE: score_json.encode()}
        with contextlib.ExitStack() as stack:
            for file_name, whole in contents.items():
                aside = folder / f"{file_name}.new"
                stack.callback(aside.unlink, missing_ok=True)
                with aside.open("wb") as stream:
                    stream.write(whole)
                    stream.flush()
                    sync(stream.fileno())
            for file_name in contents:  # the score last, so that it is not ahead of the weights
                (folder / f"{file_name}.new").rename(folder / file_name)
        for earlier in {FILE, SAFETENSORS} - {name}:
            (folder / earlier).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}") from None
    return folder / name


def check_same_scaling(folder: Path, config: Config) -> None:
    """Check that a run has the algorithm of the weights that it begins with, and scales its states like them.

    Args:
        folder: folder of the weights.
        config: settings of the run.

    Raises:
        UserError: the scaling differs, and the text names the right option; or the folder is damaged.
    """
    saved = read_config(folder)
    if saved.algorithm != config.algorithm:
        given = f"--algorithm {saved.algorithm}, and this run has --algorithm {config.algorithm}"
        raise UserError(f"{folder} was trained with {given}")
    for name in ("normalize_images", "normalize_observations"):
        if getattr(saved, name) != getattr(config, name):
            wanted, given = spelled(name, getattr(saved, name)), spelled(name, getattr(config, name))
            chooser = config.not_read_by(name)
            advice = f"{spelled(chooser, getattr(config, chooser))} cannot" if chooser else f"give {wanted}"
            raise UserError(f"{folder} was trained with {wanted}, and this run has {given}; {advice}")


def load_weights(folder: Path, model: NetworkModel) -> int:
    """Load the weights of a folder into a model; return the agent steps that they were trained for.

    Raises:
        UserError: the files are damaged or unreadable, belong to another network, or need a package that is
            missing.
    """
    file = file_of(folder) or folder / FILE
    read = _safetensors().load_file if file.name == SAFETENSORS else _numpy_arrays
    with _damage_told(file):
        named = read(file)
        arrays = [named[name] for name in sorted(named, key=lambda name: int(name.partition(".")[0]))]
        shapes = [array.shape for array in arrays]
        finite = all(np.isfinite(array).all() for array in arrays)
    with _damage_told(folder / SCORE):
        agent_steps = int(json.loads((folder / SCORE).read_text())["agent_steps"])
    if not finite:
        raise UserError(f"{file} is damaged: it has weights that are not finite")
    expected = [array.shape for array in model.network.get_weights()]
    if shapes != expected:
        pairs = itertools.zip_longest(shapes, expected, fillvalue="missing")
        number, (stored, current) = next(
            (number, pair) for number, pair in enumerate(pairs) if pair[0] != pair[1]
        )
        raise UserError(
            f"{file} is of another network: the shape of its array {number} is {stored}, and here {current}"
        )
    model.network.set_weights(arrays)
    return agent_steps


@contextlib.contextmanager
def _damage_told(file: Path) -> Iterator[None]:
    """Raise UserError for an error of reading a file: damaged, a file may raise anything."""
    try:
        yield
    except FileNotFoundError:
        raise UserError(f"{file} is missing") from None
    except Exception as error:
        if may_be_undamaged(error):
            raise UserError(f"{file} cannot be read now: {one_line(error)}") from None
        raise UserError(f"{file} is damaged: {one_line(error)}") from None


def _safetensors() -> types.ModuleType:
    """Import and return the module that reads and writes safetensors files.

    Raises:
        UserError: the package is missing.
    """
    try:
        import safetensors.numpy
    except ImportError:
        raise UserError(f"{SAFETENSORS} needs pip install '.[export]' in a clone") from None
    return safetensors.numpy


def _archive_of(model: NetworkModel, is_limited: bool) -> bytes:
    """Return the weights as a compressed NumPy archive, each named by its number.

    Raises:
        UserError: the archive is limited, and over `MOST_BYTES`.
    """
    archive = io.BytesIO()
    arrays = {str(number): weights for number, weights in enumerate(model.network.get_weights())}
    np.savez_compressed(archive, **{name: array.astype(np.float32) for name, array in arrays.items()})
    size = len(archive.getvalue())
    if is_limited and size > MOST_BYTES:
        raise UserError(
            f"the weights take {size / 1e6:.1f} MB, and a NumPy archive has at most {MOST_BYTES / 1e6:.0f}; "
            "--format huggingface has no limit"
        )
    return archive.getvalue()


def _safetensors_of(model: NetworkModel) -> bytes:
    """Return the weights as a safetensors file, each named by number and layer, such as '0.conv11.kernel'."""
    arrays = {
        f"{number}.{variable.path.replace('/', '.')}": np.ascontiguousarray(variable.numpy(), np.float32)
        for number, variable in enumerate(model.network.weights)
    }
    return _safetensors().save(arrays)


def _numpy_arrays(file: Path) -> dict[str, np.ndarray]:
    with np.load(file, allow_pickle=False) as archive:
        # NumPy reads as many numbers as a header says, which may end before the checksum if it is damaged.
        if damaged := archive.zip.testzip():
            raise ValueError(f"the checksum of {damaged} is wrong")
        return dict(archive)

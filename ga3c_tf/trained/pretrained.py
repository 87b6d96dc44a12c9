"""The weights published with this package. Those not in the wheel are fetched when first used."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import shutil
import tempfile
import urllib.request
from pathlib import Path

from ga3c_tf.config import Config
from ga3c_tf.errors import UserError, did_you_mean
from ga3c_tf.runs.folder import check_no_links, read_config
from ga3c_tf.trained.from_hub import folder_from_hub, is_on_hub
from ga3c_tf.trained.weights import FILE, SCORE, file_of

SOURCE = "GA3C_TF_WEIGHTS"
"""Environment variable that says where weights come from: a folder such as results/weights, or its URL."""
REGISTRY = "registry.txt"
"""File with a line for each file of weights: its path, such as pong/weights.npz, and its SHA-256."""
SECONDS = 60
"""Seconds to wait for an answer of a server."""
CHECKOUT = Path(__file__).resolve().parents[2] / "results" / "weights"
INSTALLED = Path(__file__).resolve().parent / "published"
PUBLISHED = CHECKOUT if CHECKOUT.is_dir() else INSTALLED
"""Folder of the published weights, each in a folder of its name: in a checkout, or installed."""
PLAYED_WITH = (
    "env_id",
    "preprocessing",
    "frame_skip",
    "repeat_action_probability",
    "full_action_space",
    "noop_max",
)
"""Settings that the scores of the random policy depend on."""


def published_names() -> list[str]:
    """Return the names of the published weights, sorted."""
    return sorted(path.parent.name for path in PUBLISHED.glob(f"*/{SCORE}"))


def random_score(config: Config) -> float | None:
    """Return the mean score of the random policy in the environment of a run; None if it is not on record.

    It is on record for the environments of published weights, if these were played with the same settings.
    """
    for weights in published_names():
        folder = PUBLISHED / weights
        other = read_config(folder)
        if all(getattr(config, name) == getattr(other, name) for name in PLAYED_WITH):
            return json.loads((folder / SCORE).read_text(encoding="utf-8")).get("random_policy")
    return None


def published_card(name: str) -> Path:
    """Return the installed folder of the published weights called `name`, which may lack the weights
    themselves.

    Raises:
        UserError: no published weights have this name.
    """
    names = published_names()
    if name not in names:
        hint = did_you_mean(name, names) or f"; there are {', '.join(names) or 'none'}"
        raise UserError(f"no pretrained weights {name!r}{hint}")
    return PUBLISHED / name


def published_folder(name: str, fetch: bool = True) -> Path:
    """Return the folder of the published weights called `name`.

    Args:
        name: name of the weights; one like 'hf:OWNER/NAME' is on the Hugging Face Hub.
        fetch: whether weights that are not here are fetched; otherwise the folder may only have their card.

    Raises:
        UserError: no published weights have this name, or they cannot be fetched.
    """
    if is_on_hub(name):
        return folder_from_hub(name, _cache())
    folder = published_card(name)
    return folder if file_of(folder) or not fetch else _cached(folder)


def agent_folder(source: Path | str, fetch: bool = True) -> Path:
    """Return the folder of an agent: `source` itself if it exists, otherwise that of the published weights
    `source`.

    Args:
        source: a run folder, a folder of weights, or the name of published weights, or 'hf:OWNER/NAME'.
        fetch: as for `published_folder`.

    Raises:
        UserError: there is no such folder, and no published weights have this name.
    """
    if is_on_hub(source):
        return published_folder(str(source))
    try:
        os.lstat(source)
    except FileNotFoundError:
        names = published_names()
        if str(source) in names:
            return published_folder(str(source), fetch)
        if close := did_you_mean(str(source), names):
            raise UserError(
                f"{source} is not a run folder, and no published weights have this name{close}"
            ) from None
        raise UserError(
            f"{source} is not a run folder: there is no such folder; published weights are {', '.join(names)}"
        ) from None
    except OSError:
        pass  # reading the settings says what is wrong
    return Path(source)


def weights_called(name: str) -> Path:
    """Return the folder of weights: `name` itself if it is one, otherwise that of the published weights
    `name`.

    Raises:
        UserError: there are no such weights, they cannot be fetched, `name` is a run folder, or the folder
            contains a link.
    """
    if os.path.isdir(Path(name) / "checkpoints"):
        raise UserError(
            f"{name} is a run folder; make weights of it with ga3c-tf publish, or go on with ga3c-tf resume"
        )
    if not file_of(Path(name)):
        return published_folder(name)
    check_no_links(Path(name))  # a new run copies the files in it, and `publish` publishes the copies
    return Path(name)


def _cached(card: Path) -> Path:
    """Return the folder of published weights in the user's cache; fetch them if they are not there.

    Args:
        card: installed folder of the weights, with everything but the weights themselves.
    """
    digest = _digest(card.name)
    # Versions of the package may have different weights.
    folder = _cache() / digest[:16] / card.name
    if folder.is_dir():
        return folder
    content = _fetched(card.name, digest)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # So that a folder in the cache is complete.
        with tempfile.TemporaryDirectory(dir=folder.parent) as place:
            new = shutil.copytree(card, Path(place) / card.name)
            (new / FILE).write_bytes(content)
            new.rename(folder)
    except OSError as error:
        if not folder.is_dir():  # otherwise another process has put it there
            raise UserError(
                f"cannot write to {folder.parent}: {error.strerror or error}; "
                "set XDG_CACHE_HOME to another folder"
            ) from None
    return folder


def _cache() -> Path:
    """Return the user's folder for fetched weights."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home, "ga3c-tf")


def _digest(name: str) -> str:
    """Return the SHA-256 that the published weights `name` have."""
    lines = (PUBLISHED / REGISTRY).read_text(encoding="utf-8").splitlines()
    return dict(line.split() for line in lines)[f"{name}/{FILE}"]


def registry_of(weights: Path) -> str:
    """Return the text of registry.txt: the path of each file of weights, and its SHA-256.

    Args:
        weights: folder with one folder for each set of weights.
    """
    files = sorted(weights.glob(f"*/{FILE}"))
    return "".join(
        f"{file.relative_to(weights)} {hashlib.sha256(file.read_bytes()).hexdigest()}\n" for file in files
    )


def _fetched(name: str, digest: str) -> bytes:
    """Return the content of the file of published weights, from the folder or URL in `SOURCE`."""
    source = os.environ.get(SOURCE, "").rstrip("/")
    wanted = "the folder results/weights of a clone, or its URL"
    if not source:
        raise UserError(
            f"the weights {name!r} are not in this installation; to fetch them, set {SOURCE} to {wanted}"
        )
    file = f"{source}/{name}/{FILE}"
    try:
        if "://" in source:
            with urllib.request.urlopen(file, timeout=SECONDS) as answer:
                content = answer.read()
        else:
            content = Path(file).expanduser().read_bytes()
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or getattr(error, "reason", None) or error
        raise UserError(f"cannot read {file}: {reason}; {SOURCE} has to be {wanted}") from None
    if hashlib.sha256(content).hexdigest() != digest:
        raise UserError(
            f"{file} has other weights than this version of ga3c-tf; use results/weights of this version"
        )
    return content

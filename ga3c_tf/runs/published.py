"""The weights published with this package. Those that are not in the wheel are fetched when they are first used."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ga3c_tf.errors import UserError, did_you_mean
from ga3c_tf.files import atomic_write
from ga3c_tf.runs.folder import check_no_links
from ga3c_tf.runs.weights import FILE, SCORE, file_of

SOURCE = "GA3C_TF_WEIGHTS"
"""Environment variable that says where weights are fetched from: a folder such as results/weights, or its URL."""
REGISTRY = "registry.txt"
"""File with the SHA-256 of each file of weights, as pooch reads it."""
HERE = Path(__file__).resolve().parents[2]
CHECKOUT = HERE / "results" / "weights"
INSTALLED = HERE / "ga3c_tf" / "reproduce" / "weights"
PUBLISHED = CHECKOUT if CHECKOUT.is_dir() else INSTALLED
"""Folder of the published weights, each in a folder of its name: in a checkout, or installed."""


def published_names() -> list[str]:
    """Return the names of the published weights, sorted."""
    return sorted(path.parent.name for path in PUBLISHED.glob(f"*/{SCORE}"))


def published_folder(name: str) -> Path:
    """Return the folder of the published weights called `name`, and fetch them first if they are not here.

    Raises:
        UserError: no published weights have this name, or they cannot be fetched.
    """
    names = published_names()
    if name not in names:
        hint = did_you_mean(name, names) or f"; there are {', '.join(names) or 'none'}"
        raise UserError(f"no pretrained weights {name!r}{hint}")
    folder = PUBLISHED / name
    return folder if file_of(folder) else _fetched(name)


def weights_called(name: str) -> Path:
    """Return the folder of weights: `name` itself if it is one, otherwise that of the published weights `name`.

    Raises:
        UserError: there are no such weights, they cannot be fetched, `name` is a run folder, or the folder contains a
            link.
    """
    if os.path.isdir(Path(name) / "checkpoints"):
        raise UserError(
            f"{name} is a run folder; make weights of it with ga3c-tf publish, or go on with ga3c-tf resume"
        )
    if not file_of(Path(name)):
        return published_folder(name)
    check_no_links(Path(name))  # a new run copies the files in it, and `publish` publishes the copies
    return Path(name)


def _fetched(name: str) -> Path:
    """Return the folder of published weights in the user's cache.

    They are fetched if the cache does not have them, or has others than those of this version of the package.
    """
    import pooch

    pooch.get_logger().setLevel("WARNING")
    source = os.environ.get(SOURCE, "")
    store = pooch.create(pooch.os_cache("ga3c-tf"), source.removesuffix("/") + "/")
    try:
        store.load_registry(PUBLISHED / REGISTRY)
        folder = Path(store.fetch(f"{name}/{FILE}", downloader=_downloader(name, source))).parent
        for file in (PUBLISHED / name).glob("*.*"):
            with atomic_write(folder / file.name, "wb") as stream:  # another process may read it
                stream.write(file.read_bytes())
    except UserError:
        raise
    except OSError as error:  # the errors of requests are among them
        raise UserError(f"cannot fetch the weights {name!r} from {source}: {' '.join(str(error).split())}") from None
    except ValueError:
        raise UserError(f"{source} does not have the weights {name!r} of this version of ga3c-tf") from None
    return folder


def _downloader(name: str, source: str) -> Callable[..., Any]:
    """Return the function that pooch calls with the place of a missing file, and with the file to write."""
    import pooch

    def refuse(*_: Any) -> None:
        raise UserError(
            f"the weights {name!r} are not installed; to fetch them, set {SOURCE} to the folder results/weights of a "
            "clone, or to its URL"
        )

    def copy(place: str, file: str, _: Any) -> None:
        shutil.copyfile(place, file)

    if not source:
        return refuse
    return pooch.HTTPDownloader() if source.startswith(("http://", "https://")) else copy
